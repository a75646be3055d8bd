"""A trader of AutoGen, after https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/tutorial/agents.html.

AutoGen marks no tools: `gated` says which calls wait for a person, and the rest is the agent as it is.
"""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.tools import AgentTool
from autogen_core.tools import FunctionTool

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send

bought: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_bought() -> None:
    bought.clear()


async def get_stock_price(ticker: str) -> float:
    """Gets the price of a stock."""
    return 150.0


def buy_stock(ticker: str) -> str:
    """Buys a stock."""
    bought.append(ticker)
    return f"bought {ticker}"


def build(client: Any) -> AssistantAgent:
    return AssistantAgent(
        "trader",
        model_client=client,
        tools=[get_stock_price, FunctionTool(buy_stock, description="Buys a stock.")],
        system_message="You trade.",
        max_tool_iterations=5,
    )


def build_manager(client: Any) -> AssistantAgent:
    return AssistantAgent("manager", model_client=client, tools=[AgentTool(build(client))], max_tool_iterations=5)


TRADE = [calls("get_stock_price", ticker="AAPL"), calls("buy_stock", ticker="AAPL"), say("Bought.")]


def test_an_approved_stock_is_bought_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Buy", model=TRADE, oracle=approve_all(), gated={"buy_stock"})

    assert ["AAPL"] == bought
    assert ["buy_stock"] == [request.tool for request in run.requests]


def test_a_rejected_stock_is_not_bought(approvals: Approvals) -> None:
    approvals.run(build, "Buy", model=TRADE, oracle=reject_all("too dear"), gated={"buy_stock"})

    assert [] == bought


def test_another_stock_is_bought(approvals: Approvals) -> None:
    approvals.run(
        build,
        model=[calls("buy_stock", ticker="AAPL"), say("Bought.")],
        caller=[send("Buy"), edit("c1", {"ticker": "MSFT"})],
        gated={"buy_stock"},
    )

    assert ["MSFT"] == bought


@pytest.mark.parametrize("stream", [False, True])
def test_prices_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(
        build,
        "Price?",
        model=[calls("get_stock_price", ticker="AAPL"), say("150.")],
        gated={"buy_stock"},
        stream=stream,
    )

    assert [] == run.requests


def test_each_call_has_its_answer(approvals: Approvals) -> None:
    model = [calls("buy_stock", ticker="A"), calls("buy_stock", ticker="B"), say("One.")]
    approvals.run(build, model=model, caller=[send("Both"), reject("c1", "no"), approve("c2")], gated={"buy_stock"})

    assert ["B"] == bought


def test_an_agent_that_is_a_tool_has_a_script_of_its_own(approvals: Approvals) -> None:
    run = approvals.run(
        build_manager,
        "Price?",
        model={
            "main": [calls("trader", task="Price of AAPL"), say("150.")],
            "trader": [calls("get_stock_price", ticker="AAPL"), say("It is 150.")],
        },
    )

    assert "150." == run.output


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Buy", model=TRADE, oracle=approve_all(), gated={"buy_stock"})

    assert ["AAPL"] == bought
