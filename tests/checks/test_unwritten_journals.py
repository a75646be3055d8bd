"""What checks say about journals that the notation cannot write: cut off, or with another request or output."""

from __future__ import annotations

from pytest_approvals.checks import CHECKS, Verdict
from pytest_approvals.journal.events import DecisionMade, Event, ModelRequest, ToolEnd, TurnEnd
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation


def judge(check: str, events: list[Event]) -> list[Verdict]:
    """Returns the verdicts of a check on a journal."""
    return CHECKS[check].judge(read_history(events))


def test_a_run_without_an_end_is_shown_up_to_its_last_event() -> None:
    """There a reader sees how far it came."""
    events = parse_notation("send Hello\ndone")[:-1]
    verdicts = judge("run-ends", events)
    assert [("unknown", (events[-1].n,))] == [(verdict.status, verdict.witness) for verdict in verdicts]


def test_what_was_pending_when_a_journal_was_cut_off_is_unknown() -> None:
    """So messages may have been refused for it after a failure."""
    lines = """
    send Hello
    down 500
    fail ModelDown: 500
    send Again
    fail UserError: no
    """
    events = parse_notation(lines)
    assert ["fail"] == [verdict.status for verdict in judge("usable-after-refusal", events)]
    assert ["not-applicable"] == [verdict.status for verdict in judge("usable-after-refusal", events[:-1])]


def test_a_turn_that_hangs_after_a_call_was_cancelled_need_not_ask_about_its_sibling() -> None:
    """That one would have been asked about next."""
    lines = """
    send Pay
    model c1 pay(amount=5); c2 pay(amount=6)
    pause c1
    approve c1
    go
    run c1 !! stopped
    timeout
    end timeout
    """
    events = parse_notation(lines)
    for event in events:
        if isinstance(event, ToolEnd):
            event.how, event.error = "cancelled", None
    assert ["pass"] == [verdict.status for verdict in judge("every-gated-call-asked", events)]


def test_an_answer_to_the_first_of_two_requests_is_no_right_step() -> None:
    """The tool has asked again, so its first question is closed and may be refused."""
    lines = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 ??
    pause c1
    approve ?x
    go
    fail LookupError: x is not open
    approve c1
    go
    fail LookupError: q1 is not open
    """
    events = parse_notation(lines)
    assert ["fail"] == [verdict.status for verdict in judge("usable-after-refusal", events)]
    last = [event for event in events if isinstance(event, DecisionMade)][-1]
    assert "q2" == last.q
    last.q = "q1"
    assert ["not-applicable"] == [verdict.status for verdict in judge("usable-after-refusal", events)]


def test_a_turn_that_ends_without_any_output_lacks_what_its_model_said() -> None:
    """A framework that returns nothing has lost the answer."""
    events = parse_notation("send Hello\ndone")
    for event in events:
        if isinstance(event, TurnEnd):
            event.output = None
    assert ["warning"] == [verdict.status for verdict in judge("answer-given", events)]


def test_a_result_without_a_text_is_no_part_of_what_an_agent_said() -> None:
    """It may be a picture, and what that shows a journal does not hold."""
    lines = """
    tool ask(input: string) never runs helper
    send Go
    model o1 ask(input=one)
    model @o1/helper Here is what you asked for.
    tell o1 Here
    done
    """
    events = parse_notation(lines)
    assert ["fail"] == [verdict.status for verdict in judge("result-matches-its-call", events)]
    for event in events:
        for item in event.items if isinstance(event, ModelRequest) else ():
            if item["kind"] == "result":
                item["text"] = None
    assert ["pass"] == [verdict.status for verdict in judge("result-matches-its-call", events)]
