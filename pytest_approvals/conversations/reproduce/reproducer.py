"""Drafts tried on agents: which checks fail, and whether the reference agent finds the scenario sound.

The whole way: a draft is tried on agents, one failing check is chosen, and the draft is made small while that fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import CHECKS, Verdict, judge, judge_group
from pytest_approvals.conversations.reproduce.draft import ScenarioDraft
from pytest_approvals.conversations.reproduce.scenario_document import build_document, format_yaml
from pytest_approvals.conversations.reproduce.shrink import shrink
from pytest_approvals.errors import AgentUnavailable, ScenarioError, UsageError
from pytest_approvals.journal.coverage import count_reached
from pytest_approvals.journal.history import History
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import required_by_content

SCENARIO_NAME = "reproduced/conversation"
_LIMIT = RunLimits(seconds=10)
_COUNTED = ("paused", "approved", "rejected", "edited", "finished")
_UNSOUND = frozenset({"fail", "harness-error", "unknown"})


class TrialAgent:
    """An agent that drafts are tried on.

    Args:
        name: Its spec.
        limit: How far one run may go.
    """

    def __init__(self, name: str, limit: RunLimits = _LIMIT) -> None:
        self.name = name
        self._catalogue: dict[str, Scenario] = {}
        self._suspect = AgentRuns(AgentRelease(spec=AgentSpec.parse(name)), self._catalogue, limit)
        self._count = 0
        if self._suspect.unavailable:
            raise AgentUnavailable(name, self._suspect.unavailable, "name another one")

    def lacks(self, draft: ScenarioDraft) -> list[str]:
        """Return the capabilities that the draft needs and the agent does not claim; with any, it cannot play it."""
        return sorted(required_by_content(build_scenario(draft)) - self._suspect.source.facts.capabilities)

    def failing(self, draft: ScenarioDraft) -> dict[str, Variant | None]:
        """Return the checks that fail, in the order of all checks, each with the first variant in which it does; None for
        one that is taken on all variants together.
        """
        return self.failing_checks_of(build_scenario(draft))

    def failing_checks_of(self, scenario: Scenario) -> dict[str, Variant | None]:
        """Return the same for a scenario."""
        found: dict[str, Variant | None] = {}
        for variant, verdict in self._failures(scenario):
            found.setdefault(verdict.check, variant)
        return {slug: found[slug] for slug in CHECKS if slug in found}

    def fails(self, draft: ScenarioDraft, check: str, variant: Variant | None) -> bool:
        """Return whether a check fails in that variant, or in any where the draft does not have it; none does where the
        draft is no scenario.
        """
        try:
            return any(verdict.check == check for _, verdict in self._failures(build_scenario(draft), variant))
        except ScenarioError:
            return False

    def is_valid(self, draft: ScenarioDraft) -> bool:
        """Return whether the draft is a scenario, and nothing is wrong with it on this agent."""
        try:
            return next(self.wrong(draft), None) is None
        except ScenarioError:
            return False

    def wrong(self, draft: ScenarioDraft) -> Iterator[Verdict]:
        """Return what is wrong with the draft on this agent."""
        for _, _, verdicts in self._runs(build_scenario(draft)):
            yield from (one for one in verdicts if one.status in _UNSOUND)

    def reached(self, draft: ScenarioDraft) -> Mapping[str, int]:
        """Return what happens at least so often in every run."""
        counts = [
            count_reached(self._suspect.history(name, variant))
            for name, variant in self._planned(build_scenario(draft))
        ]
        least = {word: min(each.get(word, 0) for each in counts) for word in _COUNTED}
        return {word: count for word, count in least.items() if count}

    def _failures(self, scenario: Scenario, only: Variant | None = None) -> Iterator[tuple[Variant | None, Verdict]]:
        """Return what fails in each run, and then what fails on those together in which nothing does."""
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
        """Return the variants in this process, under a name that the agent has not played yet."""
        self._count += 1
        name = f"{SCENARIO_NAME}-{self._count}"
        self._catalogue.clear()
        self._catalogue[name] = scenario
        return [
            (name, variant)
            for variant in self._suspect.variants(name)
            if variant.resume == "same" and variant.protocol == "native" and not variant.saved_by
        ]


def build_scenario(draft: ScenarioDraft) -> Scenario:
    """Return the scenario that a draft is.

    Raises:
        ScenarioError: It is none.
    """
    text: Any = format_yaml(build_document(draft))
    return parse_scenario(text, name=SCENARIO_NAME, path=f"{SCENARIO_NAME}.approval.yaml")


REFERENCE = "reference"
"""The agent on which nothing may be wrong with a scenario; otherwise it is the scenario that is wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailingCheck:
    """A check that fails on an agent, and the first variant in which it does; None: on all variants together."""

    agent: TrialAgent
    check: str
    variant: Variant | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What came of it.

    Attributes:
        origin: Where the conversation comes from, in a sentence.
        witness: None where nothing fails.
        trials: How many drafts were tried to make it small.
        failing, holding: The agents on which the check fails, and those on which it does not.
    """

    draft: ScenarioDraft
    origin: str
    witness: FailingCheck | None = None
    trials: int = 0
    failing: Sequence[str] = ()
    holding: Sequence[str] = ()
    reaches: tuple[tuple[str, int], ...] = ()

    @property
    def text(self) -> str:
        """The scenario file."""
        return format_yaml(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """What the file holds."""
        return build_document(self.draft, about=self._about, reaches=dict(self.reaches))

    @property
    def _about(self) -> str:
        if self.witness is None:
            return self.origin
        holds = f", and holds on {_join_words(self.holding)}" if self.holding else ""
        return f"{self.origin} The check {self.witness.check} fails on {_join_words(self.failing)}{holds}."


class Reproducer:
    """Tries drafts on agents.

    Args:
        agents: Their specs.
        limit: How far one run may go.
        most: How many drafts are tried to make one small.
        tell: Is told of every step.
    """

    def __init__(self, agents: Sequence[str], *, limit: RunLimits, most: int, tell: Callable[[str], None]) -> None:
        self._agents = [TrialAgent(name, limit) for name in agents]
        self._reference = TrialAgent(REFERENCE, limit)
        self._most = most
        self._tell = tell

    def reproduce(self, draft: ScenarioDraft, origin: str, check: str | None = None) -> Reproduction:
        """Return a scenario that fails as the whole conversation does, and is small.

        Args:
            check: The check to look at; None for the first one that fails on some of the agents and not on all.

        Raises:
            UsageError: The whole conversation is no scenario, or the reference agent fails on it.
        """
        wrong = next(self._reference.wrong(draft), None)
        if wrong is not None:
            why = f"{wrong.expected} is expected, and {wrong.actual}"
            raise UsageError(
                f"the conversation cannot be played again as it stands: {wrong.check} fails even on the agent "
                f"{REFERENCE} ({why}); `pytest-approvals lint` says what is wrong with it"
            )
        witness = self._witness(draft, check)
        if witness is None:
            return Reproduction(draft=draft, origin=origin, reaches=self._reached(draft))
        self._tell(f"{witness.check} fails on {witness.agent.name}")
        small, trials = self._shrunk(draft, witness)
        failing = [each.name for each in self._agents if witness.check in each.failing(small)]
        return Reproduction(
            draft=small,
            origin=origin,
            witness=witness,
            trials=trials,
            failing=failing,
            holding=[each.name for each in self._agents if each.name not in failing],
            reaches=self._reached(small),
        )

    def _witness(self, draft: ScenarioDraft, check: str | None) -> FailingCheck | None:
        failing = [(agent, agent.failing(draft)) for agent in self._agents]
        for agent, found in failing:
            self._tell(f"{agent.name}: {self._said(agent, draft, found)}")
        witnesses = [
            FailingCheck(agent=agent, check=slug, variant=variant)
            for agent, found in failing
            for slug, variant in found.items()
            if check in (None, slug)
        ]
        telling = [one for one in witnesses if not all(one.check in found for _, found in failing)]
        return next(iter(telling or witnesses), None)

    def _said(self, agent: TrialAgent, draft: ScenarioDraft, found: Collection[str]) -> str:
        if lacking := agent.lacks(draft):
            return f"cannot play it, for it lacks {_join_words(lacking)}"
        return f"{_join_words([*found]) or 'nothing'} fail{'s' if len(found) < 2 else ''}"

    def _shrunk(self, draft: ScenarioDraft, witness: FailingCheck) -> tuple[ScenarioDraft, int]:
        trials = 0

        def holds(candidate: ScenarioDraft) -> bool:
            nonlocal trials
            trials += 1
            if trials > self._most or not witness.agent.fails(candidate, witness.check, witness.variant):
                return False
            return self._reference.is_valid(candidate)

        small = shrink(draft, holds)
        return small, min(trials, self._most)

    def _reached(self, draft: ScenarioDraft) -> tuple[tuple[str, int], ...]:
        return tuple(self._reference.reached(draft).items())


def _join_words(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
