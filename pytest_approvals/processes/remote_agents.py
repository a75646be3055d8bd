"""Remote agents: the contract over RPC, and sources that build agents in other processes."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.machinery import PathFinder
from typing import Any, TypeVar

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agent_side.contract.types import Attachment, Blueprint, Decision, Outcome, Request, ToolSpec
from pytest_approvals.agent_side.rpc.messages import (
    AnotherSession,
    Build,
    CopyFrom,
    Done,
    Load,
    OfSession,
    Pending,
    Stage,
    State,
    TakeTurn,
    Tools,
    Trim,
    TurnEnded,
)
from pytest_approvals.agent_side.rpc.serialization import Handle, SerializationError, validate_json
from pytest_approvals.errors import HostError, UsageError
from pytest_approvals.processes.agent_process import AgentProcess
from pytest_approvals.processes.launchers import Launcher, PythonLauncher
from pytest_approvals.processes.process_pool import ProcessPool, get_shared_pool

T = TypeVar("T")


class RemoteAgent(Agent):
    """One session of an agent in another process.

    Attributes:
        host: The process; it ends with the last of its sessions.
        process: Its number.
        time_limit: Seconds that a run may take; none of its calls ends before because its process has not answered.
        stops_when_shown: In its next turn, its process stops when something was shown, and is killed there.
        dies_in_write: In its next turn, its process ends in a write that is cut off.
    """

    time_limit: float | None = None
    stops_when_shown = False
    dies_in_write = False

    def __init__(self, host: AgentProcess, session: int, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.host = host
        self.process = host.number
        self._session = session
        self._tools: tuple[ToolSpec, ...] = ()
        self._earlier_turns: int | None = None

    @classmethod
    async def build(cls, host: AgentProcess, world: World, blueprint: Blueprint) -> RemoteAgent:
        """Build an agent in a process, and raise here what the adapter raises there.

        Raises:
            UsageError: The blueprint holds something that cannot be serialized.
            HostError: The process is lost, or breaks the protocol.
        """
        agent = cls(host, host.begin_session(world), world, blueprint)
        sent = blueprint
        if blueprint.attachment is not None:
            sent = replace(blueprint, attachment=make_importable(blueprint.attachment))
        return await agent._begin("build", Build(session=agent._session, blueprint=sent))

    async def build_beside(self, world: World, blueprint: Blueprint) -> RemoteAgent:
        """Build another agent in the same process; a user's agent is built from what this one was."""
        return await RemoteAgent.build(
            self.host, world, blueprint if self.blueprint.attachment is None else self.blueprint
        )

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        turn = TakeTurn(
            session=self._session,
            text=text,
            decisions=tuple(decisions),
            stream=stream,
            stops_when_shown=self.stops_when_shown,
            dies_in_write=self.dies_in_write,
        )
        ended = await self._call("turn", turn, TurnEnded)
        outcomes = [outcome for outcome in (ended.paused, ended.finished) if outcome is not None]
        if len(outcomes) != 1:
            raise HostError(self.host.agent, "`turn` must return exactly one of `paused` and `finished`")
        return outcomes[0]

    async def pending(self) -> Sequence[Request]:
        """See `Agent.pending`."""
        return (await self._call("pending", OfSession(session=self._session), Pending)).requests

    async def stage(self, decisions: Sequence[Decision]) -> None:
        """See `Agent.stage`."""
        await self._call("stage", Stage(session=self._session, decisions=tuple(decisions)), Done)

    async def cancel(self) -> None:
        """See `Agent.cancel`."""
        await self._call("cancel", OfSession(session=self._session), Done)

    async def trim(self, keep: int) -> None:
        """See `Agent.trim`."""
        await self._call("trim", Trim(session=self._session, keep=keep), Done)

    async def dump(self) -> str:
        """See `Agent.dump`."""
        return (await self._call("dump", OfSession(session=self._session), State)).text

    async def load(self, parts: Sequence[str]) -> None:
        """See `Agent.load`."""
        await self._call("load", Load(session=self._session, parts=tuple(parts)), Done)

    async def recover(self, parts: Sequence[str]) -> None:
        """See `Agent.recover`."""
        await self._call("load", Load(session=self._session, parts=tuple(parts), crashed=True), Done)

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`; the two must live in one process."""
        if not isinstance(other, RemoteAgent) or other.host is not self.host:
            raise Unsupported("serialize.copy", "the two agents live in different processes")
        await self._call("copy_from", CopyFrom(session=self._session, other=other._session), Done)

    async def another_session(self, world: World) -> RemoteAgent:
        """See `Agent.another_session`."""
        other = RemoteAgent(self.host, self.host.begin_session(world), world, self.blueprint)
        command = AnotherSession(session=self._session, new=other._session, model=world.address())
        return await other._begin("another_session", command)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._tools

    def earlier_turns(self) -> int | None:
        """See `Agent.earlier_turns`."""
        return self._earlier_turns

    async def close(self) -> None:
        """See `Agent.close`; the process ends with the last of its sessions."""
        if self._session not in self.host.sessions:
            return
        try:
            if self.host.is_usable:
                await self._call("close", OfSession(session=self._session), Done)
        finally:
            self.host.sessions.discard(self._session)
            if not self.host.sessions:
                await self.host.end()

    async def _begin(self, method: str, command: Any) -> RemoteAgent:
        try:
            begun = await self._call(method, command, Tools)
        except BaseException:
            self.host.sessions.discard(self._session)
            raise
        self._tools, self._earlier_turns = begun.tools, begun.earlier_turns
        return self

    async def _call(self, method: str, params: Any, kind: type[T]) -> T:
        return await self.host.call(method, params, kind, limit=self.host.find_limit(self.time_limit))


def make_importable(attachment: Attachment) -> Attachment:
    """Return the attachment with its subject and its options as what another process can import or read.

    A function is named `module:name`, or `FILE.py:name` if pytest has imported the module from its file.

    Raises:
        UsageError: The subject has no such name, or an option is neither JSON nor made by a factory.
    """
    subject = getattr(attachment.subject, "imported_as", attachment.subject)
    if not isinstance(subject, str):
        name = _importable_name(subject)
        if name is None:
            raise UsageError(
                f"Invalid agent {subject!r} for a fresh process: expected a function of a module that takes the model "
                "and returns the agent, or its name as 'module:function'"
            )
        subject = name
    factory = attachment.options_factory
    if factory is None:
        _require_json(attachment.run_options)
        return replace(attachment, subject=subject)
    name = factory if isinstance(factory, str) else _importable_name(factory)
    if name is None:
        raise UsageError(
            f"Invalid run_options {factory!r} for a fresh process: expected a function of a module that takes nothing "
            "and returns the options, or its name as 'module:function'"
        )
    return replace(attachment, subject=subject, options_factory=name, run_options={})


def _require_json(options: Mapping[str, Any]) -> None:
    for name, value in options.items():
        try:
            validate_json(value)
        except SerializationError as error:
            raise UsageError(
                f"The option {name!r} in run_options cannot be sent to a fresh process: {error}; pass a function of a "
                "module that makes all options there, run_options=make_options, or its name as 'module:function'"
            ) from None


def _importable_name(function: object) -> str | None:
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    target: Any = sys.modules.get(module) if module else None
    # A nested function has `<locals>` in its qualified name, and nothing is called `?`: both lead to None.
    for step in (name or "?").split("."):
        target = getattr(target, step, None)
    if module is None or module == "__main__" or target is not function:
        return None
    return f"{_module_location(module)}:{name}"


def _module_location(module: str) -> str:
    """Return how another process finds a module: its name, or its file if no import path leads to it."""
    file = getattr(sys.modules[module], "__file__", None)
    steps, places, spec = module.split("."), None, None
    for depth in range(len(steps)):
        # Not `importlib.util.find_spec`, which imports parents and answers from the modules loaded here.
        spec = PathFinder.find_spec(".".join(steps[: depth + 1]), places)
        if spec is None:
            break
        places = spec.submodule_search_locations
    return module if file is None or (spec is not None and spec.origin == file) else file


def without_remote_handles(agent: Agent, decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return decisions without handles of objects in other processes, unless *agent* is remote itself."""
    if isinstance(agent, RemoteAgent):
        return decisions
    return [
        replace(decision, request=replace(decision.request, handle=None))
        if decision.request is not None and isinstance(decision.request.handle, Handle)
        else decision
        for decision in decisions
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubprocessFactory:
    """A `ProcessFactory` of agents in processes that know nothing of the run.

    Attributes:
        agent: The agent's name on the agent side: `NAME.FLAVOUR`, or `module:Class`.
        launcher: Launches its processes.
        pool: Starts its processes.
    """

    agent: str
    launcher: Launcher = field(default_factory=PythonLauncher)
    pool: ProcessPool = field(default_factory=get_shared_pool)

    async def build(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `ProcessFactory.build`."""
        start = self.pool.start_cold if cold else self.pool.start_fresh
        process = await start(self.agent, self.launcher)
        try:
            return await RemoteAgent.build(process, world, blueprint)
        except BaseException:
            await process.end()
            raise


RESERVED_SESSION = 0
"""Reserved session number that keeps the shared process alive between runs."""

MAX_AGENTS_PER_PROCESS = 200
"""Number of agents after which a shared process is replaced, so that what they leave behind cannot pile up."""


class SharedProcessSource:
    """An `AgentSource` in an environment of its own.

    The agents of all runs share a process there; fresh ones get processes of their own. A process belongs to the event
    loop that it was started on, so runs on another loop have another process.

    Args:
        name: The agent as reports name it.
        processes: Starts its processes.

    Attributes:
        name: As in `AgentSource`.
    """

    def __init__(self, name: str, processes: SubprocessFactory) -> None:
        self.name = name
        self._facts: Facts | None = None
        self._processes = processes
        self._starting: asyncio.Task[AgentProcess] | None = None
        self._built = 0

    @property
    def facts(self) -> Facts:
        """The agent's metadata; `fetch_facts` comes first."""
        if self._facts is None:
            raise LookupError(f"Unknown metadata of {self.name}: call fetch_facts() first")
        return self._facts

    @property
    def launcher(self) -> Launcher:
        """The launcher of its processes."""
        return self._processes.launcher

    @property
    def gated(self) -> frozenset[str] | None:
        """See `AgentSource.gated`."""
        return None

    async def fetch_facts(self) -> None:
        """Fetch the agent's metadata, which starts its process.

        Raises:
            AgentUnavailable: There is no such agent.
            HostError: The process is lost, or breaks the protocol.
        """
        if self._facts is None:
            self._facts = (await self._get_process()).facts

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`."""
        return await RemoteAgent.build(await self._get_process(), world, blueprint)

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        return await self._processes.build(world, blueprint, cold=cold)

    async def _get_process(self) -> AgentProcess:
        started = self._starting
        if started is None or started.get_loop() is not asyncio.get_running_loop() or await self._is_over(started):
            self._built = 0
            started = self._starting = asyncio.ensure_future(self._start())
        self._built += 1
        # Several runs may wait for the start; one that is cancelled must not cancel it for the others.
        return await asyncio.shield(started)

    async def _start(self) -> AgentProcess:
        process = await self._processes.pool.start_fresh(self._processes.agent, self._processes.launcher)
        process.sessions.add(RESERVED_SESSION)
        return process

    async def _is_over(self, started: asyncio.Task[AgentProcess]) -> bool:
        """Return whether another process is needed; end one that has built enough agents."""
        if not started.done():
            return False
        if started.cancelled() or started.exception() is not None or not started.result().is_usable:
            return True
        process = started.result()
        if process.sessions != {RESERVED_SESSION} or self._built < MAX_AGENTS_PER_PROCESS:
            return False
        await process.end()
        return True
