"""Idioms of the OpenAI Agents SDK whose outcome is not what the model's words alone say.

https://openai.github.io/openai-agents-python/tools/#custom-output-extraction, and
https://openai.github.io/openai-agents-python/handoffs/#input-filters
"""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, HostedMCPTool, function_tool, handoff
from agents.extensions import handoff_filters
from pydantic import BaseModel

from pytest_approvals import (
    Approvals,
    CheckFailed,
    approve,
    approve_all,
    call,
    calls,
    reject_all,
    returns,
    say,
    send,
)
from pytest_approvals.errors import UsageError


class Draft(BaseModel):
    title: str
    words: int


@function_tool(needs_approval=True)
def cancel(order: int, why: str = "other", note: str | None = None) -> str:
    """Cancels an order."""
    return f"cancelled {order}, {why}"


@function_tool
def look_up(question: str) -> str:
    """Looks an answer up."""
    return "yes"


def build_press(model: Any) -> Agent[Any]:
    async def read_title(result: Any) -> str:
        return str(result.final_output.title)

    writer = Agent(name="writer", model=model, output_type=Draft)
    press = Agent(name="press", model=model)
    write = writer.as_tool("write", "Writes a draft", custom_output_extractor=read_title)
    urgent = press.as_tool("urgent_desk", "Publishes at once", needs_approval=True)
    return Agent(name="chief", model=model, tools=[write, urgent, press.as_tool("desk", "Publishes")])


def build_triage(model: Any) -> Agent[Any]:
    orders = Agent(name="orders", model=model, tools=[cancel])
    seats = Agent(name="seats", model=model)
    handoffs = [handoff(orders, input_filter=handoff_filters.remove_all_tools), handoff(seats)]
    return Agent(name="triage", model=model, tools=[look_up], handoffs=handoffs)


def test_an_extractor_tells_a_part_of_an_answer(approvals: Approvals) -> None:
    """The application says which."""
    run = approvals.run(
        build_press,
        model={
            "main": [calls("write", input="spring"), say("Written.")],
            "writer": [say('{"title": "Spring", "words": 2}')],
        },
    )

    assert "Written." == run.output


@pytest.mark.parametrize("order", [["urgent_desk", "desk"], ["desk", "urgent_desk"]])
def test_an_agent_runs_by_two_tools_at_once(approvals: Approvals, order: list[str]) -> None:
    """The one that needs no approval runs first, though both are given the same input."""
    run = approvals.run(
        build_press,
        model={
            "main": [calls(*(call(name, input="Spring") for name in order)), say("Out.")],
            "press": [say("ok"), say("ok")],
        },
        oracle=reject_all(),
        unused=True,
    )

    assert 1 == len(run.calls["desk"].executions)
    assert [] == run.calls["urgent_desk"].executions


def test_a_default_that_a_strict_model_would_have_sent(approvals: Approvals) -> None:
    """The person was shown what the model wrote, and the tool ran with its own default."""
    script = [calls("cancel", order=5), say("Cancelled.")]
    agent = Agent(name="orders", tools=[cancel])
    run = approvals.run(agent, model=script, oracle=approve_all(), serialize="json")

    assert "cancelled 5, other" == run.calls["cancel"].executions[0].result


def test_a_filter_takes_out_what_the_next_agent_is_told(approvals: Approvals) -> None:
    """The application does not want it to know."""
    reply = calls(call("transfer_to_orders"), call("look_up", question="Open?"))
    run = approvals.run(
        build_triage,
        model={"main": [reply], "orders": [calls("cancel", order=5), say("Cancelled.")]},
        caller=[send("Cancel 5"), approve("c3")],
    )

    assert "Cancelled." == run.output


def test_the_first_of_two_hand_overs_counts(approvals: Approvals) -> None:
    """The SDK tells the model that it ignores the other one."""
    approvals.run(
        build_triage,
        model={"main": [calls(call("transfer_to_seats"), call("transfer_to_orders"))], "seats": [say("Hello.")]},
    )


def test_a_forgotten_gate_behind_a_hand_over_is_found(approvals: Approvals) -> None:
    """A filter excuses nothing else."""
    model = {"main": [calls("transfer_to_orders")], "orders": [calls("cancel", order=5), say("Cancelled.")]}

    def build(made: Any) -> Agent[Any]:
        ungated = function_tool(lambda order: f"cancelled {order}", name_override="cancel", strict_mode=False)
        orders = Agent(name="orders", model=made, tools=[ungated])
        filtered = handoff(orders, input_filter=handoff_filters.remove_all_tools)
        return Agent(name="triage", model=made, handoffs=[filtered])

    with pytest.raises(CheckFailed, match="approval-before-execution"):
        approvals.run(build, model=model, gated={"cancel"})


@pytest.mark.parametrize("build", [build_press, build_triage])
def test_drawn_stories(approvals: Approvals, build: Any) -> None:
    """Nothing of it is a finding, and an agent that took over is asked for no tool that only the first one has."""
    pytest.importorskip("hypothesis")
    approvals.explore(build, stories=15)


def build_hosted(model: Any) -> Agent[Any]:
    server: Any = {
        "type": "mcp",
        "server_label": "git",
        "server_url": "https://example.org",
        "require_approval": "always",
    }
    return Agent(name="repo", model=model, tools=[HostedMCPTool(tool_config=server), look_up])


def test_a_stub_names_a_tool_of_a_hosted_server(approvals: Approvals) -> None:
    """The settings of the server name none."""
    run = approvals.run(
        build_hosted,
        model=[calls("push", branch="main"), calls("look_up", question="Done?"), say("Pushed.")],
        tools={"push": returns("pushed"), "look_up": returns("yes")},
        oracle=approve_all(),
    )

    assert ["push"] == [request.tool for request in run.requests]


def test_a_hosted_tool_without_a_stub_is_explained(approvals: Approvals) -> None:
    """Nobody knows whether the server has it."""
    with pytest.raises(UsageError, match=r"hosted MCP server has; .* tools=\{'push': returns\(...\)\}"):
        approvals.run(build_hosted, model=[calls("push", branch="main"), say("Pushed.")])
