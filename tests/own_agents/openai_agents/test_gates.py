"""Every way in which the documentation of OpenAI Agents lets a person stand before a call, each as it writes it.

https://openai.github.io/openai-agents-python/human_in_the_loop/ and
https://openai.github.io/openai-agents-python/mcp/
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, HostedMCPTool, RunConfig, RunContextWrapper, function_tool
from agents.mcp import MCPServerStreamableHttp

from pytest_approvals import (
    Approvals,
    approve,
    approve_all,
    call,
    calls,
    decide,
    reject,
    reject_all,
    returns,
    say,
    send,
    tool,
    when,
)

done: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_done() -> None:
    done.clear()


def make(model: Any, *tools: Any, **options: Any) -> Agent[Any]:
    return Agent(name="desk", model=model, tools=list(tools), **options)


@function_tool(needs_approval=True)
async def cancel_order(order_id: int) -> str:
    """Cancels an order."""
    done.append(order_id)
    return f"cancelled {order_id}"


async def is_risky(context: RunContextWrapper[Any], parameters: dict[str, Any], call_id: str) -> bool:
    return "refund" in str(parameters.get("subject", "")).lower()


@function_tool(needs_approval=is_risky)
async def send_email(subject: str) -> str:
    """Sends an email."""
    done.append(subject)
    return f"sent {subject}"


@pytest.mark.parametrize("serialize", ["none", "json"])
@pytest.mark.parametrize("stream", [False, True])
def test_needs_approval(approvals: Approvals, serialize: Any, stream: bool) -> None:
    """A bool gates all calls of a tool."""
    model = [calls(call("cancel_order", order_id=1), call("cancel_order", order_id=2)), say("Done.")]
    caller = [send("Cancel"), decide(approve("c1"), reject("c2", "too late"))]
    run = approvals.run(
        lambda model: make(model, cancel_order),
        model=model,
        caller=caller,
        gated={"cancel_order"},
        serialize=serialize,
        stream=stream,
    )

    assert [1] == done
    assert "too late" in str(run.transcript)


def test_needs_approval_by_a_function(approvals: Approvals) -> None:
    """A function decides by the arguments."""
    run = approvals.run(
        lambda model: make(model, send_email),
        "Write",
        model=[calls("send_email", subject="Hi"), calls("send_email", subject="Refund"), say("Done.")],
        oracle=approve_all(),
        gated={"send_email": when("subject", starts_with="Refund")},
    )

    assert ["Hi", "Refund"] == done
    assert 1 == len(run.requests)


def test_a_message_for_rejections(approvals: Approvals) -> None:
    """`tool_error_formatter` says what the model is told."""

    def form(details: Any) -> str:
        return "The action was canceled because approval was rejected."

    run = approvals.run(
        lambda model: make(model, cancel_order),
        "Cancel",
        model=[calls("cancel_order", order_id=1), say("Well.")],
        oracle=reject_all(),
        run_options={"run_config": RunConfig(tool_error_formatter=form)},
    )

    assert [] == done
    assert "was canceled because approval was rejected" in str(run.transcript)


def test_agent_as_tool(approvals: Approvals) -> None:
    """An agent that is a tool is gated as a whole, and so are its own tools."""

    def build(model: Any) -> Agent[Any]:
        orders = Agent[Any](name="orders", model=model, tools=[cancel_order])
        ask = orders.as_tool(tool_name="ask_orders", tool_description="Asks the orders desk.", needs_approval=True)
        return make(model, ask)

    run = approvals.run(
        build,
        "Cancel",
        model={
            "main": [calls("ask_orders", input="Cancel 1"), say("Done.")],
            "orders": [calls("cancel_order", order_id=1), say("Cancelled.")],
        },
        oracle=approve_all(),
        gated={"ask_orders", "cancel_order"},
    )

    assert [1] == done
    assert ["ask_orders", "cancel_order"] == [request.tool for request in run.requests]


# --- MCP servers ------------------------------------------------------------------------------------------------------

POLICIES: dict[str, Any] = {
    "always": "always",
    "by-tool": {"pay": "always", "balance": "never"},
    "lists": {"always": {"tool_names": ["pay"]}, "never": {"tool_names": ["balance"]}},
    "function": lambda context, agent, tool: tool.name == "pay",
}


@pytest.mark.asyncio
@pytest.mark.parametrize("policy", POLICIES)
async def test_local_mcp(approvals: Approvals, mcp_server: Any, policy: str) -> None:
    """Each form of `require_approval` gates the calls of a server's tools."""
    bank = mcp_server(
        "bank", tool("pay", returns("paid"), parameters={"amount": "integer"}), tool("balance", returns("7"))
    )
    model = [calls("pay", amount=5), calls("pay", amount=6), say("Done.")]
    async with MCPServerStreamableHttp({"url": bank.url}, name="bank", require_approval=POLICIES[policy]) as server:
        await approvals.arun(
            lambda model: make(model, mcp_servers=[server]),
            model=model,
            caller=[send("Pay"), approve("c1"), reject("c2")],
            gated={"pay"},
        )

    assert [("pay", {"amount": 5})] == bank.ran


HOSTED: dict[str, Any] = {
    "always": "always",
    "lists": {"always": {"tool_names": ["pay"]}, "never": {"tool_names": ["balance"]}},
}


def hosted(gate: Any, **options: Any) -> Callable[[Any], Agent[Any]]:
    config: Any = {
        "type": "mcp",
        "server_label": "bank",
        "server_url": "https://bank.example",
        "require_approval": gate,
        "allowed_tools": ["pay", "balance"],
    }
    return lambda model: make(model, HostedMCPTool(tool_config=config, **options))


@pytest.mark.parametrize("serialize", ["none", "json"])
@pytest.mark.parametrize("gate", HOSTED)
def test_hosted_mcp(approvals: Approvals, gate: str, serialize: Any) -> None:
    """The provider asks, and the SDK surfaces what it asks."""
    run = approvals.run(
        hosted(HOSTED[gate]),
        model=[calls("pay", amount=5), calls("pay", amount=6), say("Done.")],
        caller=[send("Pay"), approve("c1"), reject("c2", "too much")],
        tools={"pay": returns("paid")},
        gated={"pay"} if gate == "lists" else {"pay", "balance"},
        serialize=serialize,
    )

    assert [{"amount": 5}] == [one.arguments for one in run.calls["pay"].executions]


def test_hosted_mcp_with_a_callback(approvals: Approvals) -> None:
    """With `on_approval_request` the application answers by itself, so that nobody is asked in the test."""

    def judge(request: Any) -> Any:
        return {"approve": False, "reason": "not today"}

    run = approvals.run(
        hosted("always", on_approval_request=judge), "Pay", model=[calls("pay", amount=5), say("Not paid.")]
    )

    assert [] == run.requests
    assert "Not paid." == run.output
