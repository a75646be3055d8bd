"""A call that waited for a decision, and of which the model is told that it was interrupted."""

from __future__ import annotations

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from pytest_approvals.testing import judge_conversation

INTERRUPTED = "The tool call was interrupted before a result was produced."


def lint(outcome: str, *gated: str) -> list[str]:
    """Return what is found in a history in which the call has a result of that outcome."""
    result = ToolReturnPart("refund", INTERRUPTED, "c1", outcome=outcome)  # type: ignore[arg-type]
    messages = [
        ModelRequest([UserPromptPart("Refund order 7.")]),
        ModelResponse([ToolCallPart("refund", {"order": 7}, "c1")]),
        ModelRequest([result]),
        ModelResponse([TextPart("Done.")]),
    ]
    stored = ModelMessagesTypeAdapter.dump_json(messages)
    return [f"{each.rule}: {each.text}" for each in judge_conversation(stored, gated=gated)]


def test_a_gated_call_was_given_up_without_a_decision() -> None:
    """The request was abandoned, which says nothing of a run without approval."""
    told = "nobody decided about refund(order=7), and the model is told that it was interrupted"

    assert [f"nothing-left-pending: {told} (message 1, content 0)"] == lint("interrupted", "refund")


def test_an_ungated_call_may_be_interrupted() -> None:
    """Nobody had to decide about it."""
    assert [] == lint("interrupted")
    assert [] == lint("interrupted", "wipe_*")


def test_a_gated_call_with_a_result_of_its_own() -> None:
    """What a tool returns in the same words is a result."""
    assert ["approval-before-execution"] == [each.partition(":")[0] for each in lint("success", "refund")]
