from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agent_side.contract.types import Parameter
from pytest_approvals.journal.files import Journal
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.oracles import Oracle
from pytest_approvals.runner.run import RecordedRun, run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool, ToolBehaviour, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

PAY = Tool(
    name="pay",
    parameters={"amount": Parameter(type="integer")},
    approval="always",
    behaviours=(ToolBehaviour(returns="paid {amount}"),),
)
LOOK = Tool(name="look", parameters={"what": Parameter()}, behaviours=(ToolBehaviour(returns="saw {what}"),))


def pays(*amounts: int) -> ScriptedReply:
    """A reply that asks for payments, labelled c1, c2, ..."""
    calls = (
        Call(label=f"c{number}", id=f"c{number}", tool="pay", arguments={"amount": amount})
        for number, amount in enumerate(amounts, 1)
    )
    return ScriptedReply(calls=tuple(calls))


@pytest.fixture
def story() -> Callable[..., Scenario]:
    """Build a scenario out of replies; by default one payment and a last word."""

    def build(*replies: ScriptedReply, **parts: Any) -> Scenario:
        played = replies or (pays(5), ScriptedReply(say="Done."))
        defaults: dict[str, Any] = {"id": "tests/story", "title": "A story.", "tools": (PAY, LOOK)}
        return Scenario(**(defaults | {"agents": {"main": Script(replies=played)}} | parts))

    return build


@pytest.fixture
def played() -> Callable[..., RecordedRun]:
    """Play a scenario on the reference agent, or on another agent class."""

    def play(
        scenario: Scenario,
        variant: Variant | None = None,
        *,
        agent: type[Agent] = ReferenceAgent,
        oracle: Oracle | None = None,
        limit: RunLimits | None = None,
        journal: Journal | None = None,
        lenient: bool = False,
    ) -> RecordedRun:
        source = InProcessSource(name="toy", adapter=agent, facts=describe_adapter(agent))
        run = run_scenario(
            scenario,
            variant or Variant(),
            source,
            oracle=oracle,
            limit=limit or RunLimits(seconds=5),
            journal=journal,
            lenient=lenient,
        )
        return asyncio.run(run)

    return play
