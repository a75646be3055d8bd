"""Every way in which the documentation of AutoGen lets a person stand before a call, each as it writes it.

https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/tutorial/human-in-the-loop.html and
https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/swarm.html
"""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.agents import ApprovalRequest, ApprovalResponse, AssistantAgent, CodeExecutorAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.conditions import HandoffTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core.code_executor import CodeExecutor
from autogen_core.tools import FunctionTool, StaticWorkbench

from pytest_approvals import Approvals, approve, approve_all, calls, reject, reject_all, say, send
from pytest_approvals.errors import UsageError

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def refund_flight(flight_id: str) -> str:
    """Refunds a flight."""
    done.append(flight_id)
    return f"flight {flight_id} refunded"


def of_tools(client: Any) -> AssistantAgent:
    return AssistantAgent("travel", model_client=client, tools=[refund_flight], reflect_on_tool_use=True)


def of_workbench(client: Any) -> AssistantAgent:
    bench = StaticWorkbench([FunctionTool(refund_flight, description="Refunds a flight.")])
    return AssistantAgent("travel", model_client=client, workbench=bench, reflect_on_tool_use=True)


REFUND = [calls("refund_flight", flight_id="507811"), say("Refunded.")]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("oracle", [approve_all(), reject_all("no")])
@pytest.mark.parametrize("build", [of_tools, of_workbench])
def test_calls_that_the_test_gates(approvals: Approvals, build: Any, oracle: Any, stream: bool) -> None:
    """The framework has no mark for such tools: the test says which calls wait, in place of the application."""
    approvals.run(build, "Refund", model=REFUND, oracle=oracle, gated={"refund_flight"}, stream=stream)

    assert done == (["507811"] if oracle.name == "approve_all()" else [])


def lazy(client: Any) -> AssistantAgent:
    return AssistantAgent(
        "lazy_assistant",
        model_client=client,
        tools=[refund_flight],
        handoffs=[Handoff(target="user", message="Transfer to user.")],
        system_message="If you cannot complete the task, transfer to user. Otherwise, respond with 'TERMINATE'.",
    )


@pytest.mark.parametrize("stream", [False, True])
def test_handoff_to_the_user(approvals: Approvals, stream: bool) -> None:
    """An agent hands over to its user, who says how to go on with the next message."""
    run = approvals.run(
        lazy,
        model=[calls("transfer_to_user"), calls("refund_flight", flight_id="507811")],
        caller=[send("Refund it"), send("It is 507811"), approve("c2")],
        gated={"refund_flight"},
        stream=stream,
    )

    assert ["507811"] == done
    assert "Transfer to user." == run.turns[0].output


def build_team(client: Any) -> RoundRobinGroupChat:
    ends = HandoffTermination(target="user") | TextMentionTermination("TERMINATE")
    return RoundRobinGroupChat([lazy(client)], termination_condition=ends)


def test_handoff_in_a_team(approvals: Approvals) -> None:
    """A team ends with the hand-over, and is run again with the user's answer."""
    run = approvals.run(
        build_team,
        model=[calls("transfer_to_user"), calls("refund_flight", flight_id="507811"), say("TERMINATE")],
        caller=[send("Refund it"), send("It is 507811"), approve("c2")],
        gated={"refund_flight"},
    )

    assert ["507811"] == done
    assert "TERMINATE" == run.output


def build_swarm(client: Any) -> Swarm:
    agent = AssistantAgent("travel_agent", model_client=client, handoffs=["flights_refunder", "user"])
    refunder = AssistantAgent(
        "flights_refunder", model_client=client, handoffs=["travel_agent", "user"], tools=[refund_flight]
    )
    return Swarm(
        [agent, refunder],
        termination_condition=HandoffTermination(target="user") | TextMentionTermination("TERMINATE"),
    )


# The framework tells an agent what others said in the caller's name.
@pytest.mark.filterwarnings("ignore::pytest_approvals.errors.RequirementWarning")
@pytest.mark.parametrize("decision", [approve, reject])
def test_swarm(approvals: Approvals, decision: Any) -> None:
    """Agents of a swarm hand over to each other, and to the user who gives what is missing."""
    approvals.run(
        build_swarm,
        model={
            "main": [calls("transfer_to_flights_refunder"), say("TERMINATE")],
            "flights_refunder": [
                calls("transfer_to_user"),
                calls("refund_flight", flight_id="507811"),
                calls("transfer_to_travel_agent"),
            ],
        },
        caller=[send("Refund my flight"), send("507811"), decision("c3")],
        gated={"refund_flight"},
    )

    assert done == (["507811"] if decision is approve else [])


class Shell(CodeExecutor):
    """Is never started, as no code is run."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def restart(self) -> None: ...

    async def execute_code_blocks(self, code_blocks: Any, cancellation_token: Any) -> Any:
        raise NotImplementedError


def test_approval_func(approvals: Approvals) -> None:
    """The approvals of code are the application's own function, within an agent that calls no tools: it is refused."""

    def ask(request: ApprovalRequest) -> ApprovalResponse:
        return ApprovalResponse(approved=False, reason="no")

    def build(client: Any) -> CodeExecutorAgent:
        return CodeExecutorAgent("coder", code_executor=Shell(), model_client=client, approval_func=ask)

    with pytest.raises(UsageError, match="CodeExecutorAgent is not an AssistantAgent or a team of them"):
        approvals.run(build, "Run it", model=[say("Done.")])
