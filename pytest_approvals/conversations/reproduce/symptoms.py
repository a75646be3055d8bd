"""Symptoms: what a stored conversation shows to have gone wrong, and the checks that show the same in a run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_approvals.conversations.histories.conversation import StoredConversation
from pytest_approvals.conversations.lint import lint_conversation

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
        if finding.rule in _SHOWN_BY and finding.rule not in found:
            what, checks = _SHOWN_BY[finding.rule]
            found[finding.rule] = Symptom(
                rule=finding.rule, what=what, where=finding.where, checks=tuple(dict.fromkeys(checks))
            )
    return tuple(found.values())


def list_checks(symptoms: Iterable[Symptom]) -> list[str]:
    """Return the checks that show one of the symptoms, those of the first one first."""
    return list(dict.fromkeys(check for symptom in symptoms for check in symptom.checks))
