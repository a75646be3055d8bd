"""Agent sources: build the agents of runs, in this process or in another one.

Agents in other processes are in `remote_agents.py`. Nothing here imports it before the first of them is built: most
sessions never need one, and importing it and what it uses takes a tenth of the time to the first verdict.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeGuard

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agent_side.contract.types import Attachment, Blueprint, Decision

if TYPE_CHECKING:
    from pytest_approvals.processes.launchers import Launcher
    from pytest_approvals.processes.remote_agents import RemoteAgent


class AgentSource(Protocol):
    """Builds agents under test; one source serves many runs."""

    @property
    def name(self) -> str:
        """The agent as reports name it."""

    @property
    def facts(self) -> Facts:
        """Its metadata, known without running it."""

    @property
    def gated(self) -> frozenset[str] | None:
        """Names of the user agent's tools that need approval; None if its framework says so itself."""

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """Build an agent where the agents of this source usually live."""

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """Build an agent in a process that knows nothing of the run; with *cold*, in a new interpreter."""


class ProcessFactory(Protocol):
    """Builds agents of one adapter class in other processes."""

    async def build(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """Build an agent in a process of its own, which ends with the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessSource:
    """An `AgentSource` that builds agents of an adapter class in this process.

    Attributes:
        elsewhere: Builds the fresh ones.
        attachment: A user agent, which every built agent drives.
    """

    name: str
    adapter: type[Agent]
    facts: Facts
    elsewhere: ProcessFactory | None = None
    attachment: Attachment | None = None

    @property
    def gated(self) -> frozenset[str] | None:
        """See `AgentSource.gated`."""
        return self.attachment.gated if self.attachment is not None else None

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`."""
        return self.adapter(world, self._attach(blueprint))

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        if self.elsewhere is None:
            raise LookupError(f"Fresh agents need a process factory; none is configured for {self.name}")
        return await self.elsewhere.build(world, self._attach(blueprint), cold=cold)

    def _attach(self, blueprint: Blueprint) -> Blueprint:
        if self.attachment is None:
            return blueprint
        return Blueprint(
            limits=blueprint.limits,
            serialize=blueprint.serialize,
            history=blueprint.history,
            directory=blueprint.directory,
            options=blueprint.options,
            reasoning=blueprint.reasoning,
            attachment=self.attachment,
        )


class LateProcessFactory:
    """A `ProcessFactory` of agents in processes of this Python, which imports what that needs with the first of them.

    Args:
        agent: The agent's name on the agent side: `NAME.FLAVOUR`, or `module:Class`.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._factory: ProcessFactory | None = None

    async def build(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `ProcessFactory.build`."""
        if self._factory is None:
            from pytest_approvals.processes.remote_agents import SubprocessFactory

            self._factory = SubprocessFactory(agent=self._agent)
        return await self._factory.build(world, blueprint, cold=cold)


def find_launcher(source: AgentSource) -> Launcher | None:
    """Return the launcher of the processes in which a source builds all of its agents; None if it builds them here."""
    remote = _get_remote_agents()
    return source.launcher if remote is not None and isinstance(source, remote.SharedProcessSource) else None


def is_remote(agent: Agent) -> TypeGuard[RemoteAgent]:
    """Return whether an agent is in another process."""
    remote = _get_remote_agents()
    return remote is not None and isinstance(agent, remote.RemoteAgent)


def drop_remote_handles(agent: Agent, decisions: Sequence[Decision]) -> Sequence[Decision]:
    """Return decisions without handles of objects in other processes, unless *agent* is remote itself."""
    remote = _get_remote_agents()
    return decisions if remote is None else remote.without_remote_handles(agent, decisions)


def _get_remote_agents() -> Any:
    """Return the module of agents in other processes; None if nothing has imported it, so that there are none."""
    return sys.modules.get("pytest_approvals.processes.remote_agents")
