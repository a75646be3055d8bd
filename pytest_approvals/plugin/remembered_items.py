"""Remembered items: runs that `pytest-approvals run` need not play again, because nothing that they depend on changed.

A run that no check failed, or whose failures a waiver covers, is kept with its journal and its verdicts. If the checks
or the waivers changed since, its journal is judged anew; a run that fails then is played, as is every run that failed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pytest_approvals.journal.events import Header, event_from_dict
from pytest_approvals.journal.files import Journal
from pytest_approvals.plugin.results import RunRecord, compress_events
from pytest_approvals.plugin.snapshot import is_updating_snapshots
from pytest_approvals.reporting.judged_run import JudgedRun
from pytest_approvals.reporting.report import VerdictLine
from pytest_approvals.runner.remembered_runs import RememberedRuns, get_runs_folder
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.runner.run_dependencies import (
    are_unchanged,
    digest,
    digest_judging_code,
    digest_run,
    list_installed_here,
    list_local_files,
)
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    import pytest

    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.plugin.settings import Settings

_RUN_HOOKS = ("pytest_approvals_run_begins", "pytest_approvals_run_ends")


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedVerdict:
    """How a run was judged, and what its item did with that.

    Attributes:
        judged_by: The digest of what judged it.
        record: The record of the run, without its history.
        is_clean: Whether no check failed, so that it is compared with the runs in other variants.
        transcript: The text of its transcript.
        warnings: The texts of its warnings.
        waived: The waivers of its failures, as pytest shows them; empty if there is none.
        findings: The slugs of its findings, as its item names them.
    """

    judged_by: str
    record: dict[str, Any]
    is_clean: bool
    transcript: str
    warnings: list[str] = field(default_factory=list)
    waived: str = ""
    findings: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RememberedItem:
    """What is known of the run of an item from before.

    Attributes:
        key: The digest of what the run depends on.
        events: Its journal, in the plain values of JSON.
        verdict: How it was judged; None if what judges it has changed.
    """

    key: str
    events: list[dict[str, Any]]
    verdict: RememberedVerdict | None

    @property
    def header(self) -> Header:
        """The header of its journal."""
        header = event_from_dict(self.events[0])
        assert isinstance(header, Header)
        return header

    def restore_record(self, verdict: RememberedVerdict) -> RunRecord:
        """Return the record of the run."""
        journal = compress_events(self.events) if verdict.is_clean else None
        return RunRecord.load({**verdict.record, "history": journal, "key": self.key, "is_remembered": True})

    def restore_run(self, scenario: Scenario, variant: Variant, agent: str) -> RecordedRun:
        """Return the recorded run of a scenario, without its output."""
        journal = Journal()
        journal.events.extend(map(event_from_dict, self.events))
        return RecordedRun(scenario=scenario, variant=variant, agent=agent, journal=journal)


class RunMemory:
    """The memory of a session for runs of earlier sessions.

    Args:
        settings: The settings of the session.
        store: The remembered runs.
    """

    def __init__(self, settings: Settings, store: RememberedRuns) -> None:
        self.store = store
        self._settings = settings
        self._judge_digests: dict[str, str] = {}

    @classmethod
    def of_session(cls, config: pytest.Config, settings: Settings) -> RunMemory | None:
        """Return the memory of a session; None if its runs are neither remembered nor kept.

        That is so for sessions that were not started by `pytest-approvals run`, and for those whose runs leave
        something behind that only a played one does: a journal, a call of a hook, a new transcript or waiver.
        """
        hooks = (getattr(config.hook, name).get_hookimpls() for name in _RUN_HOOKS)
        folder = get_runs_folder()
        if (
            folder is None
            or not config.getoption("approvals_chosen")
            or settings.fault
            or settings.journals is not None
            or settings.update_waivers
            or is_updating_snapshots(config)
            or any(hooks)
        ):
            return None
        return cls(settings, RememberedRuns(folder))

    # --- single runs ---

    def find(self, scenario: Scenario, variant: Variant, agent: AgentUnderTest) -> RememberedItem | None:
        """Return what is remembered of a run; None if it has to be played."""
        key = None if self._settings.fresh_runs else self.key_of(scenario, variant, agent)
        row = self.store.find(key) if key is not None else None
        if key is None or row is None or not are_unchanged(row["files"]):
            return None
        verdict = RememberedVerdict(**row["verdict"])
        is_current = verdict.judged_by == self.judge_digest(agent)
        return RememberedItem(key=key, events=row["events"], verdict=verdict if is_current else None)

    def key_of(self, scenario: Scenario, variant: Variant, agent: AgentUnderTest) -> str | None:
        """Return the digest of what a run depends on; None if that cannot be known."""
        settings = self._settings
        options = {
            "seed": settings.seed,
            "time limit": settings.time_limit,
            "allowed hosts": list(settings.allowed_hosts),
            "requirements": list(settings.requirements),
            "python": settings.python,
        }
        return digest_run(scenario, variant, agent.source, agent.local.spec, options)

    def judge_digest(self, agent: AgentUnderTest) -> str:
        """Return the digest of what judges the runs of an agent."""
        if agent.name not in self._judge_digests:
            waivers = [asdict(waiver) for waiver in agent.waivers]
            self._judge_digests[agent.name] = digest(self._judging, repr(waivers))
        return self._judge_digests[agent.name]

    @cached_property
    def _judging(self) -> str:
        from pytest_approvals.checks import CHECKS

        # The checks of extensions are in distributions, or in the project's own files, which count for the run.
        settings = self._settings
        wants_traits = settings.report is not None
        return digest(
            digest_judging_code(),
            sorted(CHECKS),
            list_installed_here(),
            settings.strict,
            settings.fail_on,
            wants_traits,
        )

    def keep(self, agent: AgentUnderTest, run: RecordedRun, judged: JudgedRun, record: RunRecord) -> None:
        """Keep a run that did not fail."""
        if not record.key:
            return
        # Without the history, which a dump compresses: the journal is kept as it is.
        dumped = replace(record, history=None).dump()
        for name in ("history", "key", "is_remembered"):
            del dumped[name]
        verdict = RememberedVerdict(
            judged_by=self.judge_digest(agent),
            record=dumped,
            is_clean=record.history is not None,
            transcript=judged.transcript.render(),
            warnings=[str(warning.args[0]) for warning in judged.warnings()],
            waived="; ".join(str(waiver) for waiver in judged.waived.values()),
            findings=", ".join(finding.verdict.check for finding in judged.findings),
        )
        events = [event.to_dict() for event in run.events]
        # Without `asdict`, which copies every value; they are written at once.
        written = {part.name: getattr(verdict, part.name) for part in fields(verdict)}
        self.store.keep(record.key, {"files": list_local_files(), "verdict": written, "events": events})

    def describe(self, remembered: int) -> Iterator[str]:
        """Yield what the summary says: how many runs were remembered, and why others will not be."""
        if remembered:
            what = (
                "1 run was remembered, since nothing that it depends on"
                if remembered == 1
                else (f"{remembered:,} runs were remembered, since nothing that they depend on")
            )
            yield f"{what} has changed; --fresh-runs plays every run"
        if self.store.problem is not None:
            yield f"runs are not remembered: {self.store.problem}"

    # --- all variants of a scenario together ---

    def find_group(self, keys: Sequence[str], agent: AgentUnderTest) -> list[VerdictLine] | None:
        """Return the lines of the report about runs that were judged together; None if they were not, or failed."""
        known = all(keys) and not self._settings.fresh_runs
        row = self.store.find(self._group_key(keys, agent)) if known else None
        return None if row is None else [VerdictLine.from_dict(line) for line in row]

    def keep_group(
        self, keys: Sequence[str], agent: AgentUnderTest, lines: Sequence[VerdictLine], *, failed: bool
    ) -> None:
        """Keep the lines about runs that were judged together; if they failed, forget the runs, so they are played."""
        if failed:
            self.store.forget(keys)
        elif all(keys):
            self.store.keep(self._group_key(keys, agent), [line.to_dict() for line in lines])

    def _group_key(self, keys: Iterable[str], agent: AgentUnderTest) -> str:
        return digest("group", sorted(keys), self.judge_digest(agent))
