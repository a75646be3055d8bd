"""A travel desk in Google ADK that hands over to sub-agents, after https://google.github.io/adk-docs/agents/multi-agents/.

The booking agent gates its own tool; an agent that is a tool writes the summary.
"""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool
from google.adk.tools.agent_tool import AgentTool

from pytest_approvals import Approvals, approve_all, calls, reject_all, say

booked: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_booked() -> None:
    booked.clear()


def book_hotel(city: str) -> str:
    """Books a hotel."""
    booked.append(city)
    return f"a room in {city}"


def list_hotels(city: str) -> list[str]:
    """Lists hotels."""
    return ["Bristol"]


def build(model: Any) -> LlmAgent:
    booking = LlmAgent(
        name="booking",
        model=model,
        description="Books hotels.",
        tools=[list_hotels, FunctionTool(book_hotel, require_confirmation=True)],
    )
    writer = LlmAgent(name="writer", model=model, description="Writes summaries.")
    return LlmAgent(name="desk", model=model, sub_agents=[booking], tools=[AgentTool(agent=writer)])


BOOKING = {
    "main": [calls("transfer_to_agent", agent_name="booking")],
    "booking": [calls("list_hotels", city="Rome"), calls("book_hotel", city="Rome"), say("Booked.")],
}


def test_an_approved_room_is_booked_once(approvals: Approvals) -> None:
    run = approvals.run(build, "A room in Rome", model=BOOKING, oracle=approve_all())

    assert ["Rome"] == booked
    assert "Booked." == run.output


def test_a_rejected_room_is_not_booked(approvals: Approvals) -> None:
    approvals.run(build, "A room in Rome", model=BOOKING, oracle=reject_all())

    assert [] == booked


def test_the_request_is_about_the_tool_of_the_sub_agent(approvals: Approvals) -> None:
    run = approvals.run(build, "A room in Rome", model=BOOKING, oracle=approve_all())

    assert [("book_hotel", {"city": "Rome"})] == [(request.tool, request.arguments) for request in run.requests]


@pytest.mark.parametrize("stream", [False, True])
def test_what_needs_no_approval_runs_once(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(build, "A room in Rome", model=BOOKING, oracle=approve_all(), stream=stream)

    assert [["Bristol"]] == [one.result for one in run.calls["list_hotels"].executions]


@pytest.mark.parametrize("serialize", ["json", "native.sqlite"])
def test_an_approval_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "A room in Rome", model=BOOKING, oracle=approve_all(), serialize=serialize)

    assert ["Rome"] == booked


# The framework warns of its own code.
@pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")
def test_an_agent_that_is_a_tool_is_not_asked_about(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        "Sum it up",
        model={"main": [calls("writer", request="Sum it up"), say("Here.")], "writer": [say("Rome was fine.")]},
    )

    assert [] == run.requests
    assert "Here." == run.output
