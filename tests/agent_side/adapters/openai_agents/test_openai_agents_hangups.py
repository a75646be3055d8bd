"""Runs of the SDK that are cancelled."""

from __future__ import annotations

import asyncio

import pytest

from pytest_approvals import Scenario, approve, call, calls, decide, returns, say, tool
from pytest_approvals.agent_side.adapters.openai_agents import OpenAIAgents
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.journal.events import ModelRequest
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.model import Variant

STORY = Scenario(
    title="The caller hangs up when the call has run, and writes again",
    tools=[tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")],
    model=[calls(call("pay", amount=5)), say("Paid.")],
    caller=["Pay.", decide(approve("c1"), hangs_up="model"), "Well?"],
)


@pytest.mark.parametrize("serialize", ["none", "json"])
def test_a_message_after_a_resumed_run_was_cancelled_finds_its_result(serialize: str) -> None:
    """As after a failure, it is put into the run, which alone knows the result."""
    source = InProcessSource(name="openai_agents", adapter=OpenAIAgents, facts=describe_adapter(OpenAIAgents))
    run = asyncio.run(run_scenario(STORY, Variant(serialize=serialize, source="rebuilt"), source))
    asked = [event for event in run.events if isinstance(event, ModelRequest)]

    assert ["user", "call", "result", "user"] == [item["kind"] for item in asked[-1].items]
