"""A whole report in memory: its lines by kind, counted, and several as one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from .lines import (
    AbsentLine,
    Line,
    NotApplicableLine,
    ReportFooter,
    ReportHeader,
    StaleLine,
    TranscriptLine,
    VerdictLine,
)
from .subject import ALL_VARIANTS


class Report(BaseModel):
    """
    A whole report.

    Attributes:
        complete: It has its footer.
    """

    model_config = ConfigDict(extra="forbid")

    header: ReportHeader
    verdicts: list[VerdictLine] = Field(default_factory=list)
    transcripts: list[TranscriptLine] = Field(default_factory=list)
    not_applicable: list[NotApplicableLine] = Field(default_factory=list)
    stale: list[StaleLine] = Field(default_factory=list)
    absent: list[AbsentLine] = Field(default_factory=list)
    complete: bool = True

    def add(self, line: Line) -> None:
        """Takes in a line that is neither header nor footer."""
        match line:
            case VerdictLine():
                self.verdicts.append(line)
            case TranscriptLine():
                self.transcripts.append(line)
            case NotApplicableLine():
                self.not_applicable.append(line)
            case StaleLine():
                self.stale.append(line)
            case AbsentLine():
                self.absent.append(line)

    def body(self) -> Iterator[Line]:
        """Gives all lines between header and footer, in a fixed order, whatever order they came in."""
        yield from sorted(self.not_applicable, key=lambda line: (line.scenario, line.agent))
        yield from sorted(self.verdicts, key=_order)
        yield from sorted(self.transcripts, key=lambda line: (line.scenario, line.agent, line.variant))
        yield from sorted(self.stale, key=lambda line: (line.agent, line.waiver))
        yield from sorted(self.absent, key=lambda line: line.agent)

    def footer(self) -> ReportFooter:
        """Counts what is there."""
        counts = Counts()
        for line in self.body():
            counts.add(line)
        return counts.footer()


class Counts:
    """Counts runs, and verdicts by status."""

    def __init__(self) -> None:
        self._runs: set[tuple[str, str, str]] = set()
        self._statuses: Counter[str] = Counter()

    def add(self, line: Line) -> None:
        """Counts a line."""
        if isinstance(line, VerdictLine):
            self._statuses[line.status] += 1
            if line.variant != ALL_VARIANTS:
                self._runs.add((line.scenario, line.agent, line.variant))
        elif isinstance(line, StaleLine):
            self._statuses["stale"] += 1
        elif isinstance(line, AbsentLine):
            self._statuses["absent"] += 1

    def footer(self) -> ReportFooter:
        """Gives the counts."""
        return ReportFooter(runs=len(self._runs), counts=dict(sorted(self._statuses.items())))


def _order(line: VerdictLine) -> tuple[str, ...]:
    return line.scenario, line.agent, line.variant, line.check, line.label or ""


def merged(reports: Iterable[Report]) -> Report:
    """
    Gives several reports as one; of two lines about the same the later one counts.

    The header is that of the first, with the agents, checks and scenarios of all. It is complete if all of them are.
    """
    several = list(reports)
    header = several[0].header
    agents = {each.agent: each for report in several for each in report.header.agents}
    checks = {slug: each for report in several for slug, each in report.header.checks.items()}
    titles = {name: title for report in several for name, title in report.header.scenarios.items()}
    whole = Report(
        header=header.model_copy(update={"agents": tuple(agents.values()), "checks": checks, "scenarios": titles}),
        complete=all(report.complete for report in several),
    )
    for line in {_identity(line): line for report in several for line in report.body()}.values():
        whole.add(line)
    return whole


def _identity(line: Line) -> tuple[Any, ...]:
    if isinstance(line, VerdictLine):
        return (line.event, *_order(line))
    if isinstance(line, TranscriptLine):
        return line.event, line.scenario, line.agent, line.variant
    return (line,)
