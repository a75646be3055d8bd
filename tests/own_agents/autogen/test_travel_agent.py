"""A travel agent of AutoGen with a gate that depends on the price, and with state that is saved and loaded.

https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/tutorial/human-in-the-loop.html
https://microsoft.github.io/autogen/stable/user-guide/agentchat-user-guide/tutorial/state.html
"""

from __future__ import annotations

from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.model_context import BufferedChatCompletionContext

from pytest_approvals import (
    Approvals,
    approve,
    approve_all,
    call,
    calls,
    decide,
    edit,
    reject,
    reject_all,
    say,
    send,
    when,
)

booked: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_booked() -> None:
    booked.clear()


def book_flight(price: int) -> str:
    """Books a flight."""
    booked.append(price)
    return f"booked for {price}"


def build(client: Any) -> AssistantAgent:
    return AssistantAgent(
        "travel",
        model_client=client,
        tools=[book_flight],
        model_context=BufferedChatCompletionContext(buffer_size=50),
        max_tool_iterations=4,
        reflect_on_tool_use=True,
    )


GATES = {"book_flight": when("price", greater_than=300)}
DEAR = [calls("book_flight", price=500), say("Booked.")]


def test_an_approved_flight_is_booked_once(approvals: Approvals) -> None:
    approvals.run(build, "Fly", model=DEAR, oracle=approve_all(), gated=GATES)

    assert [500] == booked


def test_a_rejected_flight_is_not_booked(approvals: Approvals) -> None:
    approvals.run(build, "Fly", model=DEAR, oracle=reject_all("too dear"), gated=GATES)

    assert [] == booked


@pytest.mark.parametrize("stream", [False, True])
def test_cheap_flights_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(
        build, "Fly", model=[calls("book_flight", price=50), say("Booked.")], gated=GATES, stream=stream
    )

    assert [] == run.requests
    assert [50] == booked


def test_each_of_two_flights_has_its_answer(approvals: Approvals) -> None:
    both = calls(call("book_flight", price=400), call("book_flight", price=900))
    approvals.run(
        build, model=[both, say("One.")], caller=[send("Both"), decide(approve("c1"), reject("c2"))], gated=GATES
    )

    assert [400] == booked


def test_a_conversation_goes_on_after_a_booking(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        model=[calls("book_flight", price=500), say("Booked."), say("At 9.")],
        caller=[send("Fly"), approve("c1"), send("When?")],
        gated=GATES,
    )

    assert "At 9." == run.output


def test_the_gate_is_only_about_the_price(approvals: Approvals) -> None:
    model = [calls("book_flight", price=300), calls("book_flight", price=301), say("Both.")]
    run = approvals.run(build, "Fly", model=model, oracle=approve_all(), gated=GATES)

    assert [{"price": 301}] == [request.arguments for request in run.requests]


def test_a_cheaper_flight_is_booked(approvals: Approvals) -> None:
    approvals.run(build, model=DEAR, caller=[send("Fly"), edit("c1", price=310)], gated=GATES)

    assert [310] == booked


def test_an_approval_survives_a_save(approvals: Approvals, serialize_mode: str) -> None:
    approvals.run(build, "Fly", model=DEAR, oracle=approve_all(), gated=GATES)

    assert [500] == booked
