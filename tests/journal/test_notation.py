"""Journals in short lines."""

from __future__ import annotations

import pytest

from pytest_approvals.errors import JournalError
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.journal.validation import find_violations

STORY = """
    send Pay 5                    # the caller writes
    model c1 pay(amount=5)
    pause c1
    save
    restore
    approve c1
    go
    run c1 -> paid 5
    done
"""


def test_numbers_and_the_frame_are_filled_in():
    """A few lines stand for a whole journal."""
    events = parse_notation(STORY)

    assert [
        *("header", "agent.start", "turn.start", "model.request", "model.answer", "turn.end"),
        *("store.save", "agent.start", "store.restore", "caller.decide", "turn.start", "tool.start", "tool.end"),
        *("model.request", "model.answer", "turn.end", "run.end"),
    ] == [event.kind for event in events]
    assert list(range(1, 18)) == [event.n for event in events]
    assert [] == find_violations(events)


def test_inputs_of_the_model_are_kept():
    """The next input holds what was sent, said, called and returned."""
    *_, asked = (event for event in parse_notation(STORY) if event.kind == "model.request")

    assert [
        {"kind": "user", "text": "Pay 5", "message": 1},
        {"kind": "call", "id": "c1", "tool": "pay", "arguments": {"amount": 5}, "message": 2},
        {"kind": "result", "id": "c1", "text": "paid 5", "message": 3},
    ] == asked.items


def test_an_unknown_line():
    """A line that begins with no known word is refused, with the nearest one named."""
    with pytest.raises(JournalError) as caught:
        parse_notation("send Hello\nfinsh Hello")

    assert "notation:2: no line begins with 'finsh'; did you mean 'finish'?" == str(caught.value)


def test_an_unreadable_line():
    """A line about a call that nobody made is refused."""
    with pytest.raises(JournalError) as caught:
        parse_notation("send Hello\nrun c9 -> ok")

    assert "notation:2: cannot read 'run c9 -> ok': KeyError('c9')" == str(caught.value)


def test_a_tool_without_parameters():
    """A tool that is not written as one is refused."""
    with pytest.raises(JournalError) as caught:
        parse_notation("tool pay always")

    assert "NAME(PARAMETER: TYPE, ...) APPROVAL" in str(caught.value)
