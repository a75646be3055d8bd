"""Neighbours: a conversation that does not fail itself, and the change with which it does."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.reproducer import Reproducer, Reproduction
from pytest_approvals.conversations.reproduce.symptoms import Symptom, find_symptoms
from pytest_approvals.runner.run_context import RunLimits

BAD, GOOD = "meai==10.4", "meai==robust"


@pytest.fixture
def draft(written: Any) -> ScenarioDraft:
    """The draft of a .NET conversation with one call, which nobody was asked about."""
    made: ScenarioDraft = written.draft(
        written.message("user", "How is order 7?"),
        written.message("assistant", written.call("look", "c1", {"order": 7}, flagged=True)),
        written.message("tool", {"$type": "functionResult", "callId": "c1", "result": "sent"}),
        written.message("assistant", "It was sent."),
    )
    return made


def reproduce(
    draft: ScenarioDraft, *, neighbours: int, symptoms: tuple[Symptom, ...] = (), check: str = ""
) -> Reproduction:
    """Reproduce a draft on the two agents."""
    reproducer = Reproducer(
        [BAD, GOOD],
        limit=RunLimits(seconds=10),
        most_trials=30,
        report_progress=lambda _: None,
        most_neighbours=neighbours,
        neighbour_seconds=60,
    )
    return reproducer.reproduce(draft, "From a test.", [check] if check else [], symptoms)


def test_a_change_makes_it_fail(draft: ScenarioDraft) -> None:
    """If the call is gated, the session is blocked; the scenario says that it is a neighbour."""
    assert reproduce(draft, neighbours=0).failing_check is None

    found = reproduce(draft, neighbours=60)

    assert found.failing_check is not None
    assert ([BAD], [GOOD]) == (list(found.failing), list(found.holding))
    assert found.neighbour is not None
    assert "It is a neighbour of the conversation" in found.text


def test_what_was_not_reproduced_is_said(draft: ScenarioDraft) -> None:
    """A symptom that no neighbour shows is named, with the nearest failure."""
    symptom = Symptom(rule="time-order", what="time runs backwards", where="message 1", checks=("sessions-isolated",))

    found = reproduce(draft, neighbours=30, symptoms=(symptom,))

    assert (symptom,) == found.missing
    assert "Not reproduced: time runs backwards (time-order, message 1)." in found.text.replace("\n  ", " ")


def test_the_symptoms_of_a_conversation_are_what_lint_finds(written: Any) -> None:
    """One for each rule, with the checks that show the same in a run."""
    request = written.request(written.call("refund", "c1", {"order": 7}))
    answer = {"$type": "toolApprovalResponse", "requestId": request["requestId"], "approved": True}
    conversation = [
        written.message("user", "Refund order 7"),
        written.message("assistant", request),
        written.message("user", {**answer, "toolCall": written.call("refund", "c1", {"order": 71})}),
    ]

    (symptom,) = find_symptoms(FormatDetector().read(conversation))

    what = "another call ran than the one that was decided about (arguments-as-approved, message 2, content 0)"
    assert what == str(symptom)
    assert "arguments-as-approved" == symptom.checks[0]
