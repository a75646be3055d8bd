"""Judged runs: verdicts, waivers, and what is raised, warned of and reported.

One step of the way of a run, each a function of the one before:

    run_scenario → read_history → judge_run → JudgedRun → verdict_lines → report
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Protocol

from pytest_approvals import extensions
from pytest_approvals.agents.waivers import CheckOutcome, Waiver, find_waiver
from pytest_approvals.checks import (
    FAILING_STATUSES,
    SHOWN_STATUSES,
    Check,
    CheckFailed,
    Finding,
    Severity,
    Verdict,
    is_failing,
    judge,
    judge_group,
    mark_implied,
    root_findings,
)
from pytest_approvals.errors import RequirementWarning, UsageError
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.reporting.findings import PrintedFinding, render_findings, to_verdict_line
from pytest_approvals.reporting.report import VerdictLine
from pytest_approvals.reporting.subject import Subject

_UNREPORTED = ("not-applicable", "not-observable")


class RunPlace(Protocol):
    """The scenario, the variant and the release that a verdict is about: a `Subject` or a `VerdictLine`."""

    @property
    def scenario(self) -> str:
        """The id of the scenario."""

    @property
    def variant(self) -> str:
        """The id of the variant."""

    @property
    def version(self) -> str | None:
        """The release of the agent's framework."""


# Without slots, which leave no place for cached properties.
@dataclass(frozen=True, kw_only=True)
class JudgedRun:
    """A judged run.

    Attributes:
        history: What was judged; None if it is all variants of a scenario together.
        findings: The failures that do not follow from another one.
        waived: The waiver of each check that failed and whose failures are all covered by one.
        strict: Whether a `should` that does not hold fails the run.
        fail_on: The least severity that fails the run; None if must and should decide.
    """

    subject: Subject
    history: History | None
    verdicts: tuple[Verdict, ...]
    findings: tuple[Finding, ...]
    waived: Mapping[str, Waiver]
    strict: bool
    fail_on: Severity | None = None

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that fail the run."""
        return tuple(
            finding
            for finding in self.unwaived
            if is_failing(finding.verdict.status, finding.severity, strict=self.strict, fail_on=self.fail_on)
        )

    @property
    def unwaived(self) -> tuple[Finding, ...]:
        """The findings that no waiver covers."""
        return tuple(finding for finding in self.findings if finding.verdict.check not in self.waived)

    @property
    def is_clean(self) -> bool:
        """Whether no check failed, waived or not."""
        return not any(finding.verdict.status in FAILING_STATUSES for finding in self.findings)

    @cached_property
    def transcript(self) -> Transcript:
        """What happened, as text; written when it is first needed."""
        assert self.history is not None
        return Transcript.of_history(self.history)

    def render(self, findings: Iterable[Finding]) -> str:
        """Return findings as every report prints them."""
        return render_findings(PrintedFinding.of(finding, self.subject, self.history) for finding in findings)

    def raise_findings(self) -> None:
        """Raise what fails the run.

        Raises:
            CheckFailed: A finding fails the run.
        """
        __tracebackhide__ = True
        if self.failing:
            raise CheckFailed(self.failing, self.render(self.failing))

    def warnings(self) -> list[RequirementWarning]:
        """Return a warning for each finding that does not fail the run."""
        tolerated = [finding for finding in self.unwaived if finding not in self.failing]
        return [RequirementWarning(self.render([finding])) for finding in tolerated]

    def warn(self, stacklevel: int) -> None:
        """Warn, in the caller's name, of the findings that do not fail the run."""
        __tracebackhide__ = True
        for warning in self.warnings():
            warnings.warn(warning, stacklevel=stacklevel + 1)

    def verdict_lines(self) -> list[VerdictLine]:
        """Return the lines of the report for the verdicts that say something."""
        return [self.verdict_line(verdict) for verdict in self.verdicts if verdict.status not in _UNREPORTED]

    def verdict_line(self, verdict: Verdict) -> VerdictLine:
        """Return the line of the report for one of the verdicts."""
        waiver = self.waived.get(self._root_check(verdict)) if verdict.status in SHOWN_STATUSES else None
        reason = f"{waiver.reason} ({waiver.issue})" if waiver is not None else None
        return to_verdict_line(verdict, self.subject, self.history, waiver=reason)

    def _root_check(self, verdict: Verdict) -> str:
        """Return the check whose failure a verdict follows from, or its own."""
        # By value: implied verdicts are copies.
        key = (verdict.check, verdict.label, verdict.session)
        for finding in self.findings:
            if any(key == (implied.check, implied.label, implied.session) for implied in finding.implied):
                return finding.verdict.check
        return verdict.check


