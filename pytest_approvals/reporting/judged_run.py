"""What a run comes to: its verdicts, what a waiver covers, and what is raised, warned of and reported."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from pytest_approvals import extensions
from pytest_approvals.agents.waivers import CheckOutcome, Waiver, find_waiver
from pytest_approvals.checks import (
    FAILING_STATUSES,
    SHOWN_STATUSES,
    Finding,
    Verdict,
    judge,
    mark_implied,
    root_findings,
)
from pytest_approvals.errors import CheckFailed, RequirementWarning
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.reporting.findings import PrintedFinding, render_findings, to_verdict_line
from pytest_approvals.reporting.subject import Subject


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedRun:
    """
    A judged run.

    Attributes:
        waived: The waiver of each check that failed and is covered by one.
        strict: A `should` that does not hold fails the run.
    """

    subject: Subject
    history: History
    verdicts: tuple[Verdict, ...]
    found: tuple[Finding, ...]
    waived: Mapping[str, Waiver]
    strict: bool

    @property
    def failing(self) -> tuple[Finding, ...]:
        """The findings that fail the run."""
        weak = () if self.strict else ("warning",)
        return tuple(one for one in self.unwaived if one.verdict.status not in weak)

    @property
    def unwaived(self) -> tuple[Finding, ...]:
        """The findings that no waiver covers."""
        return tuple(one for one in self.found if one.verdict.check not in self.waived)

    @property
    def clean(self) -> bool:
        """Whether no check failed, waived or not."""
        return not any(one.verdict.status in FAILING_STATUSES for one in self.found)

    @property
    def transcript(self) -> Transcript:
        """What happened, as text."""
        return Transcript.of_history(self.history)

    def printed(self, found: Sequence[Finding]) -> str:
        """Gives findings as they are printed everywhere."""
        return render_findings(PrintedFinding.of(one, self.subject, self.history) for one in found)

    def raise_findings(self) -> None:
        """
        Raises what fails the run.

        Errors:
            CheckFailed: Something does.
        """
        __tracebackhide__ = True
        if self.failing:
            raise CheckFailed(self.failing, self.printed(self.failing))

    def warnings(self) -> list[RequirementWarning]:
        """Gives a warning for each requirement that should hold and does not."""
        weak = [one for one in self.unwaived if one not in self.failing]
        return [RequirementWarning(self.printed([one])) for one in weak]

    def warn(self, stacklevel: int) -> None:
        """Warns, in the caller's name, of requirements that should hold and do not."""
        for warning in self.warnings():
            warnings.warn(warning, stacklevel=stacklevel + 1)

    def lines(self) -> list[dict[str, Any]]:
        """Gives the verdicts that say something as lines of the report, by their fields."""
        said = [one for one in self.verdicts if one.status not in ("not-applicable", "not-observable")]
        return [self._line(one) for one in said]

    def _root(self, verdict: Verdict) -> str:
        """Names the check whose failure a verdict follows from, if it does."""
        about = (verdict.check, verdict.label, verdict.session)
        for one in self.found:
            if any(about == (each.check, each.label, each.session) for each in one.implied):
                return one.verdict.check
        return verdict.check

    def _line(self, verdict: Verdict) -> dict[str, Any]:
        waiver = self.waived.get(self._root(verdict)) if verdict.status in SHOWN_STATUSES else None
        reason = f"{waiver.reason} ({waiver.issue})" if waiver is not None else None
        return to_verdict_line(verdict, self.subject, self.history, waiver=reason).model_dump(exclude_defaults=True)


def judge_run(
    events: Sequence[Event],
    subject: Subject,
    *,
    flavour: str = "",
    waivers: Sequence[Waiver] = (),
    strict: bool = False,
) -> JudgedRun:
    """Judges a recorded run by all checks, also those that others bring."""
    load_extension_checks()
    history = read_history(events)
    verdicts = mark_implied(judge(history))
    found = root_findings(verdicts)
    covered = {
        one.verdict.check: waiver
        for one in found
        if (waiver := find_waiver(waiver_outcome(one.verdict, subject, flavour), waivers)) is not None
    }
    return JudgedRun(
        subject=subject,
        history=history,
        verdicts=tuple(verdicts),
        found=tuple(found),
        waived=covered,
        strict=strict,
    )


@cache
def load_extension_checks() -> None:
    """Sees that the checks that others bring are among all checks; importing one registers it."""
    extensions.load_all("checks")


def waiver_outcome(verdict: Verdict, subject: Subject, flavour: str) -> CheckOutcome:
    """Gives what waivers have to know of a verdict."""
    return CheckOutcome(
        scenario=subject.scenario,
        variant=subject.variant,
        check=verdict.check,
        failed=verdict.status in SHOWN_STATUSES,
        flavour=flavour,
        version=subject.version,
    )
