"""Agents in other processes of this machine."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from pytest_approvals.agent_side.contract import Agent, World
from pytest_approvals.agent_side.neutral import Blueprint

from .host import HostPool, session_pool
from .hosted import Hosted
from .process import AgentProcess
from .runtimes import Environment, Runtime
from .sources import AgentFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherProcesses:
    """
    Builds agents in processes that know nothing of the run; implements `sources.FreshProcesses`.

    Attributes:
        agent: What the agent's side calls it: `NAME.FLAVOUR`, or `module:Class`.
        environment: What the processes run on.
        pool: Where the processes come from.
    """

    agent: str
    environment: Runtime = field(default_factory=Environment)
    pool: HostPool = field(default_factory=session_pool)

    async def build(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `FreshProcesses.build`."""
        start = self.pool.cold if cold else self.pool.fresh
        process = await start(self.agent, self.environment)
        try:
            return await Hosted.build(process, world, blueprint)
        except BaseException:
            await process.end()
            raise


class BehindTheHost:
    """
    An agent that lives in another process always; implements `sources.AgentSource`.

    The agents of a run share a process, which ends with the last of them; fresh ones get processes of their own.

    Attributes:
        name: As in `AgentSource`.
        facts: As in `AgentSource`.
    """

    def __init__(self, name: str, facts: AgentFacts, processes: OtherProcesses) -> None:
        self.name = name
        self.facts = facts
        self._processes = processes
        self._starting: asyncio.Task[AgentProcess] | None = None

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`."""
        process = await self._process()
        try:
            return await Hosted.build(process, world, blueprint)
        except BaseException:
            if not process.sessions:
                await process.end()
            raise

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        return await self._processes.build(world, blueprint, cold=cold)

    async def _process(self) -> AgentProcess:
        started = self._starting
        gone = started is None or (started.done() and (started.exception() or not started.result().usable))
        if started is None or gone or started.get_loop() is not asyncio.get_running_loop():
            start = self._processes.pool.fresh(self._processes.agent, self._processes.environment)
            started = self._starting = asyncio.ensure_future(start)
        return await asyncio.shield(started)
