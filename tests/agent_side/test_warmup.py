"""The flow that a process practises before it is forked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from pytest_approvals.agent_side.contract.types import Decision, ModelAddress, Outcome
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
