"""Neighbours: a conversation that does not fail itself, and the change with which it does."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.conversations.histories.readers import FormatDetector
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.neighbours import NeighbourSearch
from pytest_approvals.conversations.reproduce.reproducer import Reproducer, Symptom, find_symptoms
from pytest_approvals.conversations.reproduce.trials import TrialAgent, build_scenario
from pytest_approvals.runner.run_context import RunLimits


@pytest.fixture
def draft(written: Any) -> ScenarioDraft:
    """The draft of a .NET conversation with a call that waits for its decision."""
    made: ScenarioDraft = written.draft(
        written.message("user", "Refund order 7"),
        written.message("assistant", written.request(written.call("refund", "c1", {"order": 7}))),
    )
    return made


def test_a_neighbour_fails_on_one_agent_only(draft: ScenarioDraft) -> None:
    """Its story is sound on the reference agent, and its check holds on the other one."""
    agent, other, reference = TrialAgent("meai==10.4"), TrialAgent("meai==robust"), TrialAgent("reference")
    search = NeighbourSearch(
        agent, [other], reference, most=20, seconds=60, most_trials=5, report_progress=lambda _: None
    )

    found = search.find(build_scenario(draft), ["usable-after-refusal"])

    assert found is not None
    assert "usable-after-refusal" == found.check
    assert found.check in agent.failing_checks(found.story, found.variant)
    assert found.check not in other.failing_checks(found.story, found.variant)
    assert reference.is_sound(found.story, found.variant)


def test_what_was_not_reproduced_is_said(draft: ScenarioDraft) -> None:
    """A symptom that nothing shows is named, with the nearest failure."""
    symptom = Symptom(rule="time-order", what="time runs backwards", where="message 1", checks=("sessions-isolated",))
    reproducer = Reproducer(
        ["meai==10.4"], limit=RunLimits(seconds=10), most_trials=5, report_progress=lambda _: None, most_neighbours=1
    )

    found = reproducer.reproduce(draft, "From a test.", (), (symptom,))

    assert found.failing_check is not None
    assert (symptom,) == found.missing
    assert "Not reproduced: time runs backwards" in " ".join(found.text.split())


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
