"""Stored states: runs that resume from what an older release saved while it was paused.

What the older release did until then is replayed from its record, by an agent that knows nothing else; then the agent
under test is built and loads what was saved. So the journal of such a run is like any other, and all checks apply.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agent_side.contract.types import Blueprint, Decision, Item, Outcome, Paused, Request
from pytest_approvals.errors import UsageError
from pytest_approvals.journal.event_schema import find_field_error
from pytest_approvals.journal.events import ModelRequest, PolicyAsked, ToolStart, TurnEnd, event_from_dict
from pytest_approvals.journal.files import Journal
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.journal_values import build_header
from pytest_approvals.runner.run_context import RunContext
from pytest_approvals.runner.session import Session
from pytest_approvals.runner.timeouts import SharedDeadline
from pytest_approvals.scenario.model import Scenario, TurnStep, Variant
from pytest_approvals.scenario.stored_states import list_stored_states

STATE_FORMAT = 1
"""The version of the format of stored states."""

_REPLAYED_EVENTS = (ModelRequest, ToolStart, PolicyAsked)


@dataclass(frozen=True, slots=True, kw_only=True)
class PausedState:
    """What an agent saved when it was paused for the first time, and what it had done until then.

    Attributes:
        agent, framework, version, scenario, serialize: What saved it, and in which scenario.
        happened: The requests to models and policies and the executions of tools, as journals hold them.
        requests: The approval requests that surfaced.
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
        """Return the text of its file."""
        return json.dumps({"format": STATE_FORMAT, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> PausedState:
        """Read a stored state.

        Raises:
            UsageError: The file does not hold one.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != STATE_FORMAT:
                raise ValueError(f"expected format {STATE_FORMAT}")
            state = cls(**content)
            state._validate()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise UsageError(f"{path}: invalid stored state ({error})") from None
        return state

    def _validate(self) -> None:
        """Check what was read from a file.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: It is not what `text` writes.
        """
        for name in ("agent", "scenario", "serialize", "state"):
            if not isinstance(getattr(self, name), str):
                raise TypeError(f"{name} must be text")
        for event in self.happened:
            kind = type(event_from_dict(event))
            if not issubclass(kind, _REPLAYED_EVENTS):
                raise ValueError(f"unexpected event {kind.kind!r}")
            if error := find_field_error(kind, {name: value for name, value in event.items() if name != "event"}):
                raise ValueError(error)
        if error := find_field_error(TurnEnd, {"turn": 1, "outcome": "paused", "requests": self.requests}):
            raise ValueError(error)
        for name, content in self.files.items():
            if PurePath(name).is_absolute() or ".." in PurePath(name).parts or "\0" in name:
                raise ValueError(f"the file {name!r} is not below the folder of the store")
            base64.b64decode(content, validate=True)


async def capture_paused_state(
    scenario: Scenario, serialize: str, source: AgentSource, agent: str, folder: str
) -> PausedState:
    """Play a scenario until the first turn has ended, and return what the agent saved then.

    Args:
        scenario: What is played.
        serialize: How the state is saved.
        source: Builds the agent.
        agent: The name of the agent without its release.
        folder: An empty folder for a durable store.

    Raises:
        UsageError: The agent does not pause there, or does not save its state.
    """
    variant = Variant(serialize=serialize, source="restored")
    context = RunContext(
        scenario=scenario, variant=variant, journal=Journal(), header=build_header(scenario, variant, source, 0)
    )
    session = Session(context, source, folder)
    await session.start()
    try:
        await session.turn(_first_prompt(scenario), (), ())
        await session.save()
    finally:
        await session.close(SharedDeadline(context.limit.seconds))
    save = session.states.latest
    end = next(event for event in context.journal.events if isinstance(event, TurnEnd))
    if end.outcome != "paused" or save is None or not save.parts:
        raise UsageError(f"{scenario.id} on {source.name}: no state to store (the first turn {end.outcome})")
    return PausedState(
        agent=agent,
        framework=source.facts.framework,
        version=source.facts.version,
        scenario=scenario.id,
        serialize=serialize,
        happened=[event.to_dict() for event in context.journal.events if isinstance(event, _REPLAYED_EVENTS)],
        requests=list(end.requests),
        state=save.parts[-1],
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
    """An `AgentSource` whose first agent replays the record of an older release.

    Args:
        source: Builds the agents that follow.
        scenario: What is played.
        variant: Names the release and how the state was saved.
        agent: The name of the agent without its release.

    Raises:
        UsageError: No such state is stored.
    """

    def __init__(self, source: AgentSource, scenario: Scenario, variant: Variant, agent: str) -> None:
        self._source = source
        wanted = (variant.saved_by, variant.serialize)
        stored = list_stored_states(scenario, agent)
        paths = [state.path for state in stored if (state.version, state.serialize) == wanted]
        if not paths:
            raise UsageError(
                f"{scenario.id}: no stored state of {agent} {variant.saved_by} saved as {variant.serialize!r}"
            )
        self._paused: PausedState | None = PausedState.read(paths[0])

    @property
    def name(self) -> str:
        """See `AgentSource.name`."""
        return self._source.name

    @property
    def facts(self) -> Facts:
        """See `AgentSource.facts`."""
        return self._source.facts

    @property
    def gated(self) -> frozenset[str] | None:
        """See `AgentSource.gated`."""
        return self._source.gated

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`; the first one replays the record."""
        if self._paused is not None:
            replay, self._paused = ReplayAgent(world, blueprint, self._paused), None
            return replay
        return await self._source.build(world, blueprint)

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        return await self._source.build_fresh(world, blueprint, cold=cold)


class ReplayAgent(Agent):
    """Agent that replays the record of a stored state, and nothing else."""

    def __init__(self, world: World, blueprint: Blueprint, paused: PausedState) -> None:
        super().__init__(world, blueprint)
        self._paused = paused
        self._requests: tuple[Request, ...] = ()

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """Replay the record; it ends paused."""
        for event in self._paused.happened:
            await self._replay(event)
        # Journals leave out fields that are None, but `call_id` has no default.
        self._requests = tuple(
            Request(**{"call_id": None, **_request_fields(request)}) for request in self._paused.requests
        )
        return Paused(requests=self._requests)

    async def _replay(self, event: Mapping[str, Any]) -> None:
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
        """Return the requests that surfaced."""
        return self._requests

    async def dump(self) -> str:
        """Put the files of the durable store in place, and return the saved state."""
        _write_files(self._paused.files, Path(self.blueprint.directory))
        return self._paused.state


def _request_fields(request: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in request.items() if name not in ("q", "label")}
