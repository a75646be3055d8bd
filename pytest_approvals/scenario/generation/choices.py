"""Choices that a drawn story is made of, and its features, which are chosen before anything else."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol, TypeVar

from pytest_approvals.scenario.generation.features import available_features, can_stand_together

_T = TypeVar("_T")

MAX_FEATURES = 20
"""Most features that are drawn for one story; what they imply may add others."""

_USUAL_FEATURES = 6

_OFTEN_MISSED = (
    "leave", "never", "always", "partial_answers", "repeated_decision", "late_decision", "reject_reason", "stage",
    "unasked_decision", "raising_conditions", "message_while_pending", "invalid_edit", "hangs_up_in_tool", "held_back",
    "decision_source", "stage_again", "edited_object", "arguments_as_text", "go_on_without_answer",
    "contradiction", "hangs_up_at_model",
)  # fmt: skip
"""Features that are drawn twice as often, because a story often ends before it has them."""

IMPLIED_FEATURES = {
    "edited_object": ("edit", "nested_object"),
    "equal_ids_in_agents": ("nested_parallel",),
    "same_tool_in_agents": ("nested", "always"),
    "call_beside_hand_off": ("hand_offs",),
    "answer_beside_calls": ("invalid_answer",),
    "stage_again": ("stage",),
    "sub_agent_renamed": ("nested",),
    "hand_off_renamed": ("hand_offs",),
    "equal_questions": ("elicitation",),
    "elicitation_in_agent": ("nested",),
    "elicitation_declined": ("elicitation",),
    "elicitation_cancelled": ("elicitation",),
    "elicitation_answer_changes": ("elicitation", "several_turns"),
    "annotations_unsaid": ("annotations",),
    "annotations_in_agent": ("nested",),
    "annotations_changed": ("annotations",),
}
"""Features without which another one cannot be there; an agent that can play the one can play these."""

REASONING_FEATURES = ("reasoning", "reasoning_between_calls", "redacted_reasoning")
"""Features that are added to a story when it is written, and change nothing else of it."""

ELICITATION_FEATURES = (
    "elicitation",
    "elicitation_url",
    "equal_questions",
    "elicitation_in_agent",
    "elicitation_declined",
    "elicitation_cancelled",
    "elicitation_answer_changes",
)
"""Features that are drawn together: each needs a server that asks."""

ANNOTATION_FEATURES = (
    "annotations",
    "annotations_unsaid",
    "annotations_in_agent",
    "annotations_unread",
    "annotations_changed",
)
"""Features that are drawn together: each needs a server that says something about a tool."""

NEEDS_OPEN = frozenset(
    {
        "message_with_answers", "partial_answers", "oracle_step", "stage", "rewrite", "go_on_without_answer",
        "message_while_pending", "hangs_up_in_tool", "malformed_verdict", "contradiction", "simultaneous", "leave",
        "cancel",
    }
)  # fmt: skip
"""Actions that make sense only while a request is open."""

NEEDS_REQUESTS = NEEDS_OPEN | {
    "repeated_decision", "late_decision", "edit", "edit_tool", "invalid_edit", "unknown_edit_tool", "always", "never",
    "reject_reason", "decision_source", "tampered_arguments", "tampered_tool",
}  # fmt: skip
"""Features for which a request is answered, or stays open."""


class Choices(Protocol):
    """Whoever makes the choices of a story."""

    def below(self, bound: int) -> int:
        """Return an integer from 0 to *bound* - 1; 0 is the plainest."""
        ...


def pick(choices: Choices, values: Sequence[_T]) -> _T:
    """Return one of *values*, the plainest first."""
    return values[choices.below(len(values))] if len(values) > 1 else values[0]


def chance(choices: Choices, percent: int) -> bool:
    """Return True in about so many of 100 choices."""
    return choices.below(100) >= 100 - percent


def draw_features(
    choices: Choices, capabilities: frozenset[str] | None, profile: str, certain: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the features of a story, each once, in the order of the table; those of reasoning come later.

    Args:
        choices: Who makes the choices.
        capabilities: What the agent claims; None for everything.
        profile: A name in `PROFILES`.
        certain: Those that it has in any case, if the agent can play them; what cannot stand beside them is left out.
    """
    known = [name for name in available_features(capabilities, profile) if name not in REASONING_FEATURES]
    groups = [[name for name in known if name in group] for group in (ELICITATION_FEATURES, ANNOTATION_FEATURES)]
    grouped = {name for group in groups for name in group}
    drawn = [*(name for name in known if name not in grouped), *(name for name in _OFTEN_MISSED if name in known)]
    # Most stories are small and quick; a third has many features, so that rare ones meet.
    most = MAX_FEATURES if chance(choices, 35) else _USUAL_FEATURES
    wanted = {pick(choices, drawn) for _ in range(choices.below(most + 1))}
    for group in groups:
        if group and chance(choices, 15):
            wanted |= {pick(choices, group) for _ in range(1 + choices.below(3))}
    certain = {*certain} & {*known}
    wanted = {name for name in wanted if all(can_stand_together(name, other) for other in certain)} | certain
    return tuple(name for name in known if name in wanted)
