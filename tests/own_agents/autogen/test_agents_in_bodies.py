"""Agents of AutoGen that the body of a tool runs by itself are seen: their models, their tools and their requests."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.conditions import MaxMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import AgentTool, TeamTool

from pytest_approvals import Approvals, approve_all, calls, leave, reject_all, returns, say, send
from pytest_approvals.errors import UsageError

refunded: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_refunded() -> None:
    refunded.clear()


def look_up(order: int) -> str:
    """Looks an order up."""
    return f"order {order} is old"


async def refund(order: int) -> str:
    """Refunds an order."""
    refunded.append(order)
    return f"order {order} is refunded"


def build_agent(name: str, client: Any, *tools: Any) -> AssistantAgent:
    return AssistantAgent(name, client, tools=list(tools), max_tool_iterations=5)


def build_desk(client: Any) -> AssistantAgent:
    async def audit(order: int) -> str:
        """Audits an order."""
        auditor = build_agent("auditor", client, look_up, refund)
        result = await auditor.run(task=f"Audit order {order}")
        return str(result.messages[-1].content)  # type: ignore[union-attr]

    return build_agent("desk", client, audit, refund)


def build_blocking_desk(client: Any) -> AssistantAgent:
    auditor = build_agent("auditor", client, look_up, refund)

    def audit(order: int) -> str:
        """Audits an order, in a thread with a loop of its own."""
        result = asyncio.run(auditor.run(task=f"Audit order {order}"))
        return str(result.messages[-1].content)  # type: ignore[union-attr]

    return build_agent("desk", client, audit, refund)


def build_deep_desk(client: Any) -> AssistantAgent:
    async def check(order: int) -> str:
        """Checks an order."""
        clerk = build_agent("clerk", client, look_up, refund)
        return str((await clerk.run(task="Check")).messages[-1].content)  # type: ignore[union-attr]

    async def audit(order: int) -> str:
        """Audits an order."""
        auditor = build_agent("auditor", client, check)
        events = [event async for event in auditor.run_stream(task="Audit")]
        return str(events[-1].messages[-1].content)  # type: ignore[union-attr]

    return build_agent("desk", client, audit)


def build_team_desk(client: Any) -> AssistantAgent:
    async def audit(order: int) -> str:
        """Lets a team audit an order."""
        auditor = build_agent("auditor", client, look_up, refund)
        team = RoundRobinGroupChat([auditor], termination_condition=MaxMessageTermination(2))
        return str((await team.run(task="Audit")).messages[-1].content)  # type: ignore[union-attr]

    return build_agent("desk", client, audit)


def build_manager(client: Any) -> AssistantAgent:
    return build_agent("manager", client, AgentTool(build_agent("auditor", client, look_up, refund)))


BY_NAME = {
    "main": [calls("audit", order=42), say("Done.")],
    "auditor": [calls("look_up", order=42), say("No objection.")],
}
IN_ORDER = [calls("audit", order=42), calls("look_up", order=42), say("No objection."), say("Done.")]


@pytest.mark.parametrize("build", [build_desk, build_blocking_desk])
@pytest.mark.parametrize("model", [BY_NAME, IN_ORDER], ids=["by name", "in order"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_in_a_body_is_seen(approvals: Approvals, build: Any, model: Any, stream: bool) -> None:
    """Its replies come from the script, also in a thread, and the runs of its tools are recorded."""
    run = approvals.run(build, "Audit", model=model, stream=stream)

    assert "order 42 is old" == run.calls["look_up"].executions[0].result
    assert "No objection." == run.calls["audit"].executions[0].result
    assert "Done." == run.output


GATED_INSIDE = {
    "main": [calls("audit", order=42), say("Done.")],
    "auditor": [calls("refund", order=42), say("Refunded.")],
}


@pytest.mark.parametrize("build", [build_desk, build_blocking_desk, build_team_desk])
@pytest.mark.parametrize(("oracle", "expected"), [(approve_all(), [42]), (reject_all("no"), [])])
def test_a_gate_inside_is_asked(approvals: Approvals, build: Any, oracle: Any, expected: list[int]) -> None:
    """A call of a gated tool waits for its decision in the body that runs the agent."""
    run = approvals.run(build, "Audit", model=GATED_INSIDE, oracle=oracle, gated={"refund"})

    assert ["refund"] == [request.tool for request in run.requests]
    assert expected == refunded


def test_agents_two_deep_are_seen(approvals: Approvals) -> None:
    """A body of an agent in a body may run a third one."""
    model = {
        "main": [calls("audit", order=42), say("Done.")],
        "auditor": [calls("check", order=42), say("Fine.")],
        "clerk": [calls("refund", order=42), say("Refunded.")],
    }
    run = approvals.run(build_deep_desk, "Audit", model=model, oracle=approve_all(), gated={"refund"})

    assert [42] == refunded
    assert "Refunded." == run.calls["check"].executions[0].result
    assert "Fine." == run.calls["audit"].executions[0].result


def test_a_run_may_end_while_a_body_waits(approvals: Approvals) -> None:
    """What nobody answers is pending at the end; the body that waits is cancelled with the agent."""
    run = approvals.run(build_desk, model=GATED_INSIDE, caller=[send("Audit"), leave()], gated={"refund"})

    assert ["refund"] == [request.tool for request in run.requests]
    assert [] == refunded


@pytest.mark.parametrize("build", [build_desk, build_manager])
def test_a_body_that_waits_is_not_saved(approvals: Approvals, build: Any) -> None:
    """The framework's state does not hold it, and the body would begin anew: the error says so."""
    model = {**GATED_INSIDE, "main": [calls("audit", order=42), say("Done.")]}
    if build is build_manager:
        model["main"] = [calls("auditor", task="Audit"), say("Done.")]

    with pytest.raises(UsageError, match="does not hold the run of 'auditor' inside a tool"):
        approvals.run(build, "Audit", model=model, gated={"refund"}, serialize="json")


def test_a_stub_inside_is_not_run(approvals: Approvals) -> None:
    """A stub replaces the tool of an agent in a body, too."""
    run = approvals.run(build_desk, "Audit", model=GATED_INSIDE, tools={"refund": returns("ok")}, gated=set())

    assert [] == refunded
    assert "ok" == run.calls["refund"].executions[0].result


def test_nothing_of_the_framework_stays_replaced(approvals: Approvals) -> None:
    """After the run, agents run as they did before."""
    before = AssistantAgent.on_messages_stream
    approvals.run(build_desk, "Audit", model=BY_NAME)

    assert before is AssistantAgent.on_messages_stream


def build_head_of_team(client: Any) -> AssistantAgent:
    auditor = build_agent("auditor", client, look_up, refund)
    team = RoundRobinGroupChat([auditor], termination_condition=MaxMessageTermination(2))
    tool = TeamTool(team, name="auditor", description="Audits.", return_value_as_last_message=True)
    return build_agent("head", client, tool)


@pytest.mark.parametrize("build", [build_manager, build_head_of_team])
@pytest.mark.parametrize("stream", [False, True])
def test_agents_that_are_tools_are_seen(approvals: Approvals, build: Any, stream: bool) -> None:
    """In `AgentTool` and `TeamTool`, with what they answer as the result of the tool."""
    model = {
        "main": [calls("auditor", task="Audit"), say("Done.")],
        "auditor": [calls("refund", order=42), say("Refunded.")],
    }
    run = approvals.run(build, "Audit", model=model, oracle=approve_all(), gated={"refund"}, stream=stream)

    assert [42] == refunded
    assert ["refund"] == [request.tool for request in run.requests]
    assert str(run.calls["auditor"].executions[0].result).endswith("Refunded.")
