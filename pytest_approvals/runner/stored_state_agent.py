"""
Taking over a state that an older release saved while it was paused.

What the older release did until then is played again from its record, by an agent that knows nothing else; then the
agent under test is built and takes up what was saved. So the journal of such a run is like any other, and all checks
hold for it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.types import Blueprint, Decision, Item, Outcome, Paused, Request
from pytest_approvals.errors import UsageError
from pytest_approvals.journal.events import ModelRequest, PolicyAsked, ToolStart, TurnEnd
from pytest_approvals.journal.files import Journal
from pytest_approvals.processes.agent_source import AgentFacts, AgentSource
from pytest_approvals.runner.run_context import RunContext, build_header
from pytest_approvals.runner.session import Session
from pytest_approvals.scenario.model import Scenario, TurnStep, Variant
from pytest_approvals.scenario.stored_states import list_stored_states

STATE_FORMAT = 1
"""The version of the format of stored states."""

_REPLAYED_EVENTS = (ModelRequest, ToolStart, PolicyAsked)


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedState:
    """
    What an agent saved when it was paused for the first time, and what it had done until then.

    Attributes:
        agent, framework, version, scenario, serialize: What saved it, and where.
        happened: The questions to models and policies and the executions of tools, as a journal has them.
        requests: Those that surfaced.
        state: What the agent dumped.
        files: The files of its durable store, by name, in base64.
    """

    agent: str
    framework: str | None
    version: str | None
    scenario: str
    serialize: str
    happened: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    state: str
    files: Mapping[str, str] = field(default_factory=dict)

    def text(self) -> str:
        """Gives it as it is stored."""
        return json.dumps({"format": STATE_FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> PausedState:
        """
        Reads a stored state.

        Errors:
            UsageError: The file is none.
        """
        try:
            written = json.loads(path.read_text(encoding="utf-8"))
            if written.pop("format") != STATE_FORMAT:
                raise ValueError("it has another format")
            return cls(**written)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{path}: this is no stored state ({error})") from None


async def capture_paused_state(
    scenario: Scenario, serialize: str, source: AgentSource, agent: str, folder: str
) -> PausedState:
    """
    Plays a scenario until the first turn has ended, and gives what the agent saved then.

    Arguments:
        agent: What the agent is called without its release.
        folder: An empty folder for a durable store.

    Errors:
        UsageError: The agent does not pause there, or does not save its state.
    """
    variant = Variant(serialize=serialize, source="restored")
    play = RunContext(
        scenario=scenario, variant=variant, journal=Journal(), header=build_header(scenario, variant, source, 0)
    )
    session = Session(play, source, folder)
    await session.start()
    try:
        await session.turn(_first_prompt(scenario), (), ())
        state = await session.saved_text()
    finally:
        await session.close()
    end = next(event for event in play.journal.events if isinstance(event, TurnEnd))
    if end.outcome != "paused" or state is None:
        raise UsageError(f"{scenario.id} on {source.name}: it {end.outcome}, and there is no state to keep")
    return PausedState(
        agent=agent,
        framework=source.facts.framework,
        version=source.facts.version,
        scenario=scenario.id,
        serialize=serialize,
        happened=[event.to_dict() for event in play.journal.events if isinstance(event, _REPLAYED_EVENTS)],
        requests=list(end.requests),
        state=state,
        files=_encode_files(Path(folder)) if serialize.startswith("native.") else {},
    )


def _first_prompt(scenario: Scenario) -> str | None:
    first = scenario.caller[0] if scenario.caller else None
    return first.text if isinstance(first, TurnStep) else scenario.prompt


def _encode_files(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): base64.b64encode(path.read_bytes()).decode() for path in paths}


def _write_files(files: Mapping[str, str], folder: Path) -> None:
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(content))


class StoredStateSource:
    """
    An agent whose first object is the record of an older release; implements `sources.AgentSource`.

    Arguments:
        agent: What it is called without its release.
    """

    def __init__(self, source: AgentSource, scenario: Scenario, variant: Variant, agent: str) -> None:
        self._source = source
        found = list_stored_states(scenario, agent)
        wanted = (variant.saved_by, variant.serialize)
        paths = [one.path for one in found if (one.version, one.serialize) == wanted]
        if not paths:
            raise UsageError(f"{scenario.id}: no state of {agent} {variant.saved_by} is stored ({variant.serialize})")
        self._paused: PausedState | None = PausedState.read(paths[0])

    @property
    def name(self) -> str:
        """See `AgentSource.name`."""
        return self._source.name

    @property
    def facts(self) -> AgentFacts:
        """See `AgentSource.facts`."""
        return self._source.facts

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`; the first one is the record."""
        if self._paused is not None:
            recorded, self._paused = ReplayAgent(world, blueprint, self._paused), None
            return recorded
        return await self._source.build(world, blueprint)

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        return await self._source.build_fresh(world, blueprint, cold=cold)


class ReplayAgent(Agent):
    """An agent that does once more what it did when its state was saved, and nothing else."""

    def __init__(self, world: World, blueprint: Blueprint, paused: PausedState) -> None:
        super().__init__(world, blueprint)
        self._paused = paused
        self._requests: tuple[Request, ...] = ()

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        for event in self._paused.happened:
            await self._again(event)
        self._requests = tuple(Request(**{"call_id": None, **_request_fields(one)}) for one in self._paused.requests)
        return Paused(requests=self._requests)

    async def _again(self, event: Mapping[str, Any]) -> None:
        agent = event.get("agent", "main")
        match event["event"]:
            case "model.request":
                items = [Item(**item) for item in event["items"]]
                await self.world.model(items, agent=agent, tools=event.get("tools", ()))
            case "tool.start":
                await self.world.run(event["tool"], event["arguments"], event.get("call_id"), agent=agent)
            case _:
                self.world.gate(event["tool"], event["arguments"], event.get("call_id"), agent=agent)

    async def pending(self) -> Sequence[Request]:
        return self._requests

    async def dump(self) -> str:
        _write_files(self._paused.files, Path(self.blueprint.directory))
        return self._paused.state


def _request_fields(written: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in written.items() if name not in ("q", "label")}
