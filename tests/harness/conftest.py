from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals.agent_side.contract import Agent
from pytest_approvals.agent_side.neutral import Parameter
from pytest_approvals.harness.oracles import Oracle
from pytest_approvals.harness.play import Limit
from pytest_approvals.harness.run import Run, run_scenario
from pytest_approvals.harness.sources import InThisProcess, facts_of
from pytest_approvals.journal.write import Journal
from pytest_approvals.scenario.parts import Behaviour, Call, Reply, Scenario, Script, Tool, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

PAY = Tool(
    name="pay",
    parameters={"amount": Parameter(type="integer")},
    approval="always",
    behaviours=(Behaviour(returns="paid {amount}"),),
)
LOOK = Tool(name="look", parameters={"what": Parameter()}, behaviours=(Behaviour(returns="saw {what}"),))


def pays(*amounts: int) -> Reply:
    """A reply that asks for payments, labelled c1, c2, ..."""
    calls = (
        Call(label=f"c{number}", id=f"c{number}", tool="pay", arguments={"amount": amount})
        for number, amount in enumerate(amounts, 1)
    )
    return Reply(calls=tuple(calls))


@pytest.fixture
def story() -> Callable[..., Scenario]:
    """Builds a scenario out of replies; by default one payment and a last word."""

    def build(*replies: Reply, **parts: Any) -> Scenario:
        played = replies or (pays(5), Reply(say="Done."))
        defaults: dict[str, Any] = {"id": "tests/story", "title": "A story.", "tools": (PAY, LOOK)}
        return Scenario(**(defaults | {"agents": {"main": Script(replies=played)}} | parts))

    return build


@pytest.fixture
def played() -> Callable[..., Run]:
    """Plays a scenario on the reference agent, or on another agent class."""

    def play(
        scenario: Scenario,
        variant: Variant | None = None,
        *,
        agent: type[Agent] = ReferenceAgent,
        oracle: Oracle | None = None,
        limit: Limit | None = None,
        journal: Journal | None = None,
        lenient: bool = False,
    ) -> Run:
        source = InThisProcess(name="toy", adapter=agent, facts=facts_of(agent))
        run = run_scenario(
            scenario,
            variant or Variant(),
            source,
            oracle=oracle,
            limit=limit or Limit(seconds=5),
            journal=journal,
            lenient=lenient,
        )
        return asyncio.run(run)

    return play
