"""The flow that a process practises before it is forked."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import ClassVar

from pytest_approvals.agent_side.contract.agent import World
from pytest_approvals.agent_side.contract.types import Blueprint, Decision, ModelAddress, Outcome
from pytest_approvals.agent_side.process.fork_server import warm_up
from pytest_approvals.simulation.reference import ReferenceAgent


def test_an_agent_that_always_has_a_client_is_built_with_it() -> None:
    """The model is out of reach, and that its turns fail is no failure of the practice."""
    asked: list[ModelAddress | None] = []

    class Reaches(ReferenceAgent):
        native = "responses"

        async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
            asked.append(self.blueprint.model)
            raise ConnectionError

    asyncio.run(warm_up(Reaches))

    assert ["responses", "responses"] == [address.protocol for address in asked if address is not None]


def test_an_agent_of_several_protocols_practises_each() -> None:
    """A forked process finds the providers' clients imported; one that is not installed does not matter."""
    asked: list[str | None] = []

    class Speaks(ReferenceAgent):
        protocols: ClassVar[Mapping[str, Mapping[str, str]]] = {"messages": {}, "chat": {}}

        def __init__(self, world: World, blueprint: Blueprint) -> None:
            if blueprint.model is not None and blueprint.model.protocol == "messages":
                raise ImportError("no client")
            super().__init__(world, blueprint)

        async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
            asked.append(None if self.blueprint.model is None else self.blueprint.model.protocol)
            return await super().turn(text, decisions, stream=stream)

    asyncio.run(warm_up(Speaks))

    assert [None, None, "chat", None, None, "chat"] == asked
