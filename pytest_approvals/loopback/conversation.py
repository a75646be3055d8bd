"""
A scenario's model script, played over the wire.

The world that plays and records is the one of every run; only the agent stands outside, so that its journal holds the
side of the model alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock
from typing import Any

from pytest_approvals.agent_side.failures import ModelRefused
from pytest_approvals.agent_side.neutral import MAIN, Item, Reply
from pytest_approvals.errors import UnknownName
from pytest_approvals.harness.chunking import STYLES
from pytest_approvals.harness.play import Play, declared_tools
from pytest_approvals.harness.world import RecordingWorld
from pytest_approvals.journal.events import Event, Header
from pytest_approvals.journal.write import Journal
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.endpoint import Answer, Endpoint
from pytest_approvals.protocols.format import Format, format_named
from pytest_approvals.protocols.responses import Responses
from pytest_approvals.protocols.sse import style_named
from pytest_approvals.scenario.parts import Scenario, Variant

OBSERVED = ("model.request", "model.answer", "model.refusal", "model.failure", "model.exhausted")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wishes:
    """
    How a script is played.

    Attributes:
        protocol: Whose rules hold; only its path is served.
        chunking: How streamed replies are cut.
        style: How streams are written.
        lenient: Answer what the provider would refuse.
        again: Begin anew with every request that has no reply in it yet, and forget what was before: for load tests.
        journal: The file to record in; in memory only where there is none.
    """

    protocol: str = "chat"
    chunking: str = "whole"
    style: str = "plain"
    lenient: bool = False
    again: bool = False
    journal: Path | None = None


class Conversation:
    """
    One scripted model at one address.

    Arguments:
        name: Its address, and the agent's name in the journal.

    Errors:
        UnknownName: A protocol, a chunking or a style that does not exist is wished for.
    """

    def __init__(self, name: str, scenario: Scenario, wishes: Wishes) -> None:
        self.name = name
        self.scenario = scenario
        self.wishes = wishes
        if wishes.chunking not in STYLES:
            raise UnknownName("chunking", wishes.chunking, STYLES)
        self.format: Format = format_named(wishes.protocol)
        self.endpoint = Endpoint(self.format, self._model, style=style_named(wishes.style))
        self._world = self._new_world()
        self._lock = Lock()

    async def post(self, raw: bytes) -> Answer:
        """Answers a request of its protocol; see `Endpoint.post`."""
        return await self.endpoint.post(raw)

    @property
    def may_wait(self) -> bool:
        """Whether an answer may have to wait: for a tool that the provider runs."""
        return any(tool.kind == "hosted_mcp" for tool in self.scenario.tools)

    def post_at_once(self, raw: bytes) -> Answer:
        """Answers a request without a loop, which costs less than half; for conversations that never wait."""
        with self._lock:
            posted = self.post(raw)
            try:
                posted.send(None)
            except StopIteration as ended:
                answer: Answer = ended.value
                return answer
            posted.close()
            raise RuntimeError("an answer waits, though no tool of the scenario is the provider's")

    @property
    def events(self) -> list[Event]:
        """All that was recorded."""
        return self._world.play.journal.events

    @property
    def facts(self) -> dict[str, Any]:
        """What it plays, and how often it was asked and refused."""
        kinds = [event.kind for event in self.events]
        return {
            "name": self.name,
            "scenario": self.scenario.id,
            "protocol": self.format.name,
            "asked": kinds.count("model.request"),
            "answered": kinds.count("model.answer"),
            "refused": kinds.count("model.refusal"),
        }

    def close(self) -> None:
        """Ends its journal."""
        self._world.play.journal.close()

    async def _model(self, items: Sequence[Item], asked: Asked) -> Reply:
        if self.wishes.again and all(item.kind in ("user", "other") for item in items):
            self._begin_anew()
        agent = asked.model if asked.model in self.scenario.agents else MAIN
        reply = await self._world.model(
            items, agent=agent, stream=asked.stream, tools=asked.tools, complaints=asked.complaints
        )
        if not asked.readable:
            raise ModelRefused("; ".join(complaint.text for complaint in asked.complaints))
        return reply

    def _begin_anew(self) -> None:
        self._world = self._new_world()
        if isinstance(self.format, Responses):
            self.format.kept.forget()

    def _new_world(self) -> RecordingWorld:
        variant = replace(Variant(), chunking=self.wishes.chunking, protocol=self.format.name)
        header = Header(
            scenario=self.scenario.id,
            agent=self.name,
            variant={name: getattr(variant, name) for name in variant.__slots__},
            tools=declared_tools(self.scenario.tools),
            wire_rules=self.format.name,
            observes=list(OBSERVED),
        )
        play = Play(
            scenario=self.scenario,
            variant=variant,
            journal=Journal(self.wishes.journal),
            header=header,
            lenient=self.wishes.lenient,
        )
        play.begin()
        return RecordingWorld(play, "")
