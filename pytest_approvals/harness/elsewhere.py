"""Agents in other processes of this machine, each in a process of its own."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_approvals.agent_side.contract import Agent, World
from pytest_approvals.agent_side.neutral import Blueprint

from .host import Environment, HostPool, session_pool
from .hosted import Hosted


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
    environment: Environment = field(default_factory=Environment)
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
