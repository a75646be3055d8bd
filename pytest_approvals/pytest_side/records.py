"""What an item hands over of each of its runs; plain values, because pytest-xdist carries them to its controller."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from typing import Any

from pytest_approvals.checks import Verdict
from pytest_approvals.errors import TranscriptDiffers
from pytest_approvals.journal.events import Event, event_from_dict
from pytest_approvals.pytest_side.judging import Judged
from pytest_approvals.report.lines import ReportedAgent
from pytest_approvals.report.subject import Subject
from pytest_approvals.report.verdicts import verdict_line

AS_STORED = "transcript-as-stored"
"""What stands in the report for the check that a run is what its stored transcript says."""

AS_STORED_REQUIREMENT = "A run must be what its stored transcript says."

SHOWN_LINES = 8
"""How many lines of a transcript are shown that are not the stored ones."""


def record_of(
    judged: Judged, about: ReportedAgent, *, title: str, own: bool, travels: bool, keep: bool
) -> dict[str, Any]:
    """
    Gives the record of a run. It holds the journal of a run that no check failed on, to be compared with others.

    Arguments:
        about: The agent that ran.
        own: It is a run of a person's test, not of a scenario file.
        travels: It goes to another process, so that its journal must be text.
        keep: Its transcript belongs into the report whatever came of it.
    """
    subject = judged.subject
    return {
        "scenario": subject.scenario,
        "agent": subject.agent,
        "variant": subject.variant,
        "title": title,
        "about": about.model_dump(),
        "own": own,
        "lines": judged.lines(),
        "transcript": list(judged.transcript.lines) if keep or judged.found else None,
        "journal": _journal(judged, travels) if judged.clean and not own else None,
    }


def another_transcript(subject: Subject, error: TranscriptDiffers) -> dict[str, Any]:
    """Gives the line of the report that says that a run was not what its stored transcript says."""
    different = [line for line in error.differences or () if line.startswith(("+", "-"))]
    shown = [f"\n      {line}" for line in different[:SHOWN_LINES]]
    more = f"\n      and {len(different) - SHOWN_LINES} more" if len(different) > SHOWN_LINES else ""
    verdict = Verdict(
        check=AS_STORED,
        status="fail",
        expected=f"the transcript in {error.path}",
        actual=f"another one; --snapshot-update takes it over{''.join(shown)}{more}"
        if different
        else "none is stored; --snapshot-update stores it",
    )
    return verdict_line(verdict, subject).model_dump(exclude_defaults=True)


def _journal(judged: Judged, travels: bool) -> bytes | Sequence[Event]:
    return packed(judged.history.events) if travels else judged.history.events


def packed(events: Sequence[Event]) -> bytes:
    """Gives a journal as bytes that travel."""
    return zlib.compress(json.dumps([event.to_dict() for event in events]).encode(), 1)


def unpacked(journal: bytes | Sequence[Event]) -> list[Event]:
    """Gives the events of a journal, wherever it comes from."""
    if isinstance(journal, bytes):
        return [event_from_dict(written) for written in json.loads(zlib.decompress(journal))]
    return list(journal)
