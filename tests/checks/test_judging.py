"""Which of the failures stand for themselves."""

from __future__ import annotations

from pytest_approvals.checks import (
    CHECKS,
    Verdict,
    count_statuses,
    implied_checks,
    judge,
    mark_implied,
    root_findings,
    worst_status,
)
from pytest_approvals.journal.notation import parse_notation

LOST_DECISION = """
    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    pause c1
    approve c1
    go
    pause c1
    stuck
    end completed: c1
"""


def failed(check, label=None, status="fail", session=""):
    return Verdict(check=check, status=status, label=label, session=session)


def test_one_root():
    """One failure that explains the others is the finding; they are listed with it."""
    (finding,) = root_findings(judge(parse_notation(LOST_DECISION)))

    assert ("approved-runs", "c1") == (finding.verdict.check, finding.verdict.label)
    assert ["asked-once", "run-ends", "nothing-left-pending"] == [verdict.check for verdict in finding.implied]
    assert "An approved call must run, unless" in finding.requirement


def test_verdicts_say_what_they_follow_from():
    """Each implied verdict names the slug of its cause."""
    verdicts = mark_implied(judge(parse_notation(LOST_DECISION)))

    assert {"asked-once": "approved-runs", "approved-runs": None} == {
        verdict.check: verdict.implied_by for verdict in verdicts if verdict.check in ("asked-once", "approved-runs")
    }


def test_other_calls_are_not_explained():
    """A failure about one call does not explain another call's."""
    verdicts = [failed("approved-runs", "c1"), failed("asked-once", "c2")]

    assert ["approved-runs", "asked-once"] == [finding.verdict.check for finding in root_findings(verdicts)]


def test_calls_inside_are_explained():
    """A failure about a call explains those of the agent that it runs."""
    verdicts = [failed("approved-runs", "o1"), failed("asked-once", "o1/c1")]

    assert ["approved-runs"] == [finding.verdict.check for finding in root_findings(verdicts)]


def test_other_sessions_are_not_explained():
    """A failure in one session does not explain another session's."""
    verdicts = [failed("approved-runs", "c1"), failed("asked-once", "c1", session="b")]

    assert 2 == len(root_findings(verdicts))


def test_a_warning_explains_no_failure():
    """What only should hold does not explain what must."""
    verdicts = [failed("invalid-decision-refused", status="warning"), failed("approval-before-execution", "c1")]

    assert 2 == len(root_findings(verdicts))


def test_nothing_failed():
    """Where everything holds there is no finding."""
    assert [] == root_findings([failed("run-ends", status="pass"), failed("asked-once", status="not-applicable")])


def test_consequences_end():
    """No check follows from itself, and all that follows exists."""
    assert [] == [slug for slug in CHECKS if slug in implied_checks(slug) or not implied_checks(slug) <= set(CHECKS)]


def test_guards_are_silent_where_a_check_says_why():
    """A story that was not reached is not a harness-error if a check explains it."""
    lines = "reaches finished=1\nsend Pay 5\nmodel c1 pay(amount=5)\nrun c1 -> paid 5\nfail X: y"

    statuses = {verdict.check: verdict.status for verdict in judge(parse_notation(lines))}

    assert ("fail", "not-applicable") == (statuses["approval-before-execution"], statuses["scenario-exercised"])


def test_guards_speak_where_nothing_else_does():
    """A story that was not reached, with nothing to explain it, is a harness-error."""
    lines = "reaches paused=1\nsend Hello\ndone"

    assert {"harness-error"} == {
        verdict.status for verdict in judge(parse_notation(lines)) if verdict.check == "scenario-exercised"
    }


def test_a_chosen_check():
    """Only the checks that are asked for are judged."""
    assert ["run-ends"] == [verdict.check for verdict in judge(parse_notation("send Hi\ndone"), [CHECKS["run-ends"]])]


def test_counted():
    """Verdicts are counted by status."""
    assert {"fail": 2, "pass": 1} == count_statuses([failed("a"), failed("b"), failed("c", status="pass")])


def test_worst():
    """The worst status represents several."""
    assert ["fail", "pass", "not-applicable"] == [
        worst_status([failed("a", status="warning"), failed("b"), failed("c", status="pass")]),
        worst_status([failed("c", status="pass"), failed("d", status="not-observable")]),
        worst_status([]),
    ]
