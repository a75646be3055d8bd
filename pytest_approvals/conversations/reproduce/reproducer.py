"""Reproduction of a failure on agents by a minimized draft.

A draft is tried on agents, one failing check is chosen, and the draft is minimized while that check fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import CHECKS, Verdict, judge, judge_group
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.conversations.reproduce.shrink import shrink
from pytest_approvals.errors import AgentUnavailable, ScenarioError, UsageError
from pytest_approvals.journal.coverage import count_reached
from pytest_approvals.journal.history import History
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import required_by_content
from pytest_approvals.scenario.to_file import format_yaml

SCENARIO_NAME = "reproduced/conversation"
_LIMIT = RunLimits(seconds=10)
_COUNTED = ("paused", "approved", "rejected", "edited", "finished")
_UNSOUND = frozenset({"fail", "harness-error", "unknown"})


class TrialAgent:
    """An agent that drafts are tried on.

    Args:
        release: Its spec, or a release with further requirements.
        limit: The limits of one run.
    """

    def __init__(self, release: str | AgentRelease, limit: RunLimits = _LIMIT) -> None:
        if isinstance(release, str):
            release = AgentRelease(spec=AgentSpec.parse(release))
        self.name = str(release)
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

    def find_problems(self, draft: ScenarioDraft) -> Iterator[Verdict]:
        """Yield the verdicts that show a problem of the draft on this agent."""
        for _, _, verdicts in self._runs(build_scenario(draft)):
            yield from (verdict for verdict in verdicts if verdict.status in _UNSOUND)

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
                (variant, verdict) for verdict in verdicts if verdict.status == "fail" and verdict.implied_by is None
            )
            if not any(verdict.fails for verdict in verdicts):
                clean.append(history)
        if only is None and len(clean) > 1:
            yield from ((None, verdict) for verdict in judge_group(clean) if verdict.status == "fail")

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


REFERENCE = "reference"
"""The agent on which nothing may fail; otherwise the scenario itself is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingCheck:
    """A check that fails on an agent, and the first variant in which it fails.

    The variant is None for a check on all variants together.
    """

    agent: TrialAgent
    check: str
    variant: Variant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """The result of a reproduction.

    Attributes:
        draft: The minimized draft, or the whole one if nothing fails.
        origin: The source of the conversation, in a sentence.
        failing_check: The check that fails; None if nothing fails.
        trials: The number of drafts that were tried.
        failing: The agents on which the check fails.
        holding: The agents on which it holds.
        reaches: What every run on the reference agent reaches, with the least count.
    """

    draft: ScenarioDraft
    origin: str
    failing_check: FailingCheck | None = None
    trials: int = 0
    failing: Sequence[str] = ()
    holding: Sequence[str] = ()
    reaches: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """The text of the scenario file."""
        return format_yaml(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """The document of the scenario file."""
        return build_document(self.draft, about=self._about, reaches=dict(self.reaches))

    @property
    def _about(self) -> str:
        if self.failing_check is None:
            return self.origin
        holds = f", and holds on {_join_words(self.holding)}" if self.holding else ""
        return f"{self.origin} The check {self.failing_check.check} fails on {_join_words(self.failing)}{holds}."


class Reproducer:
    """Minimizer of drafts that fail on agents.

    Args:
        agents: The specs of the agents, or their releases.
        limit: The limits of one run.
        most_trials: The maximum number of drafts that are tried.
        report_progress: Called with a line about every step.
    """

    def __init__(
        self, agents: Sequence[str | AgentRelease], *, limit: RunLimits, most_trials: int, report_progress: Callable[[str], None]
    ) -> None:
        self._agents = [TrialAgent(name, limit) for name in agents]
        self._reference = TrialAgent(REFERENCE, limit)
        self._most_trials = most_trials
        self._report_progress = report_progress

    def reproduce(self, draft: ScenarioDraft, origin: str, check: str | None = None) -> Reproduction:
        """Return a minimized scenario that fails as the whole conversation does.

        Args:
            draft: The whole conversation.
            origin: Its source, in a sentence.
            check: The check that has to fail; None for the first one that fails on some of the agents and not on all.

        Raises:
            UsageError: A check fails even on the reference agent.
            ScenarioError: The whole conversation is not a valid scenario.
        """
        problem = next(self._reference.find_problems(draft), None)
        if problem is not None:
            why = f"{problem.expected} is expected, and {problem.actual}"
            raise UsageError(
                f"cannot replay the conversation: {problem.check} fails even on the agent "
                f"{REFERENCE} ({why}); `pytest-approvals lint` says what is wrong with it"
            )
        failing_check = self._choose_check(draft, check)
        if failing_check is None:
            return Reproduction(draft=draft, origin=origin, reaches=self._count_reached(draft))
        self._report_progress(f"{failing_check.check} fails on {failing_check.agent.name}")
        small, trials = self._shrink(draft, failing_check)
        failing = [agent.name for agent in self._agents if failing_check.check in agent.find_failing_checks(small)]
        return Reproduction(
            draft=small,
            origin=origin,
            failing_check=failing_check,
            trials=trials,
            failing=failing,
            holding=[agent.name for agent in self._agents if agent.name not in failing],
            reaches=self._count_reached(small),
        )

    def _choose_check(self, draft: ScenarioDraft, check: str | None) -> FailingCheck | None:
        failing = [(agent, agent.find_failing_checks(draft)) for agent in self._agents]
        for agent, variants in failing:
            self._report_progress(f"{agent.name}: {self._describe(agent, draft, variants)}")
        candidates = [
            FailingCheck(agent=agent, check=slug, variant=variant)
            for agent, variants in failing
            for slug, variant in variants.items()
            if check in (None, slug)
        ]
        # A check that fails on all agents may be wrong itself, so one that distinguishes agents is preferred.
        distinguishing = [
            candidate for candidate in candidates if not all(candidate.check in variants for _, variants in failing)
        ]
        return next(iter(distinguishing or candidates), None)

    def _describe(self, agent: TrialAgent, draft: ScenarioDraft, checks: Collection[str]) -> str:
        if lacking := agent.missing_capabilities(draft):
            return f"cannot run it: missing {_join_words(lacking)}"
        return f"{_join_words([*checks]) or 'nothing'} fail{'s' if len(checks) < 2 else ''}"

    def _shrink(self, draft: ScenarioDraft, failing_check: FailingCheck) -> tuple[ScenarioDraft, int]:
        trials = 0

        def holds(candidate: ScenarioDraft) -> bool:
            nonlocal trials
            trials += 1
            if trials > self._most_trials or not failing_check.agent.fails(
                candidate, failing_check.check, failing_check.variant
            ):
                return False
            return self._reference.is_valid(candidate)

        small = shrink(draft, holds)
        return small, min(trials, self._most_trials)

    def _count_reached(self, draft: ScenarioDraft) -> tuple[tuple[str, int], ...]:
        return tuple(self._reference.count_reached(draft).items())


def _join_words(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
