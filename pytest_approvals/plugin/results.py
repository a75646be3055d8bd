"""What an item hands over of each of its runs; plain values, because pytest-xdist carries them to its controller.

What came of the runs of a session; under pytest-xdist the controller gathers what its workers report.
"""

from __future__ import annotations

import json
import platform
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from pytest_approvals.checks import CHECKS, Verdict
from pytest_approvals.errors import TranscriptMismatch
from pytest_approvals.journal.events import Event, event_from_dict
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.reporting.findings import to_verdict_line
from pytest_approvals.reporting.judged_run import JudgedRun
from pytest_approvals.reporting.report import (
    AbsentLine,
    NotApplicableLine,
    Report,
    ReportedAgent,
    ReportedCheck,
    ReportHeader,
    StaleLine,
    TranscriptLine,
    VerdictLine,
)
from pytest_approvals.reporting.subject import Subject
from pytest_approvals.scenario.model import Variant

STORED_TRANSCRIPT_CHECK = "transcript-as-stored"
"""What stands in the report for the check that a run is what its stored transcript says."""

STORED_TRANSCRIPT_REQUIREMENT = "A run must be what its stored transcript says."

MAX_SHOWN_LINES = 8
"""How many lines of a transcript are shown that are not the stored ones."""


def build_record(
    judged: JudgedRun, about: ReportedAgent, *, title: str, own: bool, travels: bool, keep: bool
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
        "journal": _journal_of_record(judged, travels) if judged.clean and not own else None,
    }


def transcript_mismatch_line(subject: Subject, error: TranscriptMismatch) -> dict[str, Any]:
    """Gives the line of the report that says that a run was not what its stored transcript says."""
    different = [line for line in error.differences or () if line.startswith(("+", "-"))]
    shown = [f"\n      {line}" for line in different[:MAX_SHOWN_LINES]]
    more = f"\n      and {len(different) - MAX_SHOWN_LINES} more" if len(different) > MAX_SHOWN_LINES else ""
    verdict = Verdict(
        check=STORED_TRANSCRIPT_CHECK,
        status="fail",
        expected=f"the transcript in {error.path}",
        actual=f"another one; --snapshot-update takes it over{''.join(shown)}{more}"
        if different
        else "none is stored; --snapshot-update stores it",
    )
    return to_verdict_line(verdict, subject).model_dump(exclude_defaults=True)


def _journal_of_record(judged: JudgedRun, travels: bool) -> bytes | Sequence[Event]:
    return compress_journal(judged.history.events) if travels else judged.history.events


def compress_journal(events: Sequence[Event]) -> bytes:
    """Gives a journal as bytes that travel."""
    return zlib.compress(json.dumps([event.to_dict() for event in events]).encode(), 1)


def decompress_journal(journal: bytes | Sequence[Event]) -> list[Event]:
    """Gives the events of a journal, wherever it comes from."""
    if isinstance(journal, bytes):
        return [event_from_dict(written) for written in json.loads(zlib.decompress(journal))]
    return list(journal)


Group = tuple[str, str]
"""A scenario and an agent."""


