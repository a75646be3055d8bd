"""Which runs of a scenario have to come to the same."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import judge_group
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation

KEPT = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save
    restore
    approve c1
    go
    run c1 -> paid 5
    done
"""

LOST = KEPT.replace("run c1 -> paid 5", "tell c1 lost")


def fails(*runs):
    return any(verdict.fails for verdict in judge_group([read_history(run) for run in runs]))


def saved_by(release, lines):
    events = parse_notation(lines)
    events[0].variant = {**events[0].variant, "saved_by": release}
    return events


def test_what_another_release_saved():
    """A run that restores what another release saved is not compared with one that saved it itself."""
    assert fails(parse_notation(KEPT), parse_notation(LOST))
    assert not fails(parse_notation(KEPT), saved_by("1.0", LOST))
    assert fails(saved_by("1.0", KEPT), saved_by("1.0", LOST))


def varied(lines, **variant):
    events = parse_notation(lines)
    events[0].variant = {**events[0].variant, **variant}
    return events


def told(*runs):
    """Return what the checks of several runs say: expected, actual and witness of each failure."""
    verdicts = judge_group([read_history(run) for run in runs])
    return [(verdict.expected, verdict.actual, verdict.witness) for verdict in verdicts if verdict.fails]


def test_the_first_difference_is_told():
    """With the values that differ, if both runs have an event of one kind there, and the variants' names."""
    other = KEPT.replace("-> paid 5", "-> paid 6")

    assert [
        (
            "tool.end with result 'paid 5', as in none",
            "result 'paid 6' in json-fresh-append-stream-restored-uneven",
            (13,),
        )
    ] == told(
        varied(KEPT, serialize="none"),
        varied(
            other, serialize="json", resume="fresh", history="append", stream=True, source="restored", chunking="uneven"
        ),
    )


def test_the_plainest_run_is_the_measure():
    """Whichever comes first, the others are compared with the variant that deviates least."""
    other = KEPT.replace("-> paid 5", "-> paid 6")
    plain, streamed = varied(KEPT, serialize="none"), varied(other, serialize="json", stream=True)

    assert told(plain, streamed) == told(streamed, plain)
    assert "tool.end with result 'paid 5', as in none" == told(streamed, plain)[0][0]


def test_a_run_that_ends_early():
    """What one run has beyond the end of the other is told."""
    short = KEPT.replace("run c1 -> paid 5", "run c1 -> paid 5\n fail ModelDown: no").replace("done", "end left")
    expected, actual, _ = told(varied(KEPT, serialize="none"), varied(short, serialize="copy"))[0]

    assert "model.request (conversation 'main', agent 'main', items [" == expected[:57]
    assert "turn.end (turn 2, outcome 'failed'" == actual[:34]


@pytest.mark.parametrize(
    "apart", [{"oracle": "approve_all"}, {"protocol": "chat"}, {"saved_by": "1.0"}], ids=lambda apart: next(iter(apart))
)
def test_runs_that_are_not_compared(apart):
    """Another oracle decides otherwise, another protocol asks otherwise, another release saved otherwise."""
    plain = varied(KEPT, serialize="none")

    assert [] == told(plain, varied(LOST, serialize="json", **apart))
    assert told(plain, varied(LOST, serialize="json"))


@pytest.mark.parametrize("name", ["scenario", "agent"])
def test_other_stories_and_agents_are_not_compared(name):
    """Runs are compared with runs of the same scenario on the same agent."""
    other = varied(LOST, serialize="json")
    setattr(other[0], name, "another")

    assert [] == told(varied(KEPT, serialize="none"), other)


FORKED = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save a
    restore a
    approve c1
    go
    run c1 -> paid 5
    done
    restore a
    reject c1
    go
    tell c1 no
    done
"""


def test_two_futures_of_one_state():
    """A live object, a store and copies keep two futures differently, and each kind is compared with its own only."""
    other = FORKED.replace("tell c1 no\n    done", "fail AlreadySettled: req-1\n    end left")
    kinds = ("none", "native.sqlite", "json")

    assert [[], [], []] == [
        told(varied(FORKED, serialize=first), varied(other, serialize=second))
        for first, second in zip(kinds, (*kinds[1:], kinds[0]), strict=True)
    ]
    assert told(varied(FORKED, serialize="json"), varied(other, serialize="copy"))
    assert told(varied(FORKED, serialize="native.sqlite"), varied(other, serialize="native.sqlite", stream=True))


SKIPPED = """
    send Pay 5
    model c1 pay(amount=5)
    fail ToolError: another call
    skip no request
    end left
"""
SHOWN = """
    send Pay 5
    model c1 pay(amount=5)
    fail ToolError: another call
    save s1
    restore s1: c1
    approve c1
    go
    run c1 -> paid 5
    done
"""


def test_a_decision_that_was_left_out_behind_a_failure():
    """Only a run that restores its state finds the request of a failed turn; others are compared with their like."""
    assert [] == told(varied(SKIPPED, serialize="none"), varied(SHOWN, serialize="json"))
    assert told(varied(SKIPPED, serialize="json"), varied(SHOWN, serialize="copy"))
    assert told(
        varied(SKIPPED.replace("fail ToolError: another call\n", "pause c1\n"), serialize="none"),
        varied(SHOWN, serialize="json"),
    )
