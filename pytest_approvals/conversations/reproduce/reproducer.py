"""Reproduction of a failure on agents by a minimized draft.

A draft is tried on agents, a failing check is chosen that shows a symptom of the conversation, and the draft is
minimized while that check fails. If none does, the neighbours of the conversation are tried.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pytest_approvals.campaigns.agent_runs import AgentRelease
from pytest_approvals.campaigns.story_shrinking import describe_story
from pytest_approvals.conversations.histories.conversation import StoredConversation
from pytest_approvals.conversations.lint import lint_conversation
from pytest_approvals.conversations.reproduce.draft import DraftDecision, DraftReply, DraftTurn, ScenarioDraft
from pytest_approvals.conversations.reproduce.from_conversation import DEFAULT_REPLY
from pytest_approvals.conversations.reproduce.neighbours import DEFAULT_SECONDS, NeighbourSearch
from pytest_approvals.conversations.reproduce.scenario_document import build_document
from pytest_approvals.conversations.reproduce.shrink import shrink
from pytest_approvals.conversations.reproduce.trials import TrialAgent, build_scenario
from pytest_approvals.errors import UsageError
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.scenario.to_file import build_document as build_scenario_document
from pytest_approvals.scenario.to_file import format_yaml

_MAX_SPARE_REPLIES = 3
_MESSAGE_WITH_ANSWERS = "message_with_answers"
_TAMPERED_REQUEST = "tampered_request"

REFERENCE = "reference"
"""The agent on which nothing may fail; otherwise the scenario itself is wrong."""

# --- symptoms ---

_LOST_REQUEST = ("pending-survives", "every-gated-call-asked", "unanswered-stays-pending", "nothing-left-pending")
_NO_RESULT = ("result-delivered-once", "model-input-well-formed", "approved-runs", "decision-survives", "run-ends")
_DOUBLE_EFFECT = ("runs-at-most-once", "ungated-runs-once", "settled-stays-settled", "result-delivered-once")
_UNAPPROVED = ("approval-before-execution", "every-gated-call-asked", "policy-fails-closed", "only-model-calls-run")
_REJECTED_RUNS = ("rejected-never-runs", "contradiction-not-executed")
_WRONG_EFFECT = ("arguments-as-approved", "only-model-calls-run", "approval-before-execution")
_WRONG_RESULT = ("result-matches-its-call", "model-input-well-formed", "result-delivered-once")

_SHOWN_BY: dict[str, tuple[str, tuple[str, ...]]] = {
    "approval-before-execution": ("a call ran without approval", _UNAPPROVED),
    "approved-runs": ("an approved call did not run", ("approved-runs", "decision-survives", *_NO_RESULT)),
    "rejected-never-runs": ("a rejected call ran", _REJECTED_RUNS),
    "runs-at-most-once": ("a call ran twice", _DOUBLE_EFFECT),
    "arguments-as-approved": ("another call ran than the one that was decided about", _WRONG_EFFECT),
    "request-shows-the-call": ("a request is not about a call", ("request-shows-the-call", *_WRONG_EFFECT)),
    "request-ids-unique": ("two requests share an id", ("request-ids-unique", *_WRONG_EFFECT)),
    "call-ids-unique": ("two calls share an id", ("model-input-well-formed", "approved-runs", *_LOST_REQUEST)),
    "pending-survives": ("a request was lost", _LOST_REQUEST),
    "history-not-rewritten": ("a call was lost", ("history-not-rewritten", *_NO_RESULT)),
    "nothing-left-pending": ("a request was abandoned", (*_LOST_REQUEST, *_NO_RESULT)),
    "invalid-decision-refused": ("a decision answers nothing", ("invalid-decision-refused", *_UNAPPROVED)),
    "contradiction-not-executed": ("decisions contradict each other", _REJECTED_RUNS),
    "settled-stays-settled": ("what was settled was decided again", ("settled-stays-settled", "runs-at-most-once")),
    "result-delivered-once": ("a call has no result, or two", (*_NO_RESULT, *_DOUBLE_EFFECT)),
    "result-matches-its-call": ("a result belongs to no call", _WRONG_RESULT),
    "flags-agree": ("copies of a call disagree", ("usable-after-refusal", "run-ends", *_NO_RESULT)),
}
"""By rule of the linter: the symptom in words, and the checks that show it, the nearest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Symptom:
    """A symptom.

    Attributes:
        rule: The rule of the linter that found it.
        what: What it is, in words.
        where: Its place in the conversation.
        checks: The checks that show the same in a run, the nearest first.
    """

    rule: str
    what: str
    where: str
    checks: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.what} ({self.rule}, {self.where})"


def find_symptoms(conversation: StoredConversation, gated: Sequence[str] = ()) -> tuple[Symptom, ...]:
    """Return the symptoms of a conversation, one for each rule, in the order in which they show."""
    found: dict[str, Symptom] = {}
    for finding in lint_conversation(conversation, gated):
        # Nobody knows who approved the calls of earlier runs.
        is_unknown = finding.message is not None and finding.message < conversation.decided_from
        if finding.rule == "approval-before-execution" and is_unknown:
            continue
        if finding.rule in _SHOWN_BY and finding.rule not in found:
            what, checks = _SHOWN_BY[finding.rule]
            found[finding.rule] = Symptom(
                rule=finding.rule, what=what, where=finding.where, checks=tuple(dict.fromkeys(checks))
            )
    return tuple(found.values())


def list_checks(symptoms: Iterable[Symptom]) -> list[str]:
    """Return the checks that show one of the symptoms, those of the first one first."""
    return list(dict.fromkeys(check for symptom in symptoms for check in symptom.checks))


# --- reproduction ---


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
        # A check that was named counts if it warns, too.
        for agent in (*self._agents, self._reference):
            agent.warned_checks = frozenset(checks)
        for capability, adapt in _ADAPTATIONS.items():
            if all(capability in agent.missing_capabilities(draft) for agent in self._agents):
                draft = adapt(draft)
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


def leave_out_copies(draft: ScenarioDraft) -> ScenarioDraft:
    """Return the draft with decisions that say nothing of their request, for agents that are handed no copy of it."""

    def plain(decision: DraftDecision) -> DraftDecision:
        return decision if decision.call is None else replace(decision, shows=None, shows_tool=None)

    turns = (replace(turn, decisions=tuple(map(plain, turn.decisions))) for turn in draft.turns)
    return replace(draft, turns=tuple(turns))


_ADAPTATIONS = {_MESSAGE_WITH_ANSWERS: split_answers, _TAMPERED_REQUEST: leave_out_copies}
"""How a draft is changed for agents that all lack a capability."""


def _list_missing(symptoms: Sequence[Symptom], check: str) -> tuple[Symptom, ...]:
    """Return the symptoms, unless the check shows one of them: a bug may have several."""
    return () if any(check in symptom.checks for symptom in symptoms) else tuple(symptoms)


def _join_words(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))
