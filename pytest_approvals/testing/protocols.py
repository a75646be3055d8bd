"""The tests of the conformance kit about protocols: the framework's own clients in place of its scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from pytest_approvals.agent_side.capabilities import PROTOCOLS
from pytest_approvals.agent_side.neutral import Parameter
from pytest_approvals.harness.run import run_scenario
from pytest_approvals.harness.sources import InThisProcess, facts_of
from pytest_approvals.journal.events import Event, ModelRequest
from pytest_approvals.journal.history import History
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.scenario.parts import Behaviour, Call, Reply, Scenario, Script, Tool, Variant
from pytest_approvals.testing.kit import Kit, requires
from pytest_approvals.testing.story import Story

PAY = Tool(
    name="pay",
    approval="always",
    parameters={"amount": Parameter(type="integer")},
    behaviours=(Behaviour(returns="paid {amount}"),),
)
PAYS = Reply(say="Wait.", calls=(Call(label="c1", id="c1", tool="pay", arguments={"amount": 5}),))
PAID = Scenario(
    id="kit/paid", title="A payment", tools=(PAY,), agents={"main": Script(replies=(PAYS, Reply(say="Done.")))}
)


class ProtocolTests(Kit):
    """What must be the same whichever way the model is reached."""

    @classmethod
    def parameters(cls) -> dict[str, list[Any]]:
        """Add the protocols of the framework's clients, and whether a model is asked for a stream."""
        protocols = [name for name in PROTOCOLS if name in cls.adapter.protocols]
        streamed = [pytest.param(True, id="streamed")] if "streaming" in cls.adapter.capabilities else []
        return {**super().parameters(), "protocol": protocols, "stream": [pytest.param(False, id="whole"), *streamed]}

    @requires("text_with_calls")
    def test_a_story_is_the_same_over_a_protocol(
        self, story: Callable[..., Story], protocol: str, stream: bool
    ) -> None:
        """
        With the framework's own client, one payment has the transcript that it has with the scripted model, but for
        instructions: a model class may have some for its provider.
        """
        assert self._transcript("native", stream) == self._transcript(protocol, stream)

    def _transcript(self, protocol: str, stream: bool) -> str:
        source = InThisProcess(name="agent", adapter=self.adapter, facts=facts_of(self.adapter))
        variant = Variant(protocol=protocol, stream=stream, oracle="approve_all")
        run = asyncio.run(run_scenario(PAID, variant, source))
        return Transcript.of_history(History.of([_without_instructions(event) for event in run.events])).render()


def _without_instructions(event: Event) -> Event:
    if not isinstance(event, ModelRequest):
        return event
    return replace(event, items=[item for item in event.items if item["kind"] != "other"])
