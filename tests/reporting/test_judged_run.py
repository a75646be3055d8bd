"""What a run comes to: findings, waivers, lines of the report."""

from __future__ import annotations

import pytest

from pytest_approvals.agents.waivers import Waiver
from pytest_approvals.checks import SEVERITIES, CheckFailed, Severity, is_failing
from pytest_approvals.journal.events import Header
from pytest_approvals.journal.notation import parse_notation
from pytest_approvals.reporting.judged_run import JudgedRun, judge_run
from pytest_approvals.reporting.subject import Subject

UNASKED = """
tool pay(amount: integer) raises
send Pay 5
model c1 pay(amount=5)
gate c1 raises
run c1 -> paid 5
done
"""

ASKED_IN_VAIN = """
tool read(path: string) never
send Read
model c1 read(path="a")
pause c1
approve c1
go
run c1 -> text
done
"""

LOST_RESULT = """
tool pay(amount: integer) always
tool read(path: string) never
send Go
model c1 read(path=a)
run c1 -> text
untell c1
done
"""


def judge(lines: str, *checks: str, strict: bool = False, fail_on: Severity | None = None) -> JudgedRun:
    """Judges a journal, with waivers for some checks."""
    events = parse_notation(lines)
    assert isinstance(events[0], Header)
    waivers = [Waiver(scenario="*", check=check, reason="known", issue="https://e.org/1") for check in checks]
    return judge_run(events, Subject.of(events[0]), waivers=waivers, strict=strict, fail_on=fail_on)


def test_a_finding_is_raised_with_all_that_is_printed_of_it() -> None:
    """The weakest violated requirement stands for those that follow from it."""
    with pytest.raises(CheckFailed) as error:
        judge(UNASKED).raise_findings()

    assert ["policy-fails-closed"] == [one.verdict.check for one in error.value.findings]
    assert str(error.value).startswith("policy-fails-closed: ")


def test_a_waived_finding_is_not_raised() -> None:
    """What follows from it is waived with it."""
    result = judge(UNASKED, "policy-fails-closed")
    result.raise_findings()

    assert not result.is_clean
    assert {"waived", "pass"} == {line.status for line in result.verdict_lines()}
    assert {"known (https://e.org/1)"} == {line.waiver for line in result.verdict_lines() if line.status == "waived"}


def test_a_waiver_of_something_else_changes_nothing() -> None:
    """A consequence cannot be waived in the place of its cause."""
    with pytest.raises(CheckFailed):
        judge(UNASKED, "every-gated-call-asked").raise_findings()


BOTH_UNASKED = """
tool pay(amount: integer) always
send Pay
model c1 pay(amount=5); c2 pay(amount=6)
run c1 -> paid 5
run c2 -> paid 6
model says Done.
done
"""


@pytest.mark.parametrize(("call", "waived"), [("*", True), ("c1 *", False)])
def test_a_check_is_waived_if_a_waiver_covers_each_of_its_failures(call: str, waived: bool) -> None:
    """One failure more than those that are known is not known."""
    events = parse_notation(BOTH_UNASKED)
    assert isinstance(events[0], Header)
    waivers = [
        Waiver(scenario="*", check=check, call=call, reason="known", issue="https://e.org/1")
        for check in ("every-gated-call-asked", "approval-before-execution")
    ]
    judged = judge_run(events, Subject.of(events[0]), waivers=waivers)

    assert waived == (not judged.failing)


def test_a_should_warns() -> None:
    """It is a warning, or a failure where that is wanted."""
    (warning,) = judge(ASKED_IN_VAIN).warnings()

    assert str(warning).startswith("warning: only-gated-asked: ")
    judge(ASKED_IN_VAIN).raise_findings()
    with pytest.raises(CheckFailed):
        judge(ASKED_IN_VAIN, strict=True).raise_findings()
    assert [] == judge(ASKED_IN_VAIN, strict=True).warnings()


@pytest.mark.parametrize(("fail_on", "fails"), [(None, False), ("cosmetic", True), ("mistold", False)])
def test_a_severity_fails_what_should_hold(fail_on: Severity | None, fails: bool) -> None:
    """A `should` of that severity fails the run; one below it warns."""
    judged = judge(ASKED_IN_VAIN, fail_on=fail_on)

    assert (fails, not fails) == (bool(judged.failing), bool(judged.warnings()))


@pytest.mark.parametrize(("fail_on", "fails"), [(None, True), ("lost-effect", True), ("double-effect", False)])
def test_a_severity_lets_what_must_hold_warn(fail_on: Severity | None, fails: bool) -> None:
    """A `must` below that severity warns, and stays what it is in the report; `--strict` does not count then."""
    judged = judge(LOST_RESULT, strict=True, fail_on=fail_on)

    assert (fails, not fails) == (bool(judged.failing), bool(judged.warnings()))
    assert "fail" in {line.status for line in judged.verdict_lines()}


@pytest.mark.parametrize("severity", SEVERITIES)
def test_what_is_undecided_fails_whatever_the_severity(severity: Severity) -> None:
    """A run without evidence is not a good one."""
    assert is_failing("harness-error", severity, fail_on="unapproved-effect")
    assert is_failing("unknown", severity, fail_on="unapproved-effect")
    assert not is_failing("pass", severity, strict=True, fail_on="cosmetic")


def test_findings_are_ordered_by_severity() -> None:
    """The gravest is first, whatever the order of the checks and of the calls."""
    findings = judge(ASKED_IN_VAIN + "send Go\nmodel c2 read(path=b)\nrun c2 -> b\nrun c2 -> b\ndone\n").findings

    assert ["double-effect", "cosmetic"] == [finding.severity for finding in findings]


def test_what_says_nothing_is_not_reported() -> None:
    """Checks that do not apply have no line."""
    assert {"pass", "warning"} == {line.status for line in judge(ASKED_IN_VAIN).verdict_lines()}


def test_the_transcript_is_written_once() -> None:
    """However often a run's transcript is asked for, its history is turned into text once."""
    judged = judge(UNASKED)

    first = judged.transcript

    assert judged.transcript is first
