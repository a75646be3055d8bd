"""Results of a session: the record of each run, and what becomes the report.

Under pytest-xdist the workers run the items and the controller collects their records.
"""

from __future__ import annotations

import json
import platform
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from pytest_approvals.checks import CHECKS, Verdict, merge_traits, observe_traits
from pytest_approvals.errors import TranscriptMismatch
from pytest_approvals.journal.events import Event, event_from_dict
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.reporting.findings import DETAIL_INDENT, to_verdict_line
from pytest_approvals.reporting.judged_run import JudgedRun
from pytest_approvals.reporting.report import (
    AbsentLine,
    NotApplicableLine,
    Report,
    ReportedAgent,
    ReportedCheck,
    ReportHeader,
    StaleLine,
    TraitsLine,
    TranscriptLine,
    VerdictLine,
)
from pytest_approvals.reporting.subject import ALL_VARIANTS, Subject
from pytest_approvals.runner.run_dependencies import list_local_files
from pytest_approvals.scenario.model import Variant

if TYPE_CHECKING:
    # Readers and writers of all report formats, which a session without a report does not need.
    from pytest_approvals.reporting.files import ReportStream

STORED_TRANSCRIPT_CHECK = "transcript-as-stored"
"""The slug under which the report says that a run differs from its stored transcript."""

STORED_TRANSCRIPT_REQUIREMENT = "A run must be what its stored transcript says."

