"""Verdicts: what a check says about a journal or a call, and findings made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pytest_approvals.errors import ApprovalsError, UnknownName

Status = Literal["pass", "fail", "warning", "unknown", "not-applicable", "not-observable", "harness-error"]

Severity = Literal["unapproved-effect", "double-effect", "lost-effect", "lost-request", "stuck", "mistold", "cosmetic"]

SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""What the failure of a check can cost, the gravest first."""

EFFECTS: frozenset[Severity] = frozenset({"unapproved-effect", "double-effect", "lost-effect"})
"""The severities of failures that changed the world, or did not as approved."""

FAILING_STATUSES: frozenset[str] = frozenset({"fail", "unknown", "harness-error"})
"""The statuses that fail a run."""

SHOWN_STATUSES: frozenset[str] = FAILING_STATUSES | {"warning"}
"""The statuses that are shown as findings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What one check says about one journal, or about one call in it.

    Attributes:
        check: The slug.
        status: `pass`, `fail`, `warning` (a `should` that does not hold), `unknown` (the journal cannot decide it),
            `not-applicable` (nothing in it is concerned), `not-observable` (its recorder could not see what the check
            needs), `harness-error` (the check crashed, or the run is no evidence).
        label: The call that it is about; None if it is about the whole journal.
        session: The session of that call.
        call: The call as findings show it: `c1 pay(amount=5)`.
        expected, actual: What should have been seen, and what was, in a few words.
        witness: The positions of the events that show it, in order.
        implied_by: The slug of the failure that this one follows from; None for a root cause.
    """

    check: str
    status: Status
    label: str | None = None
    session: str = ""
    call: str = ""
    expected: str = ""
    actual: str = ""
    witness: tuple[int, ...] = ()
    implied_by: str | None = None

    @property
    def fails(self) -> bool:
        """Whether it fails the run."""
        return self.status in FAILING_STATUSES

    def __repr__(self) -> str:
        about = f" on {self.call}" if self.call else ""
        seen = f": {self.actual}" if self.actual else ""
        return f"<{self.check}{about}: {self.status}{seen}>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A verdict that follows from no other one, with those that follow from it.

    Attributes:
        verdict: The root cause.
        requirement: The sentence of the check.
        severity: What a failure of the check can cost.
        implied: The verdicts that would not be there without it.
    """

    verdict: Verdict
    requirement: str
    severity: Severity = "mistold"
    implied: tuple[Verdict, ...] = ()


class CheckFailed(ApprovalsError, AssertionError):
    """A recorded run broke a requirement.

    Args:
        findings: What failed, root causes first.
        text: The findings as reports print them.
    """

    def __init__(self, findings: Sequence[Finding], text: str) -> None:
        self.findings = tuple(findings)
        super().__init__(text)


# Tracebacks name the place from which tests import it.
CheckFailed.__module__ = "pytest_approvals"


def parse_severity(word: str) -> Severity:
    """Return the severity that a word names.

    Raises:
        UnknownName: It names none.
    """
    for severity in SEVERITIES:
        if word == severity:
            return severity
    raise UnknownName("severity", word, SEVERITIES)


def rank_severity(severity: Severity | None) -> int:
    """Return the position of a severity in the order of gravity, 0 for the gravest; None comes last.

    >>> rank_severity("unapproved-effect") < rank_severity("cosmetic") < rank_severity(None)
    True
    """
    return SEVERITIES.index(severity) if severity is not None else len(SEVERITIES)


def is_failing(
    status: Status, severity: Severity | None, *, strict: bool = False, fail_on: Severity | None = None
) -> bool:
    """Return whether a verdict fails its run.

    Args:
        status: Its status.
        severity: The severity of its check.
        strict: Let a `should` that does not hold fail the run.
        fail_on: Let all failures of this severity or a graver one fail the run, and no others; must and should, and
            so *strict*, do not count then. What is undecided or no evidence fails the run all the same.
    """
    if status not in SHOWN_STATUSES or status in ("unknown", "harness-error"):
        return status in FAILING_STATUSES
    if fail_on is not None:
        return rank_severity(severity) <= rank_severity(fail_on)
    return strict or status in FAILING_STATUSES


def count_statuses(verdicts: Iterable[Verdict]) -> dict[str, int]:
    """Return the number of verdicts by status, in the order in which the statuses first come."""
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.status] = counts.get(verdict.status, 0) + 1
    return counts


def worst_status(verdicts: Sequence[Verdict]) -> Status:
    """Return the worst status of several verdicts; `not-applicable` if there are none."""
    return min((verdict.status for verdict in verdicts), key=_SEVERITY_ORDER.index, default="not-applicable")


_SEVERITY_ORDER: tuple[Status, ...] = (
    "harness-error",
    "fail",
    "unknown",
    "warning",
    "pass",
    "not-observable",
    "not-applicable",
)
