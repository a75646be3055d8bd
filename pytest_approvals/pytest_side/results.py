"""What came of the runs of a session; under pytest-xdist the controller gathers what its workers report."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any

from pytest_approvals.checks import CHECKS
from pytest_approvals.journal.history import History
from pytest_approvals.pytest_side.records import AS_STORED, AS_STORED_REQUIREMENT, unpacked
from pytest_approvals.report.lines import (
    AbsentLine,
    NotApplicableLine,
    ReportedAgent,
    ReportedCheck,
    ReportHeader,
    StaleLine,
    TranscriptLine,
    VerdictLine,
)
from pytest_approvals.report.whole import Report
from pytest_approvals.scenario.parts import Variant

Group = tuple[str, str]
"""A scenario and an agent."""


@dataclass(slots=True)
class Results:
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
        return [History.of(unpacked(journal)) for journal in self._journals.pop(group, ())]

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
        stored = {AS_STORED: ReportedCheck(requirement=AS_STORED_REQUIREMENT)}
        return applied | (stored if any(line.check == AS_STORED for line in self.lines) else {})
