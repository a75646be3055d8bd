"""An orchestrator of Strands whose tool is an agent, with the SDK's own `HumanInTheLoop`.

https://strandsagents.com/docs/user-guide/sdk/agents/interventions/human-in-the-loop/
https://strandsagents.com/docs/user-guide/concepts/multi-agent/agents-as-tools/
"""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, tool
from strands.vended_interventions.hitl import HumanInTheLoop

from pytest_approvals import Approvals, approve, approve_all, calls, reject, reject_all, say, send

ordered: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_ordered() -> None:
    ordered.clear()


@tool
def order(product: str) -> str:
    """Orders a product."""
    ordered.append(product)
    return f"ordered {product}"


@tool
def find(product: str) -> str:
    """Finds a product."""
    return f"{product} costs 5"


def build(model: Any) -> Agent:
    buyer = Agent(
        model=model,
        name="buyer",
        tools=[order, find],
        interventions=[HumanInTheLoop(allowed_tools=["find"])],
        callback_handler=None,
    )
    return Agent(model=model, name="boss", tools=[buyer.as_tool()], callback_handler=None)


MODEL = {
    "main": [calls("buyer", input="Buy a lamp"), say("Bought.")],
    "buyer": [calls("find", product="lamp"), calls("order", product="lamp"), say("Ordered.")],
}


def test_an_approved_order_is_made_once(approvals: Approvals) -> None:
    run = approvals.run(build, "A lamp", model=MODEL, oracle=approve_all())

    assert ["lamp"] == ordered
    assert "Bought." == run.output


def test_a_rejected_order_is_not_made(approvals: Approvals) -> None:
    approvals.run(build, "A lamp", model=MODEL, oracle=reject_all())

    assert [] == ordered


def test_the_request_is_about_the_inner_call(approvals: Approvals) -> None:
    run = approvals.run(build, "A lamp", model=MODEL, oracle=approve_all())

    assert [("order", {"product": "lamp"})] == [(request.tool, request.arguments) for request in run.requests]


@pytest.mark.parametrize("stream", [False, True])
def test_what_is_allowed_runs_once(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(build, "A lamp", model=MODEL, oracle=approve_all(), stream=stream)

    assert 1 == len(run.calls["find"].executions)


def test_each_order_has_its_answer(approvals: Approvals) -> None:
    model = {
        "main": [calls("buyer", input="Buy"), say("One.")],
        "buyer": [calls("order", product="lamp"), calls("order", product="desk"), say("One.")],
    }
    approvals.run(build, model=model, caller=[send("Buy both"), reject("c2"), approve("c3")])

    assert ["desk"] == ordered


def test_without_an_order_nobody_is_asked(approvals: Approvals) -> None:
    model = {"main": [calls("buyer", input="Find"), say("5.")], "buyer": [calls("find", product="desk"), say("5.")]}
    run = approvals.run(build, "What does a desk cost?", model=model)

    assert [] == run.requests


@pytest.mark.parametrize("serialize", ["copy", "json"])
def test_an_inner_request_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "A lamp", model=MODEL, oracle=approve_all(), serialize=serialize)

    assert ["lamp"] == ordered


@pytest.mark.parametrize("script", ["purchase", "buyer"])
def test_an_agent_that_is_a_tool_is_scripted_by_either_name(approvals: Approvals, script: str) -> None:
    """That of the tool, or its own."""

    def build_renamed(model: Any) -> Agent:
        buyer = Agent(model=model, name="buyer", tools=[find], callback_handler=None)
        tools = [buyer.as_tool(name="purchase", description="Purchases a product.")]
        return Agent(model=model, name="boss", tools=tools, callback_handler=None)

    main = [calls("purchase", input="Find a lamp"), say("Found.")]
    inner = [calls("find", product="lamp"), say("5.")]
    run = approvals.run(build_renamed, "A lamp", model={"main": main, script: inner})

    assert 1 == len(run.calls["find"].executions)