def judge_run(
    events: Sequence[Event],
    subject: Subject,
    *,
    flavour: str = "",
    waivers: Sequence[Waiver] = (),
    strict: bool = False,
    fail_on: Severity | None = None,
) -> JudgedRun:
    """Judge a recorded run by all checks, those of extensions included.

    Args:
        events: The journal.
        subject: What was run.
        flavour: The flavour of the agent, which a waiver may name.
        waivers: The known failures of the agent.
        strict: Let a `should` that does not hold fail the run.
        fail_on: Let failures of this severity or a graver one fail the run, and no others; see `is_failing`.
    """
    load_extension_checks()
    history = read_history(events)
    verdicts = tuple(mark_implied(judge(history)))
    return _apply_waivers(subject, history, verdicts, flavour, waivers, strict, fail_on)


def judge_variants(
    histories: Sequence[History],
    subject: Subject,
    *,
    flavour: str = "",
    waivers: Sequence[Waiver] = (),
    strict: bool = False,
    fail_on: Severity | None = None,
) -> JudgedRun:
    """Judge the runs of one scenario in all its variants together; the arguments are those of `judge_run`."""
    return _apply_waivers(subject, None, tuple(judge_group(histories)), flavour, waivers, strict, fail_on)


def _apply_waivers(
    subject: Subject,
    history: History | None,
    verdicts: tuple[Verdict, ...],
    flavour: str,
    waivers: Sequence[Waiver],
    strict: bool,
    fail_on: Severity | None,
) -> JudgedRun:
    findings = tuple(root_findings(verdicts))
    waived: dict[str, Waiver] = {}
    uncovered: set[str] = set()
    for finding in findings:
        verdict = finding.verdict
        outcome = outcome_of(verdict.check, subject, flavour, call=verdict.call, actual=verdict.actual)
        if (waiver := find_waiver(outcome, waivers)) is not None:
            waived.setdefault(verdict.check, waiver)
        else:
            uncovered.add(verdict.check)
    return JudgedRun(
        subject=subject,
        history=history,
        verdicts=verdicts,
        findings=findings,
        # A check fails for each call apart, and is waived only if each of its failures is covered.
        waived={check: waiver for check, waiver in waived.items() if check not in uncovered},
        strict=strict,
        fail_on=fail_on,
    )


@cache
def load_extension_checks() -> None:
    """Register the checks of extensions; importing one registers it.

    Raises:
        UsageError: What is offered as a check is none.
    """
    for name, offered in extensions.load_all("checks").items():
        if not isinstance(offered, Check):
            raise UsageError(
                f"Invalid check {name!r}: {offered!r:.80} is offered in its place; write a function with @check"
            )


def outcome_of(
    check: str, place: RunPlace, flavour: str, *, failed: bool = True, call: str = "", actual: str = ""
) -> CheckOutcome:
    """Return what waivers have to know of a verdict.

    Args:
        check: The slug.
        place: The run that the verdict is about.
        flavour: The flavour of the agent.
        failed: Whether the verdict needs a waiver.
        call: The call of the verdict.
        actual: What the verdict says was seen.
    """
    return CheckOutcome(
        scenario=place.scenario,
        variant=place.variant,
        check=check,
        failed=failed,
        flavour=flavour,
        version=place.version,
        call=call,
        actual=actual,
    )
