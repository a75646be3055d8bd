"""
Drafts tried on agents: which checks fail, and whether the reference agent finds the scenario sound.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agents import AgentSpec
from pytest_approvals.checks import CHECKS, judge, judge_group
from pytest_approvals.checks.verdicts import Verdict
from pytest_approvals.errors import AgentUnavailable, ScenarioError
from pytest_approvals.harness.play import Limit
from pytest_approvals.journal.history import History
from pytest_approvals.journal.reached import reached
from pytest_approvals.recall.suspects import Suspect
from pytest_approvals.recall.table import Release
from pytest_approvals.scenario.load import scenario_from_text
from pytest_approvals.scenario.parts import Scenario, Variant
from pytest_approvals.scenario.requirements import required_by_content

from .document import document_of
from .draft import Draft
from .yaml_text import yaml_text

NAME = "reproduced/conversation"
_LIMIT = Limit(seconds=10)
_COUNTED = ("paused", "approved", "rejected", "edited", "finished")
_UNSOUND = frozenset({"fail", "harness-error", "unknown"})


class Tried:
    """
    An agent that drafts are tried on.

    Arguments:
        name: Its spec.
        limit: How far one run may go.
    """

    def __init__(self, name: str, limit: Limit = _LIMIT) -> None:
        self.name = name
        self._catalogue: dict[str, Scenario] = {}
        self._suspect = Suspect(Release(spec=AgentSpec.parse(name)), self._catalogue, limit)
        self._count = 0
        if self._suspect.unavailable:
            raise AgentUnavailable(name, self._suspect.unavailable, "name another one")

    def lacks(self, draft: Draft) -> list[str]:
        """Gives the capabilities that the draft needs and the agent does not claim; with any, it cannot play it."""
        return sorted(required_by_content(scenario_of(draft)) - self._suspect.source.facts.capabilities)

    def failing(self, draft: Draft) -> dict[str, Variant | None]:
        """
        Gives the checks that fail, in the order of all checks, each with the first variant in which it does; None for
        one that is taken on all variants together.
        """
        return self.failing_in(scenario_of(draft))

    def failing_in(self, scenario: Scenario) -> dict[str, Variant | None]:
        """Gives the same for a scenario."""
        found: dict[str, Variant | None] = {}
        for variant, verdict in self._failures(scenario):
            found.setdefault(verdict.check, variant)
        return {slug: found[slug] for slug in CHECKS if slug in found}

    def fails(self, draft: Draft, check: str, variant: Variant | None) -> bool:
        """
        Says whether a check fails in that variant, or in any where the draft does not have it; none does where the
        draft is no scenario.
        """
        try:
            return any(verdict.check == check for _, verdict in self._failures(scenario_of(draft), variant))
        except ScenarioError:
            return False

    def is_sound(self, draft: Draft) -> bool:
        """Says whether the draft is a scenario, and nothing is wrong with it on this agent."""
        try:
            return next(self.wrong(draft), None) is None
        except ScenarioError:
            return False

    def wrong(self, draft: Draft) -> Iterator[Verdict]:
        """Gives what is wrong with the draft on this agent."""
        for _, _, verdicts in self._runs(scenario_of(draft)):
            yield from (one for one in verdicts if one.status in _UNSOUND)

    def reached(self, draft: Draft) -> Mapping[str, int]:
        """Gives what happens at least so often in every run."""
        counts = [reached(self._suspect.history(name, variant)) for name, variant in self._planned(scenario_of(draft))]
        least = {word: min(each.get(word, 0) for each in counts) for word in _COUNTED}
        return {word: count for word, count in least.items() if count}

    def _failures(self, scenario: Scenario, only: Variant | None = None) -> Iterator[tuple[Variant | None, Verdict]]:
        """Gives what fails in each run, and then what fails on those together in which nothing does."""
        clean: list[History] = []
        for variant, history, verdicts in self._runs(scenario, only):
            yield from ((variant, one) for one in verdicts if one.status == "fail" and one.implied_by is None)
            if not any(one.fails for one in verdicts):
                clean.append(history)
        if only is None and len(clean) > 1:
            yield from ((None, one) for one in judge_group(clean) if one.status == "fail")

    def _runs(
        self, scenario: Scenario, only: Variant | None = None
    ) -> Iterator[tuple[Variant, History, list[Verdict]]]:
        planned = self._planned(scenario)
        for name, variant in [each for each in planned if each[1] == only] or planned:
            history = self._suspect.history(name, variant)
            yield variant, history, judge(history)

    def _planned(self, scenario: Scenario) -> list[tuple[str, Variant]]:
        """Gives the variants in this process, under a name that the agent has not played yet."""
        self._count += 1
        name = f"{NAME}-{self._count}"
        self._catalogue.clear()
        self._catalogue[name] = scenario
        return [
            (name, variant)
            for variant in self._suspect.variants(name)
            if variant.resume == "same" and variant.protocol == "native" and not variant.saved_by
        ]


def scenario_of(draft: Draft) -> Scenario:
    """
    Gives the scenario that a draft is.

    Errors:
        ScenarioError: It is none.
    """
    text: Any = yaml_text(document_of(draft))
    return scenario_from_text(text, name=NAME, path=f"{NAME}.approval.yaml")