@dataclass(slots=True)
class SessionResults:
    """
    The results of a session.

    Attributes:
        lines: The verdicts.
        absent: For each agent that could not be started, the reason.
        plan: For each group the variants that were collected.
        missing: For each group that does not apply, the capabilities that the agent lacks.
        ran: For each group the variants that ran.
        files: For each group the file of its scenario, as node ids name it.
        failed_groups: The printed findings about all variants of a group together.
    """

    lines: list[VerdictLine] = field(default_factory=list)
    transcripts: list[TranscriptLine] = field(default_factory=list)
    stale: list[StaleLine] = field(default_factory=list)
    absent: dict[str, str] = field(default_factory=dict)
    plan: dict[Group, list[str]] = field(default_factory=dict)
    missing: dict[Group, list[str]] = field(default_factory=dict)
    ran: dict[Group, list[str]] = field(default_factory=dict)
    agents: dict[str, ReportedAgent] = field(default_factory=dict)
    titles: dict[str, str] = field(default_factory=dict)
    files: dict[Group, str] = field(default_factory=dict)
    failed_groups: dict[Group, str] = field(default_factory=dict)
    own_runs: int = 0
    _journals: dict[Group, list[Any]] = field(default_factory=dict)

    # --- what was collected ---

    def planned(self, scenario: str, agent: str, variants: Iterable[Variant]) -> None:
        """Notes the variants in which an agent runs a scenario."""
        self.plan[scenario, agent] = [variant.id for variant in variants]

    def not_applicable(self, scenario: str, agent: str, missing: Iterable[str]) -> None:
        """Notes that an agent cannot run a scenario."""
        self.missing[scenario, agent] = sorted(missing)

    def collected(self) -> list[Any]:
        """Gives what was collected in a form that travels."""
        tables = [[[*group, *names] for group, names in table.items()] for table in (self.plan, self.missing)]
        return [*tables, [[*pair] for pair in self.absent.items()]]

    def take_collected(self, collected: Sequence[Any]) -> None:
        """Takes in what a worker collected; all workers collect the same."""
        *tables, absent = collected
        self.absent.update((agent, why) for agent, why in absent)
        for table, rows in zip((self.plan, self.missing), tables, strict=True):
            table.update({(scenario, agent): names for scenario, agent, *names in rows})

    # --- what ran ---

    def add(self, record: Mapping[str, Any], file: str) -> Group:
        """Takes in the record of a run of an item in a file, and gives its group."""
        group = (record["scenario"], record["agent"])
        about = ReportedAgent(**record["about"])
        self.agents.setdefault(about.agent, about)
        self.titles.setdefault(record["scenario"], record["title"])
        self.lines += [VerdictLine(**line) for line in record["lines"]]
        if record["transcript"] is not None:
            where = {"scenario": record["scenario"], "agent": record["agent"], "variant": record["variant"]}
            self.transcripts.append(TranscriptLine(**where, lines=tuple(record["transcript"])))
        if record["own"]:
            self.own_runs += 1
        else:
            self.files[group] = file
            self.ran.setdefault(group, []).append(record["variant"])
            self._journals.setdefault(group, []).extend([record["journal"]] if record["journal"] is not None else [])

        return group

    def is_complete(self, group: Group) -> bool:
        """Whether a group ran in all its variants."""
        return set(self.plan.get(group, ())) == set(self.ran.get(group, ()))

    def take_journals(self, group: Group) -> list[History]:
        """Gives the journals of a group, and forgets them."""
        return [read_history(decompress_journal(journal)) for journal in self._journals.pop(group, ())]

    def open_groups(self) -> list[Group]:
        """Names the groups whose journals were not taken yet."""
        return list(self._journals)

    # --- the report ---

    def report(self, seed: int) -> Report:
        """Gives the report of everything so far."""
        header = ReportHeader(
            package=version("pytest-approvals"),
            python=platform.python_version(),
            seed=seed,
            agents=tuple(self.agents.values()),
            checks=self._checks(),
            scenarios=dict(sorted(self.titles.items())),
        )
        return Report(
            header=header,
            verdicts=self.lines,
            transcripts=self.transcripts,
            not_applicable=[
                NotApplicableLine(scenario=scenario, agent=agent, missing=tuple(names))
                for (scenario, agent), names in self.missing.items()
            ],
            stale=self.stale,
            absent=[AbsentLine(agent=agent, why=why) for agent, why in self.absent.items()],
        )

    def _checks(self) -> dict[str, ReportedCheck]:
        applied = {slug: ReportedCheck(requirement=one.requirement, level=one.level) for slug, one in CHECKS.items()}
        stored = {STORED_TRANSCRIPT_CHECK: ReportedCheck(requirement=STORED_TRANSCRIPT_REQUIREMENT)}
        return applied | (stored if any(line.check == STORED_TRANSCRIPT_CHECK for line in self.lines) else {})
