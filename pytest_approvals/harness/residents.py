"""Agents in an environment of their own: many runs share one process there."""

from __future__ import annotations

import asyncio

from pytest_approvals.agent_side.contract import Agent, World
from pytest_approvals.agent_side.facts import Facts
from pytest_approvals.agent_side.neutral import Blueprint

from .elsewhere import OtherProcesses
from .hosted import Hosted
from .process import AgentProcess
from .sources import AgentFacts

KEPT = 0
"""No session has this number: it stands for the source, and keeps a process from ending with its last session."""

MOST_BUILT = 200
"""How many agents a process may have had before another one takes its place, so that what they leave cannot pile up."""


class InEnvironment:
    """
    An agent that lives in an environment of its own; implements `sources.AgentSource`.

    The agents of all runs share a process there, as those of this process do here; fresh ones get processes of their
    own. A process belongs to the event loop that it was started on: runs on another one have another.

    Arguments:
        processes: Where the processes come from.

    Attributes:
        name: As in `AgentSource`.
    """

    def __init__(self, name: str, processes: OtherProcesses) -> None:
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
        return await Hosted.build(await self._process(), world, blueprint)

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
        process.sessions.add(KEPT)
        return process

    async def _is_over(self, started: asyncio.Task[AgentProcess]) -> bool:
        """Says whether another process is needed; one that has built enough is ended between two runs."""
        if not started.done():
            return False
        if started.cancelled() or started.exception() is not None or not started.result().usable:
            return True
        process = started.result()
        if process.sessions != {KEPT} or self._built < MOST_BUILT:
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
