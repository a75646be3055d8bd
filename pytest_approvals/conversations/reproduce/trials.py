"""Trials of stories on agents: drafts, and scenarios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import CHECKS, Verdict, judge, judge_group
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.errors import AgentUnavailable, ScenarioError
from pytest_approvals.journal.coverage import count_reached
from pytest_approvals.journal.history import History
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import required_by_content
from pytest_approvals.scenario.to_file import format_yaml
from pytest_approvals.scenario.variants import allowed_variants

SCENARIO_NAME = "reproduced/conversation"
_LIMIT = RunLimits(seconds=10)
_COUNTED = ("paused", "approved", "rejected", "edited", "finished")
_UNEXERCISED = "scenario-exercised"
"""A story near the conversation may take another way than its steps expect, which is no failure of an agent."""

_UNSOUND = frozenset({"fail", "harness-error", "unknown"})


class TrialAgent:
    """An agent that drafts are tried on.

    Args:
        release: Its spec, or a release with further requirements.
        limit: The limits of one run.

    Attributes:
        warned_checks: The checks that fail if they warn, because a user has named them.
    """

    def __init__(self, release: str | AgentRelease, limit: RunLimits = _LIMIT) -> None:
        if isinstance(release, str):
            release = AgentRelease(spec=AgentSpec.parse(release))
        self.name = str(release)
        self.warned_checks: frozenset[str] = frozenset()
        self._catalogue: dict[str, Scenario] = {}
        self._agent_runs = AgentRuns(release, self._catalogue, limit)
        self._count = 0
        if self._agent_runs.unavailable:
            raise AgentUnavailable(self.name, self._agent_runs.unavailable, "name another one")

    def missing_capabilities(self, draft: ScenarioDraft) -> list[str]:
        """Return the capabilities that the draft needs and the agent lacks; with any, it cannot run it."""
        return sorted(required_by_content(build_scenario(draft)) - self._agent_runs.source.facts.capabilities)

    def find_failing_checks(self, draft: ScenarioDraft) -> dict[str, Variant | None]:
        """Return the failing checks of a draft, each with the first variant in which it fails.

        They are in the order of all checks; the variant is None for a check on all variants together.
        """
        return self.find_failing_checks_of(build_scenario(draft))

    def find_failing_checks_of(self, scenario: Scenario) -> dict[str, Variant | None]:
        """Return the failing checks of a scenario; see `find_failing_checks`."""
        variants: dict[str, Variant | None] = {}
        for variant, verdict in self._failures(scenario):
            variants.setdefault(verdict.check, variant)
        return {slug: variants[slug] for slug in CHECKS if slug in variants}

    def fails(self, draft: ScenarioDraft, check: str, variant: Variant | None) -> bool:
        """Return whether a check fails in a variant, or in any if the draft does not have that one.

        No check fails if the draft is not a valid scenario.
        """
        try:
            return any(verdict.check == check for _, verdict in self._failures(build_scenario(draft), variant))
        except ScenarioError:
            return False

    def is_valid(self, draft: ScenarioDraft) -> bool:
        """Return whether the draft is a valid scenario on which nothing fails on this agent."""
        try:
            return next(self.find_problems(draft), None) is None
        except ScenarioError:
            return False

    @property
    def capabilities(self) -> frozenset[str]:
        """What the agent claims."""
        return self._agent_runs.source.facts.capabilities

    def plainest_variants(self, scenario: Scenario) -> list[Variant]:
        """Return the base variant, and the plainest ones with a state that is serialized and that is rebuilt."""
        allowed = allowed_variants(scenario, self._agent_runs.source.facts, {"resume": ("same",)})
        base = allowed[:1]
        # What was stored has gone through text, which a copy has not.
        serialized = [each for each in allowed if each.serialize not in ("none", "copy")][:1]
        rebuilt = [each for each in allowed if each.source == "rebuilt"][:1]
        return list(dict.fromkeys((*base, *serialized, *rebuilt)))

    def plays(self, scenario: Scenario, variant: Variant) -> bool:
        """Return whether the agent can play a scenario in a variant."""
        return variant in allowed_variants(scenario, self._agent_runs.source.facts, {"resume": ("same",)})

    def failing_checks(self, scenario: Scenario, variant: Variant) -> list[str]:
        """Return the checks that fail in one run, without those that follow from others."""
        return [
            verdict.check
            for verdict in self._judge(scenario, variant)
            if self._fails(verdict) and verdict.implied_by is None and verdict.check != _UNEXERCISED
        ]

    def _fails(self, verdict: Verdict) -> bool:
        is_wanted = verdict.check in self.warned_checks
        return verdict.status == "fail" or (verdict.status == "warning" and is_wanted)

    def is_sound(self, scenario: Scenario, variant: Variant) -> bool:
        """Return whether nothing fails in the nearest variant that the agent can play."""
        allowed = allowed_variants(scenario, self._agent_runs.source.facts, {"resume": ("same",)})
        nearest = variant if variant in allowed else next(iter(allowed), None)
        return nearest is not None and not any(
            (verdict.status in _UNSOUND or self._fails(verdict)) and verdict.check != _UNEXERCISED
            for verdict in self._judge(scenario, nearest)
        )

    def _judge(self, scenario: Scenario, variant: Variant) -> list[Verdict]:
        self._catalogue.clear()
        self._catalogue[SCENARIO_NAME] = scenario
        return judge(self._agent_runs.history(SCENARIO_NAME, variant))

    def find_problems(self, draft: ScenarioDraft) -> Iterator[Verdict]:
        """Yield the verdicts that show a problem of the draft on this agent."""
        for _, _, verdicts in self._runs(build_scenario(draft)):
            yield from (verdict for verdict in verdicts if verdict.status in _UNSOUND or self._fails(verdict))

    def count_reached(self, draft: ScenarioDraft) -> Mapping[str, int]:
        """Return how often each outcome is reached at least in every run."""
        counts = [
            count_reached(self._agent_runs.history(name, variant))
            for name, variant in self._planned(build_scenario(draft))
        ]
        least = {word: min(count.get(word, 0) for count in counts) for word in _COUNTED}
        return {word: count for word, count in least.items() if count}

    def _failures(self, scenario: Scenario, only: Variant | None = None) -> Iterator[tuple[Variant | None, Verdict]]:
        """Yield the failures of each run, then those of all runs without a failure together."""
        clean: list[History] = []
        for variant, history, verdicts in self._runs(scenario, only):
            yield from (
                (variant, verdict) for verdict in verdicts if self._fails(verdict) and verdict.implied_by is None
            )
            if not any(verdict.fails for verdict in verdicts):
                clean.append(history)
        if only is None and len(clean) > 1:
            yield from ((None, verdict) for verdict in judge_group(clean) if self._fails(verdict))

    def _runs(
        self, scenario: Scenario, only: Variant | None = None
    ) -> Iterator[tuple[Variant, History, list[Verdict]]]:
        planned = self._planned(scenario)
        for name, variant in [plan for plan in planned if plan[1] == only] or planned:
            history = self._agent_runs.history(name, variant)
            yield variant, history, judge(history)

    def _planned(self, scenario: Scenario) -> list[tuple[str, Variant]]:
        """Return the variants in this process, under a scenario name that the agent has not run yet."""
        # `AgentRuns` remembers the variants of a scenario by its name.
        self._count += 1
        name = f"{SCENARIO_NAME}-{self._count}"
        self._catalogue.clear()
        self._catalogue[name] = scenario
        return [
            (name, variant)
            for variant in self._agent_runs.variants(name)
            if variant.resume == "same" and variant.protocol == "native" and not variant.saved_by
        ]


def build_scenario(draft: ScenarioDraft) -> Scenario:
    """Build the scenario of a draft.

    Raises:
        ScenarioError: The draft is not a valid scenario.
    """
    text: Any = format_yaml(build_document(draft))
    return parse_scenario(text, name=SCENARIO_NAME, path=f"{SCENARIO_NAME}{SCENARIO_SUFFIX}")
