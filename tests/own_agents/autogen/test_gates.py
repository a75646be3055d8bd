"""Every way in which the documentation of AutoGen lets a person stand before a call, each as it writes it.

https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/tutorial/human-in-the-loop.html,
https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/swarm.html and
https://microsoft.github.io/autogen/stable/user-guide/core-user-guide/cookbook/tool-use-with-intervention.html
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import httpx
import pytest
from autogen_agentchat.agents import (
    ApprovalRequest,
    ApprovalResponse,
    AssistantAgent,
    CodeExecutorAgent,
    UserProxyAgent,
)
from autogen_agentchat.base import Handoff
from autogen_agentchat.conditions import HandoffTermination, TextMentionTermination
from autogen_agentchat.teams import RoundRobinGroupChat, Swarm
from autogen_core import (
    AgentId,
    DefaultInterventionHandler,
    FunctionCall,
    MessageContext,
    RoutedAgent,
    SingleThreadedAgentRuntime,
    message_handler,
)
from autogen_core.code_executor import CodeExecutor, CodeResult
from autogen_core.models import UserMessage
from autogen_core.tool_agent import ToolAgent, ToolException, tool_agent_caller_loop
from autogen_core.tools import FunctionTool, StaticWorkbench
from autogen_ext.models.openai import OpenAIChatCompletionClient

from pytest_approvals import Approvals, ScriptedModel, approve, approve_all, calls, reject, reject_all, say, send
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


# --- what the application is asked within the run ---------------------------------------------------------------------


@pytest.mark.parametrize("words", [("APPROVE",), ("Shorter", "APPROVE")])
def test_user_proxy(approvals: Approvals, words: tuple[str, ...]) -> None:
    """The person is a member of the team, whose function the application gives."""
    given = iter(words)

    def build(client: Any) -> RoundRobinGroupChat:
        user = UserProxyAgent("user_proxy", input_func=lambda prompt: next(given))
        writer = AssistantAgent("assistant", model_client=client)
        return RoundRobinGroupChat([writer, user], termination_condition=TextMentionTermination("APPROVE"))

    run = approvals.run(build, "Write a poem", model=[say(f"Draft {number}") for number, _ in enumerate(words)])

    assert f"Draft {len(words) - 1}" == run.output


class Shell(CodeExecutor):
    """Keeps what it is given."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def restart(self) -> None: ...

    async def execute_code_blocks(self, code_blocks: Any, cancellation_token: Any) -> CodeResult:
        done.extend(block.code for block in code_blocks)
        return CodeResult(exit_code=0, output="42")


def forbid_removals(request: ApprovalRequest) -> ApprovalResponse:
    return ApprovalResponse(approved="rm" not in request.code, reason="nothing is removed")


def of_coder(client: Any) -> CodeExecutorAgent:
    return CodeExecutorAgent("coder", code_executor=Shell(), model_client=client, approval_func=forbid_removals)


def of_coder_and_executor(client: Any) -> RoundRobinGroupChat:
    """Let one agent write the code, and another one without a model execute it."""
    executor = CodeExecutorAgent("executor", code_executor=Shell(), approval_func=forbid_removals)
    ends = TextMentionTermination("TERMINATE")
    return RoundRobinGroupChat([AssistantAgent("coder", model_client=client), executor], termination_condition=ends)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("code", "executed"), [("print(6*7)", ["print(6*7)\n"]), ("rm -r .", [])])
@pytest.mark.parametrize("build", [of_coder, of_coder_and_executor])
def test_approval_func(approvals: Approvals, build: Any, code: str, executed: list[str], stream: bool) -> None:
    """The application's own function decides on code; the model writes it as text."""
    model = [say(f"```python\n{code}\n```"), say("TERMINATE")]
    run = approvals.run(build, "Compute", model=model, stream=stream)

    assert executed == done
    assert "TERMINATE" == run.output


def test_approval_func_without_a_model(approvals: Approvals) -> None:
    """An executor alone has nothing that a script could be for."""

    def build(client: Any) -> CodeExecutorAgent:
        return CodeExecutorAgent("coder", code_executor=Shell(), approval_func=forbid_removals)

    with pytest.raises(UsageError, match="CodeExecutorAgent is not an AssistantAgent or a team of them"):
        approvals.run(build, "Run it", model=[say("Done.")])


# --- an application of the core API -----------------------------------------------------------------------------------


class ToolUseAgent(RoutedAgent):
    def __init__(self, client: Any, tools: Sequence[Any]) -> None:
        super().__init__("Uses tools.")
        self.client, self.tools = client, tools

    @message_handler
    async def handle(self, message: UserMessage, ctx: MessageContext) -> UserMessage:
        output = await tool_agent_caller_loop(
            self,
            tool_agent_id=AgentId("executor", self.id.key),
            model_client=self.client,
            input_messages=[message],
            tool_schema=[tool.schema for tool in self.tools],
            cancellation_token=ctx.cancellation_token,
        )
        return UserMessage(content=str(output[-1].content), source="agent")


class Intervention(DefaultInterventionHandler):
    def __init__(self, permits: bool) -> None:
        self.permits = permits

    async def on_send(self, message: Any, *, message_context: MessageContext, recipient: AgentId) -> Any:
        if isinstance(message, FunctionCall) and not self.permits:
            raise ToolException(content="User denied tool execution.", call_id=message.id, name=message.name)
        return message


async def run_core(client: Any, permits: bool) -> str:
    """Run an application of the cookbook page "User Approval for Tool Execution using Intervention Handler"."""
    runtime = SingleThreadedAgentRuntime(intervention_handlers=[Intervention(permits)])
    tools = [FunctionTool(refund_flight, description="Refunds a flight.")]
    await ToolAgent.register(runtime, "executor", lambda: ToolAgent("Executes.", tools=list(tools)))
    await ToolUseAgent.register(runtime, "agent", lambda: ToolUseAgent(client, tools))
    runtime.start()
    response = await runtime.send_message(UserMessage(content="Refund", source="user"), AgentId("agent", "default"))
    await runtime.stop()
    return str(response.content)


@pytest.mark.parametrize("permits", [True, False])
def test_intervention_handler(scripted_model: ScriptedModel, permits: bool) -> None:
    """It sees each call that is sent to a `ToolAgent`; its client asks the scripted model."""
    scripted_model.calls("refund_flight", flight_id="507811").says("Over.")
    http = httpx.AsyncClient(transport=scripted_model.transport())
    client = OpenAIChatCompletionClient(model="gpt-4o-2024-08-06", api_key="none", http_client=http)

    assert "Over." == asyncio.run(run_core(client, permits))
    assert done == (["507811"] if permits else [])
    assert ("flight 507811 refunded" == scripted_model.requests[-1].items[-1]["text"]) is permits