MAX_SHOWN_LINES = 8
"""How many differing lines of a transcript the report shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """What an item hands over of one of its runs.

    Attributes:
        agent: The agent that ran, as reports name it.
        about: What the report says of that agent.
        is_user_run: Whether it is a run of a user's test, not of a scenario file.
        lines: The lines of the report.
        transcript: The lines of the transcript if it belongs into the report.
        history: What happened, if no check failed: it is compared with the runs in other variants. As bytes it is a
            compressed journal, which is read when it is needed.
        traits: The design choices that the run of a scenario shows, if a report is wanted.
        key: The digest of what the run depends on; empty if that is not known.
        is_remembered: Whether the run was made in an earlier session.
        is_gated: Of a user's run: whether anything needed an approval, or the test said what does.
        ungated: Of a user's run: the tools that have effects and before which nothing asks in it.
        asked: Of a user's run: the tools that a person was asked about.
    """

    scenario: str
    agent: str
    variant: str
    title: str
    about: ReportedAgent
    is_user_run: bool
    lines: list[VerdictLine]
    transcript: tuple[str, ...] | None
    history: History | bytes | None
    traits: dict[str, tuple[str, ...]]
    key: str = ""
    is_remembered: bool = False
    is_gated: bool = True
    ungated: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        judged: JudgedRun,
        about: ReportedAgent,
        *,
        title: str,
        is_user_run: bool,
        is_base: bool,
        with_traits: bool = False,
        key: str = "",
    ) -> RunRecord:
        """Return the record of a judged run.

        Args:
            judged: The run.
            about: The agent that ran.
            title: The title of the scenario.
            is_user_run: Whether it is a run of a user's test.
            is_base: Whether it ran in the base variant, whose transcript the report always has.
            with_traits: Whether to observe its traits.
            key: The digest of what the run depends on.
        """
        subject = judged.subject
        return cls(
            scenario=subject.scenario,
            agent=subject.agent,
            variant=subject.variant,
            title=title,
            about=about,
            is_user_run=is_user_run,
            lines=judged.verdict_lines(),
            transcript=tuple(judged.transcript.lines) if is_base or judged.findings else None,
            history=judged.history if judged.is_clean and not is_user_run else None,
            # What a user's test scripts is no choice of the agent alone.
            traits=observe_traits(judged.history) if with_traits and judged.history and not is_user_run else {},
            key=key,
        )

    @classmethod
    def load(cls, dumped: Mapping[str, Any]) -> RunRecord:
        """Return the record that a worker dumped."""
        return cls(
            **{
                **dumped,
                "about": ReportedAgent.from_dict(dumped["about"]),
                "lines": [VerdictLine.from_dict(line) for line in dumped["lines"]],
                "transcript": None if dumped["transcript"] is None else tuple(dumped["transcript"]),
                "traits": {name: tuple(values) for name, values in dumped["traits"].items()},
                "ungated": tuple(dumped["ungated"]),
                "asked": tuple(dumped["asked"]),
            }
        )

    def dump(self) -> dict[str, Any]:
        """Return the record in the plain values that pytest-xdist carries from a worker to its controller."""
        return {
            "scenario": self.scenario,
            "agent": self.agent,
            "variant": self.variant,
            "title": self.title,
            "about": self.about.to_dict(),
            "is_user_run": self.is_user_run,
            "lines": [line.to_dict() for line in self.lines],
            "transcript": None if self.transcript is None else list(self.transcript),
            "history": compress_journal(self.history.events) if isinstance(self.history, History) else self.history,
            "traits": {name: list(values) for name, values in self.traits.items()},
            "key": self.key,
            "is_remembered": self.is_remembered,
            "is_gated": self.is_gated,
            "ungated": list(self.ungated),
            "asked": list(self.asked),
        }


def build_mismatch_line(subject: Subject, error: TranscriptMismatch) -> VerdictLine:
    """Return the line of the report that says that a run differs from its stored transcript."""
    different = [line for line in error.differences or () if line.startswith(("+", "-"))]
    shown = [f"{DETAIL_INDENT}{line}" for line in different[:MAX_SHOWN_LINES]]
    more = f"{DETAIL_INDENT}and {len(different) - MAX_SHOWN_LINES} more" if len(different) > MAX_SHOWN_LINES else ""
    verdict = Verdict(
        check=STORED_TRANSCRIPT_CHECK,
        status="fail",
        expected=f"the transcript in {error.place}",
        actual=f"another one; {error.remedy}{''.join(shown)}{more}"
        if different
        else "none is stored; --snapshot-update stores it",
    )
    return to_verdict_line(verdict, subject)


def compress_journal(events: Sequence[Event]) -> bytes:
    """Return a journal as bytes."""
    return compress_events([event.to_dict() for event in events])


def compress_events(events: Sequence[Mapping[str, Any]]) -> bytes:
    """Return the plain values of a journal as bytes."""
    # Level 1, the fastest: a journal is packed once, sent once and read once.
    return zlib.compress(json.dumps(events).encode(), 1)


def decompress_journal(journal: bytes) -> list[Event]:
    """Return the events of a compressed journal."""
    return [event_from_dict(event) for event in json.loads(zlib.decompress(journal))]


Group = tuple[str, str]
"""A scenario and an agent."""


@dataclass(frozen=True, slots=True)
class CleanRun:
    """A run that no check failed.

    Attributes:
        key: The digest of what it depends on; empty if that is not known.
        journal: What happened; as bytes a compressed journal.
    """

    key: str
    journal: History | bytes

    @property
    def history(self) -> History:
        """What happened."""
        return self.journal if isinstance(self.journal, History) else read_history(decompress_journal(self.journal))


@dataclass(slots=True)
class SessionResults:
    """The results of a session.

    Attributes:
        lines: The verdicts.
        absent: The reason for each agent that could not be started.
        plan: The variants of each group that were collected.
        missing: The capabilities that the agent lacks, for each group that does not apply.
        ran: The variants of each group that ran.
        files: The file of the scenario of each group, as node ids name it.
        failed_groups: The printed findings about all variants of a group together.
        user_runs: How many runs users' tests made.
        gated_runs: In how many of them something needed an approval, or the test said what does.
        ungated: By tool that has effects: the files of the tests in which nothing asks before it.
        asked: By tool: the files of the tests in which a person was asked about it.
        remembered: The scenario, the agent and the variant of each run that was made in an earlier session.
        are_runs_keyed: Whether it is known of each run what it depends on.
        local_files: The digests of the files that the workers loaded and that are in no distribution.
        times: The seconds that the runs of each group took that were played.
        traits: The design choices that each agent showed.
        complete: Whether the session came to its end, and every run reported.
        stream: The report file that each verdict is added to; None without one.
        catalogue: The digest of the scenario files, if there is a report.
        shard: Which part of the scenarios is run, as the report says it.
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
    user_runs: int = 0
    gated_runs: int = 0
    ungated: dict[str, set[str]] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict)
    remembered: set[tuple[str, str, str]] = field(default_factory=set)
    are_runs_keyed: bool = True
    local_files: dict[str, str] = field(default_factory=dict)
    times: dict[Group, float] = field(default_factory=dict)
    traits: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)
    complete: bool = True
    stream: ReportStream | None = None
    catalogue: str = ""
    shard: str = ""
    _clean: dict[Group, list[CleanRun]] = field(default_factory=dict)

    # --- what was collected ---

    def add_plan(self, scenario: str, agent: str, variants: Iterable[Variant]) -> None:
        """Note the variants in which an agent runs a scenario."""
        self.plan[scenario, agent] = [variant.id for variant in variants]

    def add_not_applicable(self, scenario: str, agent: str, missing: Iterable[str]) -> None:
        """Note that an agent cannot run a scenario."""
        self.missing[scenario, agent] = sorted(missing)

    def dump_collection(self) -> list[Any]:
        """Return what was collected in the plain values that pytest-xdist carries."""
        tables = [[[*group, *names] for group, names in table.items()] for table in (self.plan, self.missing)]
        return [*tables, *([[*pair] for pair in table.items()] for table in (self.absent, list_local_files()))]

    def load_collection(self, dumped: Sequence[Any]) -> None:
        """Add what a worker collected; all workers collect the same."""
        *tables, absent, local_files = dumped
        self.absent.update((agent, why) for agent, why in absent)
        self.local_files.update((file, content) for file, content in local_files)
        for table, rows in zip((self.plan, self.missing), tables, strict=True):
            table.update({(scenario, agent): names for scenario, agent, *names in rows})

    # --- what ran ---

    def add(self, record: RunRecord, file: str) -> Group:
        """Add the record of a run of an item in a file, and return its group."""
        group = (record.scenario, record.agent)
        self.agents.setdefault(record.about.agent, record.about)
        self.titles.setdefault(record.scenario, record.title)
        self.lines += record.lines
        key = (record.scenario, record.agent, record.variant)
        self.are_runs_keyed &= bool(record.key)
        if record.is_remembered:
            self.remembered.add(key)
        if self.stream is not None:
            self.stream.add_agent(record.about)
            self.stream.add(
                key,
                record.lines,
                transcript=record.transcript,
                title=record.title,
                remembered=record.is_remembered,
            )
        if record.transcript is not None:
            self.transcripts.append(
                TranscriptLine(
                    scenario=record.scenario, agent=record.agent, variant=record.variant, lines=record.transcript
                )
            )
        if record.is_user_run:
            self.user_runs += 1
            self.gated_runs += record.is_gated
            for tool in record.ungated:
                self.ungated.setdefault(tool, set()).add(file)
            for tool in record.asked:
                self.asked.setdefault(tool, set()).add(file)
        else:
            self.files[group] = file
            self.ran.setdefault(group, []).append(record.variant)
            if record.traits:
                self.traits[record.agent] = merge_traits([self.traits.get(record.agent, {}), record.traits])
            clean = self._clean.setdefault(group, [])
            if record.history is not None:
                clean.append(CleanRun(record.key, record.history))
        return group

    def add_group(self, group: Group, lines: Sequence[VerdictLine]) -> None:
        """Add what was judged of all variants of a group together."""
        self.lines += lines
        if self.stream is not None:
            self.stream.add((*group, ALL_VARIANTS), lines)

    def measure_groups(self) -> dict[Group, float]:
        """Return the times of the groups that were played as a whole."""
        again = {(scenario, agent) for scenario, agent, _ in self.remembered}
        return {group: took for group, took in self.times.items() if group not in again and self.is_complete(group)}

    def is_complete(self, group: Group) -> bool:
        """Return whether a group ran in all its variants."""
        return set(self.plan.get(group, ())) == set(self.ran.get(group, ()))

    def pop_clean_runs(self, group: Group) -> list[CleanRun]:
        """Return the clean runs of a group, and forget them."""
        return self._clean.pop(group, [])

    def open_groups(self) -> list[Group]:
        """Return the groups whose clean runs were not taken yet."""
        return list(self._clean)

    # --- the report ---

    def build_report(self, seed: int) -> Report:
        """Return the report of everything so far."""
        header = ReportHeader(
            package=version("pytest-approvals"),
            python=platform.python_version(),
            seed=seed,
            catalogue=self.catalogue,
            shard=self.shard,
            agents=tuple(self._ordered_agents()),
            checks=self._checks(),
            scenarios=dict(sorted(self.titles.items())),
        )
        return Report(
            header=header,
            verdicts=list(self.lines),
            transcripts=list(self.transcripts),
            not_applicable=[
                NotApplicableLine(scenario=scenario, agent=agent, missing=tuple(names))
                for (scenario, agent), names in self.missing.items()
            ],
            stale=list(self.stale),
            absent=[AbsentLine(agent=agent, why=why) for agent, why in self.absent.items()],
            traits=[TraitsLine(agent=agent, traits=traits) for agent, traits in self.traits.items()],
            remembered=set(self.remembered),
            complete=self.complete,
        )

    def _ordered_agents(self) -> list[ReportedAgent]:
        """Return the agents as they were collected, because workers report in any order; those of users' tests last."""
        collected = dict.fromkeys(agent for _, agent in (*self.plan, *self.missing))
        names = [name for name in collected if name in self.agents]
        return [self.agents[name] for name in [*names, *sorted(self.agents.keys() - collected.keys())]]

    def _checks(self) -> dict[str, ReportedCheck]:
        applied = {
            slug: ReportedCheck(requirement=check.requirement, level=check.level, severity=check.severity)
            for slug, check in CHECKS.items()
        }
        stored = {
            STORED_TRANSCRIPT_CHECK: ReportedCheck(requirement=STORED_TRANSCRIPT_REQUIREMENT, severity="cosmetic")
        }
        return applied | (stored if any(line.check == STORED_TRANSCRIPT_CHECK for line in self.lines) else {})
