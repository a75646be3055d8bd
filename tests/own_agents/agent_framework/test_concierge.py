"""A concierge of the Agent Framework with an agent for a tool, and a middleware around its functions.

https://learn.microsoft.com/en-us/agent-framework/agents/tools/tool-approval
https://learn.microsoft.com/en-us/agent-framework/tutorials/agents/agent-as-function-tool
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from agent_framework import Agent, FunctionInvocationContext, tool

from pytest_approvals import Approvals, approve, approve_all, calls, reject, reject_all, say, send

log: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_logged() -> None:
    log.clear()


@tool(approval_mode="always_require")
def book_table(restaurant: str, seats: int) -> str:
    """Books a table."""
    log.append(restaurant)
    return f"{seats} seats at {restaurant}"


@tool
def find_restaurant(food: str) -> str:
    """Finds a restaurant."""
    return f"the {food} house"


async def audit(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
    log.append(f"before {context.function.name}")
    await call_next()


def build(client: Any) -> Agent:
    return Agent(client=client, name="concierge", tools=[find_restaurant, book_table], middleware=[audit])


def build_with_translator(client: Any) -> Agent:
    translator = Agent(client=client, name="translator", description="Translates.")
    return Agent(client=client, name="concierge", tools=[translator.as_tool(), book_table])


DINNER = [calls("find_restaurant", food="fish"), calls("book_table", restaurant="Fish", seats=2), say("Booked.")]


def test_an_approved_table_is_booked_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Dinner", model=DINNER, oracle=approve_all())

    assert ["before find_restaurant", "before book_table", "Fish"] == log
    assert "Booked." == run.output


def test_a_rejected_table_is_not_booked(approvals: Approvals) -> None:
    approvals.run(build, "Dinner", model=DINNER, oracle=reject_all())

    assert "Fish" not in log


@pytest.mark.parametrize("stream", [False, True])
def test_the_search_is_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(build, "Dinner", model=DINNER, oracle=approve_all(), stream=stream)

    assert ["book_table"] == [request.tool for request in run.requests]


def test_each_table_has_its_answer(approvals: Approvals) -> None:
    model = [calls("book_table", restaurant="A", seats=1), calls("book_table", restaurant="B", seats=1), say("One.")]
    approvals.run(build, model=model, caller=[send("Both"), reject("c1"), approve("c2")])

    assert "B" in log
    assert "A" not in log


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Dinner", model=DINNER, oracle=approve_all())

    assert 1 == log.count("Fish")


def test_an_agent_that_is_a_tool_answers(approvals: Approvals) -> None:
    run = approvals.run(
        build_with_translator, "Translate", model=[calls("translator", task="Hi"), say("Hola."), say("Hola!")]
    )

    assert "Hola!" == run.output
