"""Making drafts small."""

from __future__ import annotations

from pytest_approvals.campaigns.story_shrinking import minimize
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.conversations.reproduce.shrink import shrink


def test_what_is_not_needed_is_taken_out_in_large_pieces() -> None:
    """One item of a thousand is found with few questions."""
    asked: list[int] = []

    def holds(left: tuple[int, ...]) -> bool:
        asked.append(len(left))
        return 617 in left

    assert (617,) == minimize(range(1000), holds)
    assert len(asked) < 50


def test_items_that_are_needed_together_stay_together() -> None:
    """In any position."""
    assert (3, 40, 41) == minimize(range(64), lambda left: {3, 40, 41} <= set(left))


def test_everything_that_does_not_matter_goes(stored: ScenarioDraft) -> None:
    """Turns, replies, other calls, arguments, results, reasons and further sentences."""

    def mentions_the_rejection(draft: ScenarioDraft) -> bool:
        return any(answer.verdict == "reject" for turn in draft.turns for answer in turn.decisions)

    assert {
        "title": "A call of refund is rejected",
        "tools": {"refund": {"approval": "always"}},
        "model": [{"calls": [{"id": "c1", "tool": "refund"}]}],
    } == {
        key: value for key, value in build_document(shrink(stored, mentions_the_rejection)).items() if key != "caller"
    }


def test_a_decision_stays_as_long_as_its_call(stored: ScenarioDraft) -> None:
    """Without it the oracle would decide, and the story would be told by nobody."""
    small = shrink(stored, lambda draft: any(call.tool == "refund" for call in draft.calls()))
    assert [{"c1": "reject"}] == [step["decide"] for step in build_document(small)["caller"] if "decide" in step]


def test_what_is_needed_stays(stored: ScenarioDraft) -> None:
    """If nothing may go, the draft is what it was."""
    assert stored == shrink(stored, lambda draft: False)
