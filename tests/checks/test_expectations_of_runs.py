"""What `scenario-exercised` says about a run that does not reach what its scenario is about."""

from __future__ import annotations

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.notation import parse_notation


def list_findings(events):
    """Return what is expected, what is there instead, and where that shows."""
    verdicts = CHECKS["scenario-exercised"].judge(read_history(events))
    return [(each.expected, each.actual, each.witness) for each in verdicts if each.status == "harness-error"]


@pytest.mark.parametrize(
    ("lines", "findings"),
    [
        ("send Hello\ndone\nlost it died", [("an agent to judge", "it died", (7,))]),
        ("send Hello\ndone\nend broken", [("a whole run", "the run was broken: ", (7,))]),
        ("send Hello\ndone\nend interrupted", [("a whole run", "the run was interrupted: ", (7,))]),
        ("send Hello\ndone\nend left", []),
        ("reaches paused=2\nsend Hello\ndone", [("paused at least 2 times", "0 times", (1,))]),
        (
            "send Hello\nmodel Hi.\nfinish Hi.\nsend Again\nexhausted\nfail X: y\nsend More\nexhausted\nfail X: y",
            [("the model's script suffices", "that of main has no reply left, 2 times", (8,))],
        ),
        (
            "session a\nsend Hello\nexhausted\nfail X: y",
            [("the model's script suffices", "that of main in session a has no reply left", (4,))],
        ),
        ("send Hello\nexhausted\nfail X: y", [("the model's script suffices", "that of main has no reply left", (4,))]),
        ("reaches exhausted=1\nsend Hello\nexhausted\nfail X: y", []),
        ("send Hello\ndone\nskip no request", [("decide is played", "no request", (7,))]),
        ("send Hello\ndown 500\nfail X: y\nskip no request", []),
        ("send Hello\ndone\nsend Go\ndown 500\nfail X: y\nskip no request", []),
        (
            "send Hello\ndone\nskip no request\nsend Go\ndown 500\nfail X: y",
            [("decide is played", "no request", (7,))],
        ),
        (
            "expect runs c1\nsend Go\nmodel c1 read(path=a); c2 read(path=b)\nrun c1 -> a\nrun c2 -> b\ndone",
            [("runs of c1", "runs of c1, c2", (1,))],
        ),
        ("expect runs c1\nsend Go\nrun c1 read(path=a) -> a\ndone", [("runs of c1", "runs of nothing", (1,))]),
        ("expect output Done.\nsend Go\ndone\nsend More\ndown 500\nfail X: y", []),
        ("expect output Paid.\nsend Go\nmodel Done.\nfinish Done.", [("the output 'Paid.'", "'Done.'", (6,))]),
        ("expect output Paid.\nsend Go\ndown 500\nfail X: y", [("the output 'Paid.'", "None", (1,))]),
    ],
)
def test_a_run_that_misses_its_point(lines, findings):
    """Each with the event that shows it: the first one if nothing does."""
    assert findings == list_findings(parse_notation(lines))


REFUSED = """
    reaches approved=1
    session {}
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    save a
    rewrite 5 6
    {}
    unrestored a SignatureError: it was changed
    session {}
    skip no state
"""


@pytest.mark.parametrize(
    ("sessions", "between", "findings"),
    [
        (("", ""), "", []),
        (("one", "other"), "", [("decide is played", "no state", (12,))]),
        (("", ""), "save a", [("approved at least 1 times", "0 times", (1,))]),
        (
            ("", ""),
            "save b\nunrestored b SignatureError: it was changed\nskip no state",
            [("decide is played", "no state", (12,))],
        ),
    ],
)
def test_a_changed_save_that_is_refused(sessions, between, findings):
    """It explains what the scenario does not reach, and what is left out behind it in its session."""
    assert findings == list_findings(parse_notation(REFUSED.format(sessions[0], between, sessions[1])))


def test_the_error_that_broke_a_run_is_told():
    """With its type and its message."""
    events = parse_notation("send Hello\ndone\nend broken")
    events[-1].error = ["HostError", "died"]

    assert [("a whole run", "the run was broken: HostError: died", (7,))] == list_findings(events)


def test_the_step_that_was_left_out_is_told_with_its_call():
    """If it was about a call."""
    events = parse_notation("send Hello\ndone\nskip no request")
    events[6].label = "c1"

    assert [("decide c1 is played", "no request", (7,))] == list_findings(events)
