"""An agent in Agno whose history is limited on purpose, after https://docs.agno.com/basics/chat-history/agent/overview.

`add_history_to_context` is off by default, and then each message begins anew; `num_history_runs` says how many earlier
runs the model is told of.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.tools import tool

from pytest_approvals import Approvals, approve, calls, say, send

paid: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


@tool(requires_confirmation=True)
def pay(amount: int) -> str:
    """Pays an amount."""
    paid.append(amount)
    return f"paid {amount}"


def forgetful(model: Any) -> Agent:
    return Agent(model=model, tools=[pay], telemetry=False)


def remembering_one(model: Any) -> Agent:
    return Agent(
        model=model, tools=[pay], db=InMemoryDb(), add_history_to_context=True, num_history_runs=1, telemetry=False
    )


@pytest.mark.parametrize("build", [forgetful, remembering_one])
@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_may_forget_on_purpose(approvals: Approvals, build: Callable[[Any], Agent], stream: bool) -> None:
    """A message that the agent's settings leave out of the history is not missing."""
    model = [calls("pay", amount=5), say("Paid."), say("Hi."), calls("pay", amount=6), say("Paid.")]
    caller = [send("Pay 5"), approve("c1"), send("Hello"), send("Pay 6"), approve("c2")]
    run = approvals.run(build, model=model, caller=caller, gated={"pay"}, stream=stream)

    assert [5, 6] == paid
    assert [] == [verdict.check for verdict in run.verdicts if verdict.status in ("fail", "warning")]
