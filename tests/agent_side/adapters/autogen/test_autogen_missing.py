"""What the framework cannot do: for each capability that is not claimed, the API that is missing or refuses."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest
from autogen_agentchat.agents import ApprovalRequest, ApprovalResponse, AssistantAgent, CodeExecutorAgent
from autogen_agentchat.teams import Swarm
from autogen_agentchat.tools import AgentTool
from autogen_core.models import FunctionExecutionResult
from autogen_core.tool_agent import ToolAgent, tool_agent_caller_loop
from pydantic import ValidationError

from pytest_approvals import Scenario, calls, decide, returns, say
from pytest_approvals import approve as approved
from pytest_approvals import call as scenario_call
from pytest_approvals import tool as scenario_tool
from pytest_approvals.agent_side.adapters.autogen import FLAVOURS
from pytest_approvals.agent_side.adapters.autogen.requests import ToolApprovalResult
from pytest_approvals.agent_side.contract import Blueprint, Decision, Unsupported
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.journal.events import ToolEnd
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import AdapterSession, FakeWorld, approve, call, reply, thought, tool

INSIDE = {
    "reasoning",
    "reasoning_between_calls",
    "redacted_reasoning",
    "message_with_answers",
    "stage",
    "edit_tool",
    "always",
    "never",
    "malformed_verdict",
    "malformed_address",
    "unknown_request",
    "tampered_request",
    "contradiction",
    "repeated_decision",
    "late_decision",
    "hang_up",
    "stores_in_turns",
    "missing_ids",
    "elicitation",
    "annotations",
    "hosted_mcp",
    "limit_tool_calls",
    "sessions",
    "history.append",
    "nested_parallel",
    "hand_offs",
}


def parameters(method: Any) -> set[str]:
    return set(inspect.signature(method).parameters)


def began(flavour: str) -> AdapterSession:
    tools = (tool("pay", "always", amount="integer"),)
    world = FakeWorld((reply(None, call("pay", amount=5)), reply("Done.")), tools)
    return AdapterSession(FLAVOURS[flavour], Blueprint(tools=tools), world)


@pytest.mark.parametrize("flavour", ["", "workbench", "tools"])
def test_what_is_missing_around_tools(flavour: str) -> None:
    """What is listed as missing has a test below."""
    assert INSIDE == set(FLAVOURS[flavour].missing)


@pytest.mark.parametrize("verdict", ["always", "never"])
def test_a_result_is_about_one_call(verdict: Any) -> None:
    """always, never, edit_tool: a result says whether, why, and with which arguments."""
    story = began("")
    (request,) = story.paused("Pay.")

    assert {"approved", "reason", "arguments"} == set(ToolApprovalResult.model_fields)
    with pytest.raises(Unsupported):
        story.turn(None, Decision(request=request, verdict=verdict))
    story.end()


def test_an_answer_names_no_request() -> None:
    """unknown_request, repeated_decision and the like: a run takes a task and nothing that answers."""
    assert {"self", "task", "cancellation_token", "output_task_messages"} == parameters(AssistantAgent.run)


def test_a_run_that_waits_takes_no_message() -> None:
    """message_with_answers, stage: an answer goes to the run that waits."""
    story = began("")
    (request,) = story.paused("Pay.")

    with pytest.raises(Unsupported):
        story.turn("And hurry", approve(request))
    with pytest.raises(Unsupported):
        story.wait(story.agent.stage(()))
    story.end()


def test_a_state_is_returned_and_stored_nowhere() -> None:
    """stores_in_turns: neither an agent nor its `save_state` takes a store."""
    assert {"self"} == parameters(AssistantAgent.save_state)
    assert not {name for name in parameters(AssistantAgent.__init__) if "store" in name or "storage" in name}


def test_a_waiting_run_outlives_who_hangs_up() -> None:
    """hang_up: the turn is cancelled, and the tool of the run that it answered comes to its end."""
    story = Scenario(
        title="The caller hangs up while an approved call runs",
        tools=[scenario_tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")],
        model=[calls(scenario_call("pay", amount=5)), say("Paid.")],
        caller=["Pay.", decide(approved("c1"), hangs_up="started c1"), "Well?"],
    )
    source = InProcessSource(name="autogen", adapter=FLAVOURS[""], facts=describe_adapter(FLAVOURS[""]))
    run = asyncio.run(run_scenario(story, Variant(), source))

    assert ["returned"] == [event.how for event in run.events if isinstance(event, ToolEnd)]


def test_a_call_has_an_id() -> None:
    """missing_ids: the result of a call refuses to have none."""
    nameless: Any = None
    with pytest.raises(ValidationError):
        FunctionExecutionResult(call_id=nameless, name="pay", content="paid")


def test_nothing_answers_what_a_server_asks() -> None:
    """elicitation: a workbench takes a model for what its server wants sampled, and nothing else that answers."""
    from autogen_ext.tools.mcp import McpWorkbench

    assert {"self", "server_params", "tool_overrides", "model_client"} == parameters(McpWorkbench.__init__)


def test_nothing_counts_calls() -> None:
    """limit_tool_calls: an agent counts rounds."""
    limits = {name for name in parameters(AssistantAgent.__init__) if "max" in name or "limit" in name}

    assert {"max_tool_iterations"} == limits


def test_agents_are_not_shared() -> None:
    """sessions, nested_parallel: the documentation forbids it."""
    assert "not thread-safe or coroutine-safe" in str(AssistantAgent.__doc__)
    assert "must** disable parallel tool calls" in str(AgentTool.__doc__)


def test_code_is_approved_as_it_is() -> None:
    """edit, parallel: a response to the one request about all code says yes or no, and why."""
    assert {"approved", "reason"} == set(ApprovalResponse.model_fields)
    assert {"code", "context"} == set(ApprovalRequest.model_fields)
    assert "approval_func" in parameters(CodeExecutorAgent.__init__)


def test_a_running_team_cannot_be_saved() -> None:
    """serialize.json and what follows from it: the documentation warns of it."""
    assert "may not be consistent" in str(Swarm.save_state.__doc__)


def test_a_caller_loop_has_no_state() -> None:
    """serialize.json, streaming, limit_model_replies: it takes messages and gives messages, at its end."""
    assert {
        "caller",
        "tool_agent_id",
        "model_client",
        "input_messages",
        "tool_schema",
        "cancellation_token",
        "caller_source",
    } == parameters(tool_agent_caller_loop)
    assert inspect.iscoroutinefunction(tool_agent_caller_loop)
    assert {"self", "description", "tools"} == parameters(ToolAgent.__init__)


def test_reasoning_is_not_played() -> None:
    """reasoning, reasoning_between_calls, redacted_reasoning: the next input has nothing of it."""
    story = began("")
    story.world.replies[0] = reply(None, call("pay", amount=5), thoughts=[thought("It is small")])
    (request,) = story.paused("Pay 5.")
    story.turn(None, approve(request))
    sent = story.world.inputs[-1]
    story.end()

    assert "result" in [item.kind for item in sent]
    assert not any(item.kind == "reasoning" or "small" in str(item.text) for item in sent)


def test_a_listed_tool_has_no_annotations() -> None:
    """annotations: a workbench gives the schema of a tool, and no more."""
    from autogen_core.tools import ToolSchema

    assert {"name", "description", "parameters", "strict"} == set(ToolSchema.__annotations__)
