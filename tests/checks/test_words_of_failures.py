"""What failures say of what happened instead."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS, SHOWN_STATUSES, judge
from pytest_approvals.journal.events import Event, RunEnd
from pytest_approvals.journal.notation import parse_notation


def list_actual(events: list[Event], check: str) -> list[str]:
    """Returns what there is instead of what a check expects, of each failure."""
    return [each.actual for each in judge(events, [CHECKS[check]]) if each.status in SHOWN_STATUSES]


def test_a_spoiled_session_is_named_with_its_error() -> None:
    """The first message that is refused says why."""
    lines = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 -> paid 5
    down 500
    fail ModelDown: status 500
    send Is it paid?
    fail StateError: c1 has no response
    end completed: none
    """
    assert ["each is refused: StateError: c1 has no response"] == list_actual(
        parse_notation(lines), "usable-after-refusal"
    )


def test_a_run_after_its_caller_had_left_is_named_so() -> None:
    """It returned, and nobody was there to know of it."""
    lines = """
    tool read(path: string) always mcp disk
    send Go
    model c1 read(path=a)
    pause c1
    approve c1
    go
    start c1
    hangup c1 runs
    returns c1 text of a
    send And now?
    start c1
    returns c1 text of a
    tell c1 text of a
    done
    """
    assert ["it runs again after its caller had left, and was not approved again"] == list_actual(
        parse_notation(lines), "runs-at-most-once"
    )


@pytest.mark.parametrize(
    ("how", "error", "expected"),
    [
        ("timeout", ["SignalMissing", "c1 waits for 'ready'"], ["c1 waits for 'ready'"]),
        ("timeout", ["SignalMissing"], ["SignalMissing"]),
        ("timeout", ["TimeoutError", "30 s"], []),
        ("completed", ["SignalMissing", "c1 waits for 'ready'"], []),
    ],
)
def test_a_signal_that_its_story_never_gives_is_named(how: str, error: list[str], expected: list[str]) -> None:
    """The story holds a tool for ever, which says nothing about its agent."""
    events = parse_notation("send Hello\nmodel c1 read(path=a)\nstart c1\ntimeout\nend timeout, SignalMissing")
    end = next(event for event in events if isinstance(event, RunEnd))
    end.how, end.error = how, error
    assert expected == list_actual(events, "scenario-exercised")
