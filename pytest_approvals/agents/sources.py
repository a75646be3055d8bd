"""To be described."""

from __future__ import annotations

from pytest_approvals.agent_side.contract import Attachment
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agents.adapters import LocalAgent
from pytest_approvals.processes.agent_source import AgentSource, InProcessSource, ProcessFactory, describe_adapter
from pytest_approvals.processes.remote_agents import SubprocessFactory

REFERENCE = "reference"


def create_source(local: LocalAgent, attachment: Attachment | None = None) -> AgentSource:
    """Gives what builds an agent for the harness."""
    return InProcessSource(
        name=str(local.spec),
        adapter=local.adapter,
        facts=describe_adapter(local.adapter, version=local.version, where=local.where),
        elsewhere=subprocess_factory(local.adapter),
        attachment=attachment,
    )


def subprocess_factory(adapter: type[Agent]) -> ProcessFactory:
    return SubprocessFactory(agent=f"{adapter.__module__}:{adapter.__qualname__}")
