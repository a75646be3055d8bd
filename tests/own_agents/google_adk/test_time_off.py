"""A desk for time off in Google ADK, after "Advanced confirmation".

https://google.github.io/adk-docs/tools-custom/confirmation/

The body calls `request_confirmation` with a hint and a payload, and takes the number of days from the answer. Until
then, the model is told that it waits, and says so.
"""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import ToolContext

from pytest_approvals import (
    Approvals,
    CheckFailed,
    approve,
    approve_all,
    calls,
    decide,
    edit,
    reject,
    reject_all,
    say,
    send,
)

granted: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_granted() -> None:
    granted.clear()


def request_time_off(days: int, tool_context: ToolContext) -> dict[str, Any]:
    """Requests days off."""
    if days <= 2:
        granted.append(days)
        return {"status": "approved", "days": days}
    confirmation = tool_context.tool_confirmation
    if confirmation is None:
        tool_context.request_confirmation(hint="Approve the time off?", payload={"approved_days": 0})
        return {"status": "manager approval is required"}
    if not confirmation.confirmed:
        return {"status": "denied"}
    approved = min(days, (confirmation.payload or {}).get("approved_days", 0))
    granted.append(approved)
    return {"status": "approved", "days": approved}


def build(model: Any) -> LlmAgent:
    return LlmAgent(name="time_off", model=model, tools=[request_time_off])


ANSWERS: dict[Any, Any] = {
    "approve": lambda decision: {
        "confirmed": True,
        "payload": {"approved_days": decision.request.arguments["days"]},
    },
    "edit": lambda decision: {"confirmed": True, "payload": {"approved_days": decision.arguments["days"]}},
    "reject": {"confirmed": False},
}
WEEK = [calls("request_time_off", days=5), say("I have asked your manager."), say("Enjoy.")]


def test_an_approved_week_is_granted_once(approvals: Approvals) -> None:
    run = approvals.run(build, "A week off", model=WEEK, oracle=approve_all(), answers=ANSWERS)

    assert [5] == granted
    assert 1 == len(run.requests)


def test_a_rejected_week_is_not_granted(approvals: Approvals) -> None:
    approvals.run(build, "A week off", model=WEEK, oracle=reject_all(), answers=ANSWERS)

    assert [] == granted


def test_fewer_days_are_granted(approvals: Approvals) -> None:
    approvals.run(build, model=WEEK, caller=[send("A week off"), edit("c1", {"days": 3})], answers=ANSWERS)

    assert [3] == granted


@pytest.mark.parametrize("stream", [False, True])
def test_one_day_is_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(
        build, "A day off", model=[calls("request_time_off", days=1), say("Enjoy.")], answers=ANSWERS, stream=stream
    )

    assert [] == run.requests
    assert [1] == granted


def test_more_days_than_asked_for_are_not_granted(approvals: Approvals) -> None:
    approvals.run(build, model=WEEK, caller=[send("A week off"), edit("c1", {"days": 30})], answers=ANSWERS)

    assert [5] == granted


@pytest.mark.parametrize("serialize", ["json", "native.sqlite"])
def test_an_approval_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "A week", model=WEEK, oracle=approve_all(), answers=ANSWERS, serialize=serialize)

    assert [5] == granted


TWO = [calls("request_time_off", days=5), calls("request_time_off", days=6), say("I have asked."), say("Enjoy.")]


def test_two_requests_are_answered_at_once(approvals: Approvals) -> None:
    answer = decide(approve("c1"), reject("c2"))
    approvals.run(build, model=TWO, caller=[send("Two trips"), answer], answers=ANSWERS)

    assert [5] == granted


def test_the_framework_forgets_an_answer_behind_the_next_one(approvals: Approvals) -> None:
    """After the second answer, it tells the model that the first request still waits: that is found."""
    with pytest.raises(CheckFailed, match="result-matches-its-call"):
        approvals.run(
            build,
            model=[*TWO, say("Enjoy both.")],
            caller=[send("Two trips"), approve("c1"), approve("c2")],
            answers=ANSWERS,
        )

    assert [5, 6] == granted
