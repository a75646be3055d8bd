"""Agent sources: build the agents of runs, in this process or in another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.metadata import Facts
from pytest_approvals.agent_side.contract.types import Attachment, Blueprint


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
