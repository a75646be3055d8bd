"""Search of the catalogue for a known bug.

The catalogue detects a bug if a check of the row fails on the bad agent in a variant in which it does not fail on the
good one, or not about the same call in the same turn; if there is no good one, if it fails. The first such variant is
enough. Scenarios that cite the report of the bug run first, then the plainest variants of all others: that makes the
search quick, and does not change its result.

A report names a release, but seldom the code that was used with it. So a row that names no flavour means every flavour
of that distribution, and one that names `hosted` means `hosted_chat` and `hosted_workflow`, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import TYPE_CHECKING

from pytest_approvals.agents.adapters import load_flavours
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns, CampaignMemory
from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.known_bugs import KnownBug
from pytest_approvals.errors import ApprovalsError
from pytest_approvals.scenario.model import Scenario, Variant

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract.agent import Agent


def flavour_pairs(row: KnownBug) -> Iterator[tuple[AgentRelease, AgentRelease | None]]:
    """Yield the bad and the good agent of *row* in each flavour that it means; those that it names come first."""
    yield row.bad, row.good
    for flavour in _other_flavours(row.bad.spec):
        alike = row.good is not None and row.good.spec.base == row.bad.spec.base
        yield (
            _with_flavour(flavour, row.bad),
            _with_flavour(flavour, row.good) if row.good is not None and alike else row.good,
        )


def _other_flavours(spec: AgentSpec) -> tuple[str, ...]:
    try:
        known = load_flavours(spec.name)
        named = known[spec.flavour]
    except (ApprovalsError, KeyError):
        return ()
    prefix = f"{spec.flavour}_" if spec.flavour else ""
    others: dict[type[Agent], str] = {}
    for flavour, adapter in known.items():
        # A class that has two names as a flavour is searched once.
        if flavour.startswith(prefix) and adapter.framework == named.framework and adapter is not named:
            others.setdefault(adapter, flavour)
    return tuple(others.values())


def _with_flavour(flavour: str, release: AgentRelease) -> AgentRelease:
    return replace(release, spec=replace(release.spec, flavour=flavour))


_ISSUE_REFERENCE = re.compile(r"([\w.-]+/[\w.-]+)(?:#|/(?:issues|pull|discussions)/)(\d+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The result of the search for a known bug.

    Attributes:
        checks: The checks that detect it; none if it was missed.
        agent, scenario, variant: The run that detects it.
        why: Why it was missed.
        runs: The number of runs on the bad agent.
    """

    row: KnownBug
    checks: tuple[str, ...] = ()
    agent: str = ""
    scenario: str = ""
    variant: str = ""
    why: str = ""
    runs: int = 0

    @property
    def found(self) -> bool:
        """Whether the bug was found."""
        return bool(self.checks)

    def __str__(self) -> str:
        return f"found {self.row.id}: {', '.join(self.checks)}" if self.found else f"missed {self.row.id}: {self.why}"


