"""Agents that live in another process: the contract, by calls.

Agents in other processes of this machine.

Agents in an environment of their own: many runs share one process there.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
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
from pytest_approvals.agent_side.rpc.serialization import Handle
from pytest_approvals.errors import HostError, UsageError
from pytest_approvals.processes.agent_process import AgentProcess
from pytest_approvals.processes.agent_source import AgentFacts
from pytest_approvals.processes.launchers import Launcher, PythonLauncher
from pytest_approvals.processes.process_pool import ProcessPool, get_shared_pool

T = TypeVar("T")


class RemoteAgent(Agent):
    """
    One session of an agent in another process.

    Attributes:
        host: The process; it ends with the last of its sessions.
        process: Its number.
    """

    def __init__(self, host: AgentProcess, session: int, world: World, blueprint: Blueprint) -> None:
        super().__init__(world, blueprint)
        self.host = host
        self.process = host.number
        self._session = session
        self._tools: tuple[ToolSpec, ...] = ()

    @classmethod
    async def build(cls, host: AgentProcess, world: World, blueprint: Blueprint) -> RemoteAgent:
        """
        Builds an agent in a process.

        Errors:
            UsageError: The blueprint holds something that cannot cross.
            HostError: The process does not answer as it should.
            Anything else: What the adapter raises.
        """
        agent = cls(host, host.begin_session(world), world, blueprint)
        crossing = blueprint
        if blueprint.attachment is not None:
            crossing = replace(blueprint, attachment=make_importable(blueprint.attachment))
        return await agent._begun("build", Build(session=agent._session, blueprint=crossing))

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        """See `Agent.turn`."""
        turn = TakeTurn(session=self._session, text=text, decisions=tuple(decisions), stream=stream)
        ended = await self._call("turn", turn, TurnEnded)
        outcomes = [one for one in (ended.paused, ended.finished) if one is not None]
        if len(outcomes) != 1:
            raise HostError(self.host.agent, "its process answered `turn` with neither or both of the outcomes")
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

    async def copy_from(self, other: Agent) -> None:
        """See `Agent.copy_from`; the two must live in one process."""
        if not isinstance(other, RemoteAgent) or other.host is not self.host:
            raise Unsupported("serialize.copy", "the two agents live in different processes")
        await self._call("copy_from", CopyFrom(session=self._session, other=other._session), Done)

    async def another_session(self, world: World) -> RemoteAgent:
        """See `Agent.another_session`."""
        other = RemoteAgent(self.host, self.host.begin_session(world), world, self.blueprint)
        command = AnotherSession(session=self._session, new=other._session, model=world.address())
        return await other._begun("another_session", command)

    def tools(self) -> tuple[ToolSpec, ...]:
        """See `Agent.tools`."""
        return self._tools

    async def close(self) -> None:
        """See `Agent.close`; the process ends with the last of its sessions."""
        if self._session not in self.host.sessions:
            return
        try:
            if self.host.usable:
                await self._call("close", OfSession(session=self._session), Done)
        finally:
            self.host.sessions.discard(self._session)
            if not self.host.sessions:
                await self.host.end()

    async def _begun(self, method: str, command: Any) -> RemoteAgent:
        try:
            self._tools = (await self._call(method, command, Tools)).tools
        except BaseException:
            self.host.sessions.discard(self._session)
            raise
        return self

    async def _call(self, method: str, params: Any, kind: type[T]) -> T:
        return await self.host.call(method, params, kind)


def make_importable(attachment: Attachment) -> Attachment:
    """
    Gives the attachment with its subject as `module:name`, or as `FILE.py:name` where pytest has imported the module
    from its file; another process can import that.

    Errors:
        UsageError: The subject has no such name.
    """
    subject = attachment.subject
    if isinstance(subject, str):
        return attachment
    module, name = getattr(subject, "__module__", None), getattr(subject, "__qualname__", None)
    found: Any = sys.modules.get(module) if module else None
    for step in (name or "?").split("."):
        found = getattr(found, step, None)
    if module is None or module == "__main__" or found is not subject:
        raise UsageError(
            f"a fresh process cannot import {subject!r}; give a function of a module that takes the model and returns "
            "the agent, or its name as 'module:function'"
        )
    return replace(attachment, subject=f"{_module_location(module)}:{name}")


def _module_location(module: str) -> str:
    """Gives a module as another process finds it: by its name, or by its file where no import path leads to it."""
    file = getattr(sys.modules[module], "__file__", None)
    steps, places, found = module.split("."), None, None
    for depth in range(len(steps)):
        found = PathFinder.find_spec(".".join(steps[: depth + 1]), places)
        if found is None:
            break
        places = found.submodule_search_locations
    return module if file is None or (found is not None and found.origin == file) else file


def drop_remote_handles(agent: Agent, decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Gives decisions as *agent* can take them: what stands for an object of another process is nothing to one here."""
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
    """
    Builds agents in processes that know nothing of the run; implements `sources.FreshProcesses`.

    Attributes:
        agent: What the agent's side calls it: `NAME.FLAVOUR`, or `module:Class`.
        environment: What the processes run on.
        pool: Where the processes come from.
    """

    agent: str
    environment: Launcher = field(default_factory=PythonLauncher)
    pool: ProcessPool = field(default_factory=get_shared_pool)

    async def build(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `FreshProcesses.build`."""
        start = self.pool.cold if cold else self.pool.fresh
        process = await start(self.agent, self.environment)
        try:
            return await RemoteAgent.build(process, world, blueprint)
        except BaseException:
            await process.end()
            raise


RESERVED_SESSION = 0
"""No session has this number: it stands for the source, and keeps a process from ending with its last session."""

MAX_AGENTS_PER_PROCESS = 200
"""How many agents a process may have had before another one takes its place, so that what they leave cannot pile up."""


class SharedProcessSource:
    """
    An agent that lives in an environment of its own; implements `sources.AgentSource`.

    The agents of all runs share a process there, as those of this process do here; fresh ones get processes of their
    own. A process belongs to the event loop that it was started on: runs on another one have another.

    Arguments:
        processes: Where the processes come from.

    Attributes:
        name: As in `AgentSource`.
    """

    def __init__(self, name: str, processes: SubprocessFactory) -> None:
        self.name = name
        self._facts: AgentFacts | None = None
        self._processes = processes
        self._starting: asyncio.Task[AgentProcess] | None = None
        self._built = 0

    @property
    def facts(self) -> AgentFacts:
        """What the process says of its agent; `ask` comes first."""
        if self._facts is None:
            raise LookupError(f"{self.name} was not asked for its facts")
        return self._facts

    async def ask(self) -> None:
        """
        Asks the agent for its facts, which starts its process.

        Errors:
            AgentUnavailable: There is no such agent.
            HostError: The process does not answer as it should.
        """
        if self._facts is None:
            self._facts = _taken((await self._process()).facts)

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`."""
        return await RemoteAgent.build(await self._process(), world, blueprint)

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        return await self._processes.build(world, blueprint, cold=cold)

    async def _process(self) -> AgentProcess:
        started = self._starting
        if started is None or started.get_loop() is not asyncio.get_running_loop() or await self._is_over(started):
            self._built = 0
            started = self._starting = asyncio.ensure_future(self._start())
        self._built += 1
        return await asyncio.shield(started)

    async def _start(self) -> AgentProcess:
        process = await self._processes.pool.fresh(self._processes.agent, self._processes.environment)
        process.sessions.add(RESERVED_SESSION)
        return process

    async def _is_over(self, started: asyncio.Task[AgentProcess]) -> bool:
        """Says whether another process is needed; one that has built enough is ended between two runs."""
        if not started.done():
            return False
        if started.cancelled() or started.exception() is not None or not started.result().usable:
            return True
        process = started.result()
        if process.sessions != {RESERVED_SESSION} or self._built < MAX_AGENTS_PER_PROCESS:
            return False
        await process.end()
        return True


def _taken(facts: Facts) -> AgentFacts:
    return AgentFacts(
        framework=facts.framework,
        version=facts.version,
        where=facts.where,
        capabilities=facts.capabilities,
        missing=facts.missing,
        wire_rules=facts.wire_rules,
        native=facts.native,
        protocols=facts.protocols,
        issues=facts.issues,
        stores=facts.stores,
        connects=facts.connects,
    )
