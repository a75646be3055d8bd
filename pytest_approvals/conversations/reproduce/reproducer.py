"""Reproduction of a failure on agents by a minimized draft.

A draft is tried on agents, one failing check is chosen, and the draft is minimized while that check fails.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.campaigns.story_shrinking import describe_story
from pytest_approvals.checks import CHECKS, Verdict, judge, judge_group
from pytest_approvals.conversations.reproduce.draft import DraftReply, DraftTurn, ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import DEFAULT_REPLY
from pytest_approvals.conversations.reproduce.neighbours import DEFAULT_SECONDS, NeighbourSearch
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.conversations.reproduce.shrink import shrink
from pytest_approvals.conversations.reproduce.symptoms import Symptom, list_checks
from pytest_approvals.errors import AgentUnavailable, ScenarioError, UsageError
from pytest_approvals.journal.coverage import count_reached
from pytest_approvals.journal.history import History
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.catalogue import SCENARIO_SUFFIX
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.requirements import required_by_content
from pytest_approvals.scenario.to_file import build_document as build_scenario_document
from pytest_approvals.scenario.to_file import format_yaml
from pytest_approvals.scenario.variants import allowed_variants

SCENARIO_NAME = "reproduced/conversation"
_LIMIT = RunLimits(seconds=10)
_MAX_SPARE_REPLIES = 3
_MESSAGE_WITH_ANSWERS = "message_with_answers"
_COUNTED = ("paused", "approved", "rejected", "edited", "finished")
_UNEXERCISED = "scenario-exercised"
"""A story near the conversation may take another way than its steps expect, which is no failure of an agent."""

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

    @property
    def capabilities(self) -> frozenset[str]:
        """What the agent claims."""
        return self._agent_runs.source.facts.capabilities

    def plainest_variants(self, scenario: Scenario) -> list[Variant]:
        """Return the base variant, and the plainest ones with a state that is serialized and that is rebuilt."""
        allowed = allowed_variants(scenario, self._agent_runs.source.facts, {"resume": ("same",)})
        base = allowed[:1]
        serialized = [each for each in allowed if each.serialize != allowed[0].serialize][:1]
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
            if verdict.status == "fail" and verdict.implied_by is None and verdict.check != _UNEXERCISED
        ]

    def is_sound(self, scenario: Scenario, variant: Variant) -> bool:
        """Return whether nothing fails in the nearest variant that the agent can play."""
        allowed = allowed_variants(scenario, self._agent_runs.source.facts, {"resume": ("same",)})
        nearest = variant if variant in allowed else next(iter(allowed), None)
        return nearest is not None and not any(
            verdict.status in _UNSOUND and verdict.check != _UNEXERCISED for verdict in self._judge(scenario, nearest)
        )

    def _judge(self, scenario: Scenario, variant: Variant) -> list[Verdict]:
        self._catalogue.clear()
        self._catalogue[SCENARIO_NAME] = scenario
        return judge(self._agent_runs.history(SCENARIO_NAME, variant))

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

    The variant is None for a check on all variants together. It is distinguishing if it does not fail on all agents.
    """

    agent: TrialAgent
    check: str
    variant: Variant | None
    is_distinguishing: bool = True


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
        neighbour: The story that fails in place of the draft; None if the conversation itself fails.
        missing: The symptoms of the conversation that the scenario does not show.
    """

    draft: ScenarioDraft
    origin: str
    failing_check: FailingCheck | None = None
    trials: int = 0
    failing: Sequence[str] = ()
    holding: Sequence[str] = ()
    reaches: tuple[tuple[str, int], ...] = ()
    neighbour: Scenario | None = None
    missing: Sequence[Symptom] = ()

    def shows(self, checks: Sequence[str]) -> bool:
        """Return whether one of the checks fails, or any if none is named."""
        return self.failing_check is not None and (not checks or self.failing_check.check in checks)

    @property
    def text(self) -> str:
        """The text of the scenario file."""
        return format_yaml(self.document)

    @property
    def document(self) -> dict[str, Any]:
        """The document of the scenario file."""
        if self.neighbour is None:
            return build_document(self.draft, about=self._about, reaches=dict(self.reaches))
        title = describe_story(self.neighbour)
        return build_scenario_document(replace(self.neighbour, title=title, about=self._about))

    @property
    def _about(self) -> str:
        if self.failing_check is None:
            return self.origin
        holds = f", and holds on {_join_words(self.holding)}" if self.holding else ""
        near = " It is a neighbour of the conversation, which does not fail itself." if self.neighbour else ""
        failed = f"The check {self.failing_check.check} fails on {_join_words(self.failing)}{holds}."
        lacks = f" Not reproduced: {'; '.join(map(str, self.missing))}." if self.missing else ""
        return f"{self.origin} {failed}{near}{lacks}"


class Reproducer:
    """Minimizer of drafts that fail on agents.

    Args:
        agents: The specs of the agents, or their releases.
        limit: The limits of one run.
        most_trials: The maximum number of drafts that are tried.
        report_progress: Called with a line about every step.
        most_neighbours: The maximum number of neighbours that are tried if the conversation does not fail.
        neighbour_seconds: How long they are tried.
    """

    def __init__(
        self,
        agents: Sequence[str | AgentRelease],
        *,
        limit: RunLimits,
        most_trials: int,
        report_progress: Callable[[str], None],
        most_neighbours: int = 0,
        neighbour_seconds: float = DEFAULT_SECONDS,
    ) -> None:
        self._agents = [TrialAgent(name, limit) for name in agents]
        self._reference = TrialAgent(REFERENCE, limit)
        self._most_trials = most_trials
        self._report_progress = report_progress
        self._most_neighbours = most_neighbours
        self._neighbour_seconds = neighbour_seconds

    def reproduce(
        self, draft: ScenarioDraft, origin: str, checks: Sequence[str] = (), symptoms: Sequence[Symptom] = ()
    ) -> Reproduction:
        """Return a minimized scenario that fails as the whole conversation does.

        Args:
            draft: The whole conversation.
            origin: Its source, in a sentence.
            checks: The checks of which one has to fail; by default those that show a symptom, or else the first one
                that fails on some of the agents and not on all.
            symptoms: What the conversation shows to have gone wrong.

        Raises:
            UsageError: A check fails even on the reference agent.
            ScenarioError: The whole conversation is not a valid scenario.
        """
        if all(_MESSAGE_WITH_ANSWERS in agent.missing_capabilities(draft) for agent in self._agents):
            draft = split_answers(draft)
        draft = self._complete_script(draft)
        candidates = self._list_candidates(draft)
        wanted = list(checks) or list_checks(symptoms)
        shown = [each for each in candidates if not wanted or each.check in wanted]
        shown.sort(key=lambda each: wanted.index(each.check) if wanted else 0)
        best = None if checks else next(iter(candidates), None)
        # What fails on all agents may come of the replay, so a neighbour that tells them apart is better.
        is_shared = len(self._agents) > 1 and not any(each.is_distinguishing for each in shown)
        if (not shown or is_shared) and self._most_neighbours:
            found = self._search_neighbours(draft, origin, wanted, symptoms)
            if found is not None and (best is None or found.shows(wanted)):
                return found
        failing_check = next(iter(shown), best)
        if failing_check is None:
            return Reproduction(draft=draft, origin=origin, reaches=self._count_reached(draft), missing=tuple(symptoms))
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
            missing=_list_missing(symptoms, failing_check.check),
        )

    def _complete_script(self, draft: ScenarioDraft) -> ScenarioDraft:
        """Return the draft with enough replies for the reference agent, which may ask the model more often.

        Raises:
            UsageError: A check fails on the reference agent.
        """
        whole = draft
        for _ in range(_MAX_SPARE_REPLIES + 1):
            problem = next(self._reference.find_problems(whole), None)
            if problem is None:
                return whole
            if "exhausted" not in str(problem.actual):
                break
            last = whole.turns[-1]
            spare = replace(last, replies=(*last.replies, DraftReply(say=DEFAULT_REPLY)))
            whole = replace(whole, turns=(*whole.turns[:-1], spare))
        assert problem is not None
        why = f"{problem.expected} is expected, and {problem.actual}"
        raise UsageError(
            f"cannot replay the conversation: {problem.check} fails even on the agent "
            f"{REFERENCE} ({why}); `pytest-approvals lint` says what is wrong with it"
        )

    def _search_neighbours(
        self, draft: ScenarioDraft, origin: str, wanted: Sequence[str], symptoms: Sequence[Symptom]
    ) -> Reproduction | None:
        """Return a failing neighbour of the first agent that can play the conversation."""
        scenario = build_scenario(draft)
        able = [agent for agent in self._agents if not agent.missing_capabilities(draft)]
        for agent in able[:1]:
            search = NeighbourSearch(
                agent,
                [other for other in able if other is not agent],
                self._reference,
                most=self._most_neighbours,
                seconds=self._neighbour_seconds,
                most_trials=self._most_trials,
                report_progress=self._report_progress,
            )
            found = search.find(scenario, wanted)
            if found is not None:
                return Reproduction(
                    draft=draft,
                    origin=origin,
                    failing_check=FailingCheck(agent=agent, check=found.check, variant=found.variant),
                    trials=found.changed + found.trials,
                    failing=[agent.name],
                    holding=[other.name for other in able if other is not agent],
                    neighbour=found.story,
                    missing=_list_missing(symptoms, found.check),
                )
        return None

    def _list_candidates(self, draft: ScenarioDraft) -> list[FailingCheck]:
        """Return the failures of the conversation that count.

        A check that fails on all agents may be wrong itself, so only those count that distinguish them, if any does.
        """
        failing = [(agent, agent.find_failing_checks(draft)) for agent in self._agents]
        for agent, variants in failing:
            self._report_progress(f"{agent.name}: {self._describe(agent, draft, variants)}")
        candidates = [
            FailingCheck(
                agent=agent,
                check=slug,
                variant=variant,
                is_distinguishing=not all(slug in variants for _, variants in failing),
            )
            for agent, variants in failing
            for slug, variant in variants.items()
        ]
        return [candidate for candidate in candidates if candidate.is_distinguishing] or candidates

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


def split_answers(draft: ScenarioDraft) -> ScenarioDraft:
    """Return the draft with decisions and messages in turns of their own, for agents that take one at a time."""
    turns: list[DraftTurn] = []
    for turn in draft.turns:
        if turn.send is None or not turn.decisions:
            turns.append(turn)
            continue
        done = DraftReply(say=DEFAULT_REPLY)
        turns.append(replace(turn, send=None, replies=turn.replies or (done,)))
        turns.append(DraftTurn(send=turn.send, replies=(done,)))
    return replace(draft, turns=tuple(turns))


def _list_missing(symptoms: Sequence[Symptom], check: str) -> tuple[Symptom, ...]:
    """Return the symptoms, unless the check shows one of them: a bug may have several."""
    return () if any(check in symptom.checks for symptom in symptoms) else tuple(symptoms)


def _join_words(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
