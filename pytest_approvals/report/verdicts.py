"""From verdicts to lines of the report, and from lines to what is printed."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_approvals.checks.verdicts import SHOWN, Verdict
from pytest_approvals.journal.history import History

from .finding import PrintedFinding, WitnessEvent, witness_of
from .lines import ReportHeader, VerdictLine, WitnessLine
from .subject import Subject, place_of


def verdict_line(
    verdict: Verdict, subject: Subject, history: History | None = None, *, waiver: str | None = None
) -> VerdictLine:
    """
    Gives a verdict as a line of the report; all that is printed of it is in it if it is shown.

    Arguments:
        history: The journal that was judged; None where the check judged several.
        waiver: Why a failure is waived, with the issue.
    """
    if verdict.status not in SHOWN:
        return VerdictLine(
            scenario=subject.scenario,
            agent=subject.agent,
            version=subject.version,
            variant=subject.variant,
            check=verdict.check,
            status=verdict.status,
        )
    witness = witness_of(verdict, history) if history is not None else ()
    return VerdictLine(
        scenario=subject.scenario,
        agent=subject.agent,
        version=subject.version,
        variant=subject.variant,
        check=verdict.check,
        status="waived" if waiver is not None else verdict.status,
        label=verdict.label,
        call=verdict.call or None,
        expected=verdict.expected,
        actual=verdict.actual,
        witness=tuple(WitnessLine(n=event.n, text=event.text) for event in witness),
        implied_by=verdict.implied_by,
        waiver=waiver,
        mode=subject.mode,
        rerun=subject.rerun or None,
    )


def printed(line: VerdictLine, header: ReportHeader, implied: Iterable[str] = ()) -> PrintedFinding:
    """
    Gives the printed form of a line.

    Arguments:
        implied: The checks whose failures follow from this one.
    """
    known = header.checks.get(line.check)
    notes = [f"from it follow {', '.join(sorted(set(implied)))}"] if implied else []
    if line.implied_by is not None:
        notes.append(f"it follows from {line.implied_by}")
    if line.waiver is not None:
        notes.append(f"waived: {line.waiver}")
    return PrintedFinding(
        check=line.check,
        requirement=known.requirement if known is not None else "a check that the report does not describe",
        subject=subject_of(line),
        status=line.status,
        expected=line.expected or "",
        actual=line.actual or "",
        witness=tuple(WitnessEvent(n=event.n, text=event.text) for event in line.witness),
        notes=tuple(notes),
    )


def subject_of(line: VerdictLine) -> Subject:
    """Says what a line is about."""
    return Subject(
        scenario=line.scenario,
        agent=line.agent,
        version=line.version,
        where=place_of(line.agent),
        variant=line.variant,
        mode=line.mode or line.variant,
        rerun=line.rerun or "",
    )
