"""Where agents come from: a class of this process, or the same class in another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.types import Attachment, Blueprint


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """
    What is known of an agent without starting it.

    Attributes:
        framework: The distribution that *version* is the version of; None for agents of our own.
        where: The folder that the framework was imported from, or the environment.
        connects: As in `contract.Agent`.
    """

    framework: str | None = None
    version: str | None = None
    where: str | None = None
    capabilities: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    wire_rules: str = "none"
    native: str = ""
    protocols: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    issues: str = ""
    stores: Mapping[str, str] = field(default_factory=dict)
    connects: bool = False


class AgentSource(Protocol):
    """Builds agents under test; one source serves many runs."""

    @property
    def name(self) -> str:
        """The agent as reports name it."""

    @property
    def facts(self) -> AgentFacts:
        """What is known of it without starting it."""

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """Builds an agent where this source's agents usually live."""

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """Builds an agent in a process that knows nothing of the run; with *cold*, in a new interpreter."""


def describe_adapter(adapter: type[Agent], *, version: str | None = None, where: str | None = None) -> AgentFacts:
    """Gives what an adapter class says of itself, with what was found out about its framework here."""
    return AgentFacts(
        framework=adapter.framework,
        version=version or adapter.release,
        where=where,
        capabilities=adapter.capabilities,
        missing=adapter.missing,
        wire_rules=adapter.wire_rules,
        native=adapter.native,
        protocols=adapter.protocols,
        issues=adapter.issues,
        stores=adapter.stores,
        connects=adapter.connects,
    )


class ProcessFactory(Protocol):
    """Builds agents of one adapter class in other processes."""

    async def build(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """Builds an agent in a process of its own, which ends with the agent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InProcessSource:
    """
    Builds agents of an adapter class in this process.

    Attributes:
        elsewhere: Builds the fresh ones.
        attachment: A person's own agent, which every built agent drives.
    """

    name: str
    adapter: type[Agent]
    facts: AgentFacts
    elsewhere: ProcessFactory | None = None
    attachment: Attachment | None = None

    async def build(self, world: World, blueprint: Blueprint) -> Agent:
        """See `AgentSource.build`."""
        return self.adapter(world, self._attached(blueprint))

    async def build_fresh(self, world: World, blueprint: Blueprint, *, cold: bool) -> Agent:
        """See `AgentSource.build_fresh`."""
        if self.elsewhere is None:
            raise LookupError(f"{self.name} was given no way to start processes")
        return await self.elsewhere.build(world, self._attached(blueprint), cold=cold)

    def _attached(self, blueprint: Blueprint) -> Blueprint:
        if self.attachment is None:
            return blueprint
        return Blueprint(
            limits=blueprint.limits,
            serialize=blueprint.serialize,
            history=blueprint.history,
            directory=blueprint.directory,
            options=blueprint.options,
            attachment=self.attachment,
        )
