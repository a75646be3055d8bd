"""Sources of agents that run in this environment."""

from __future__ import annotations

from pytest_approvals.agent_side.contract import Attachment
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.adapters import LocalAgent
from pytest_approvals.processes.agent_source import AgentSource, InProcessSource, LateProcessFactory, ProcessFactory

REFERENCE = "reference"
"""Name of the agent of this package, into which faults are seeded."""


def create_source(local: LocalAgent, attachment: Attachment | None = None) -> AgentSource:
    """Return the source that builds an agent in this process, or in processes that it starts.

    Args:
        local: The agent.
        attachment: A user agent, which every built agent drives.
    """
    return InProcessSource(
        name=str(local.spec),
        adapter=local.adapter,
        facts=describe_adapter(local.adapter, version=local.version, where=local.where),
        elsewhere=subprocess_factory(local.adapter),
        attachment=attachment,
    )


def subprocess_factory(adapter: type[Agent]) -> ProcessFactory:
    """Return the factory of processes in which an adapter class drives agents."""
    return LateProcessFactory(f"{adapter.__module__}:{adapter.__qualname__}")