class KnownBugSearch:
    """Search of the catalogue for the bugs of a table.

    Args:
        catalogue: The scenarios, by id.
        time_limit: Seconds for one run.
        memory: The journals of earlier campaigns; without it every run is played.
    """

    def __init__(
        self, catalogue: Mapping[str, Scenario], time_limit: float, memory: CampaignMemory | None = None
    ) -> None:
        self._memory = memory
        self._catalogue = catalogue
        self._time_limit = time_limit
        self._runs: dict[AgentRelease, AgentRuns] = {}

    def search(self, row: KnownBug) -> SearchResult:
        """Run the catalogue on the agents of *row*, and if nothing is found on their other flavours."""
        answers = []
        for bad, good in flavour_pairs(row):
            answers.append(self._search_pair(row, self._get_runs(bad), None if good is None else self._get_runs(good)))
            if answers[-1].found:
                return answers[-1]
        return answers[0]

    def _search_pair(self, row: KnownBug, bad: AgentRuns, good: AgentRuns | None) -> SearchResult:
        for suspect in (bad, *((good,) if good else ())):
            if suspect.unavailable:
                return SearchResult(row=row, why=suspect.unavailable)
        return (
            self._search_runs(row, bad, good)
            or self._search_groups(row, bad, good)
            or self._report_miss(row, bad, good)
        )

    def _get_runs(self, release: AgentRelease) -> AgentRuns:
        if release not in self._runs:
            self._runs[release] = AgentRuns(release, self._catalogue, self._time_limit, self._memory)
        return self._runs[release]

    def _search_runs(self, row: KnownBug, bad: AgentRuns, good: AgentRuns | None) -> SearchResult | None:
        wanted = {slug for slug in row.checks if CHECKS[slug].group is None}
        for scenario, variant in self._plan(row, bad) if wanted else ():
            symptoms = {symptom for symptom in bad.symptoms(scenario, variant) if symptom.check in wanted}
            if symptoms and good is not None:
                # Without a run on the good release a failure proves nothing.
                if variant not in good.variants(scenario) or good.why_unplayed(scenario, variant) is not None:
                    continue
                symptoms -= good.symptoms(scenario, variant)
            if symptoms:
                return _build_hit(row, {symptom.check for symptom in symptoms}, bad, scenario, variant.id)
        return None

    def _search_groups(self, row: KnownBug, bad: AgentRuns, good: AgentRuns | None) -> SearchResult | None:
        wanted = {slug for slug in row.checks if CHECKS[slug].group is not None}
        for scenario in self._order_scenarios(row) if wanted else ():
            hits = wanted & bad.failed_group_checks(scenario)
            if hits and good is not None:
                hits -= good.failed_group_checks(scenario)
            if hits:
                return _build_hit(row, hits, bad, scenario, "*")
        return None

    def _report_miss(self, row: KnownBug, bad: AgentRuns, good: AgentRuns | None) -> SearchResult:
        failed = bad.failure_counts()
        both = [slug for slug in row.checks if slug in failed]
        others = [f"{slug} ({count})" for slug, count in failed.items() if slug not in row.checks]
        if both and good is not None:
            why = f"{', '.join(both)} failed on {good.release} in the same variants, too"
        else:
            failures = f"; what failed: {', '.join(others)}" if others else "; nothing failed"
            why = f"none of its checks failed in {bad.number_of_runs} runs on {bad.release}{failures}"
        return SearchResult(row=row, why=why, runs=bad.number_of_runs)

    def _plan(self, row: KnownBug, bad: AgentRuns) -> Iterator[tuple[str, Variant]]:
        citing = find_citing(self._catalogue, row)
        yield from ((scenario, variant) for scenario in citing for variant in bad.variants(scenario))
        others = [scenario for scenario in self._catalogue if scenario not in citing]
        # By rank: the plainest variant of every scenario, then the second of every scenario, and so on.
        for rank in zip_longest(*(bad.variants(scenario) for scenario in others)):
            yield from (
                (scenario, variant) for scenario, variant in zip(others, rank, strict=True) if variant is not None
            )

    def _order_scenarios(self, row: KnownBug) -> list[str]:
        citing = find_citing(self._catalogue, row)
        return [*citing, *(scenario for scenario in self._catalogue if scenario not in citing)]


def find_citing(catalogue: Mapping[str, Scenario], row: KnownBug) -> list[str]:
    """Return the ids of the scenarios that cite a report of a bug."""
    reports = _cited_issues(row.sources)
    return [name for name, scenario in catalogue.items() if reports & _cited_issues(scenario.sources)]


def _cited_issues(sources: Sequence[str]) -> set[tuple[str, str]]:
    return {(repository.lower(), number) for text in sources for repository, number in _ISSUE_REFERENCE.findall(text)}


def _build_hit(row: KnownBug, hits: set[str], bad: AgentRuns, scenario: str, variant: str) -> SearchResult:
    checks = tuple(slug for slug in row.checks if slug in hits)
    agent = str(bad.release.spec)
    return SearchResult(
        row=row, checks=checks, agent=agent, scenario=scenario, variant=variant, runs=bad.number_of_runs
    )
