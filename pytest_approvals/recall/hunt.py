"""
Whether the catalogue finds a known bug.

It does if a check of the row fails on the bad agent, in one of the flavours that are meant, in some variant in which it
does not fail on the good one; where there is no good one, if it fails. The first such variant is enough. Scenarios that
cite the report of the bug run first, then the plainest variants of all others: that makes an answer quick, and changes
none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pytest_approvals.checks import CHECKS
from pytest_approvals.scenario.parts import Scenario, Variant

from .kinds import kinds
from .suspects import Suspect
from .table import Release, Row

_REPORT = re.compile(r"([\w.-]+/[\w.-]+)(?:#|/(?:issues|pull|discussions)/)(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """
    What became of a row.

    Attributes:
        checks: The checks that found it; none where it was missed.
        agent, scenario, variant: Where.
        why: Why it was missed.
        runs: How many runs on the bad agent are behind it.
    """

    row: Row
    checks: tuple[str, ...] = ()
    agent: str = ""
    scenario: str = ""
    variant: str = ""
    why: str = ""
    runs: int = 0

    @property
    def found(self) -> bool:
        """Whether it was found."""
        return bool(self.checks)

    def __str__(self) -> str:
        return f"found {self.row.id}: {', '.join(self.checks)}" if self.found else f"missed {self.row.id}: {self.why}"


class Hunt:
    """
    Looks for the bugs of a table.

    Arguments:
        catalogue: The scenarios, by id.
        time_limit: Seconds for one run.
    """

    def __init__(self, catalogue: Mapping[str, Scenario], time_limit: float) -> None:
        self._catalogue = catalogue
        self._time_limit = time_limit
        self._suspects: dict[Release, Suspect] = {}

    def look_for(self, row: Row) -> Answer:
        """Runs the catalogue on the agents of *row*, and where nothing is found on their other flavours."""
        answers = []
        for bad, good in kinds(row):
            answers.append(self._looked_for(row, self._suspect(bad), None if good is None else self._suspect(good)))
            if answers[-1].found:
                return answers[-1]
        return answers[0]

    def _looked_for(self, row: Row, bad: Suspect, good: Suspect | None) -> Answer:
        for suspect in (bad, *((good,) if good else ())):
            if suspect.unavailable:
                return Answer(row=row, why=suspect.unavailable)
        return self._found(row, bad, good) or self._found_together(row, bad, good) or self._missed(row, bad, good)

    def _suspect(self, release: Release) -> Suspect:
        if release not in self._suspects:
            self._suspects[release] = Suspect(release, self._catalogue, self._time_limit)
        return self._suspects[release]

    def _found(self, row: Row, bad: Suspect, good: Suspect | None) -> Answer | None:
        wanted = {slug for slug in row.checks if CHECKS[slug].group is None}
        for scenario, variant in self._plan(row, bad) if wanted else ():
            hits = wanted & bad.broken(scenario, variant)
            if hits and good is not None:
                if variant not in good.variants(scenario):
                    continue
                hits -= good.broken(scenario, variant)
            if hits:
                return _answer(row, hits, bad, scenario, variant.id)
        return None

    def _found_together(self, row: Row, bad: Suspect, good: Suspect | None) -> Answer | None:
        wanted = {slug for slug in row.checks if CHECKS[slug].group is not None}
        for scenario in self._order(row) if wanted else ():
            hits = wanted & bad.broken_together(scenario)
            if hits and good is not None:
                hits -= good.broken_together(scenario)
            if hits:
                return _answer(row, hits, bad, scenario, "*")
        return None

    def _missed(self, row: Row, bad: Suspect, good: Suspect | None) -> Answer:
        failed = bad.broken_at_all()
        both = [slug for slug in row.checks if slug in failed]
        others = [f"{slug} ({count})" for slug, count in failed.items() if slug not in row.checks]
        if both and good is not None:
            why = f"{', '.join(both)} failed on {good.release} in the same variants, too"
        else:
            what = f"; what failed: {', '.join(others)}" if others else "; nothing failed"
            why = f"none of its checks failed in {bad.number_of_runs} runs on {bad.release}{what}"
        return Answer(row=row, why=why, runs=bad.number_of_runs)

    def _plan(self, row: Row, bad: Suspect) -> Iterator[tuple[str, Variant]]:
        citing = self._citing(row)
        yield from ((scenario, variant) for scenario in citing for variant in bad.variants(scenario))
        others = [one for one in self._catalogue if one not in citing]
        for rank in zip_longest(*(bad.variants(scenario) for scenario in others)):
            yield from ((scenario, one) for scenario, one in zip(others, rank, strict=True) if one is not None)

    def _order(self, row: Row) -> list[str]:
        citing = self._citing(row)
        return [*citing, *(one for one in self._catalogue if one not in citing)]

    def _citing(self, row: Row) -> list[str]:
        reports = _reports(row.sources)
        return [name for name, scenario in self._catalogue.items() if reports & _reports(scenario.sources)]


def _reports(sources: Sequence[str]) -> set[tuple[str, str]]:
    return {(repository.lower(), number) for text in sources for repository, number in _REPORT.findall(text)}


def _answer(row: Row, hits: set[str], bad: Suspect, scenario: str, variant: str) -> Answer:
    checks = tuple(slug for slug in row.checks if slug in hits)
    where = str(bad.release.spec)
    return Answer(row=row, checks=checks, agent=where, scenario=scenario, variant=variant, runs=bad.number_of_runs)
