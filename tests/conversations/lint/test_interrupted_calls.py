"""A call that waited for a decision, and of which the model is told that it was interrupted."""

from __future__ import annotations

from typing import Any

import pytest
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


CALL = {"id": "c1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 7}'}}
MISSING = "Missing tool result (tool execution may have been interrupted before a response was recorded)."
CHAT = [
    {"role": "user", "content": "Refund order 7."},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {
        "role": "tool",
        "tool_call_id": "c1",
        "content": f"Error: {MISSING}",
    },
    {"role": "assistant", "content": "Done."},
]
RESPONSES = [
    {"type": "message", "role": "user", "content": "Refund order 7."},
    {"type": "function_call", "call_id": "c1", "name": "refund", "arguments": '{"order": 7}'},
    {"type": "function_call_output", "call_id": "c1", "output": INTERRUPTED},
    {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
]
STRANDS = [
    {"role": "user", "content": [{"text": "Refund order 7."}]},
    {"role": "assistant", "content": [{"toolUse": {"toolUseId": "c1", "name": "refund", "input": {"order": 7}}}]},
    {
        "role": "user",
        "content": [
            {"toolResult": {"toolUseId": "c1", "status": "error", "content": [{"text": "Tool was interrupted."}]}}
        ],
    },
    {"role": "assistant", "content": [{"text": "Done."}]},
]
MESSAGES = [
    {"role": "user", "content": "Refund order 7."},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "refund", "input": {"order": 7}}]},
    {
        "role": "user",
        "content": [{"type": "tool_result", "tool_use_id": "c1", "is_error": True, "content": "Tool was interrupted."}],
    },
    {"role": "assistant", "content": "Done."},
]
CANCELLED = "Tool call refund with id c1 was cancelled - another message came in before it could be completed."
LANGCHAIN = [
    {"type": "human", "data": {"type": "human", "content": "Refund order 7."}},
    {
        "type": "ai",
        "data": {
            "type": "ai",
            "content": "",
            "tool_calls": [{"type": "tool_call", "id": "c1", "name": "refund", "args": {"order": 7}}],
        },
    },
    {"type": "tool", "data": {"type": "tool", "content": CANCELLED, "tool_call_id": "c1", "status": "success"}},
    {"type": "ai", "data": {"type": "ai", "content": "Done."}},
]


@pytest.mark.parametrize(
    "messages",
    [CHAT, RESPONSES, STRANDS, MESSAGES, LANGCHAIN],
    ids=["chat", "responses", "strands", "messages", "langchain"],
)
def test_frameworks_say_it_in_their_own_words(messages: list[dict[str, Any]]) -> None:
    """A gated call that was given up did not run without approval."""
    told = "nobody decided about refund(order=7), and the model is told that it was interrupted"
    found = judge_conversation(messages, gated=["refund"])

    assert [("nothing-left-pending", told)] == [(each.rule, each.text.partition(" (")[0]) for each in found]
    assert [] == judge_conversation(messages)


def test_an_aborted_invocation_of_google_adk() -> None:
    """Its runner answers the calls of an invocation that was given up."""
    call = {"functionCall": {"id": "c1", "name": "refund", "args": {"order": 7}}}
    answer = {"id": "c1", "name": "refund", "response": {"error": "Invocation was aborted by client."}}
    events = [
        {"author": "user", "invocationId": "i1", "content": {"role": "user", "parts": [{"text": "Refund order 7."}]}},
        {"author": "clerk", "invocationId": "i1", "content": {"role": "model", "parts": [call]}},
        {"author": "clerk", "invocationId": "i1", "content": {"role": "user", "parts": [{"functionResponse": answer}]}},
    ]
    found = judge_conversation({"id": "s1", "appName": "shop", "userId": "ann", "events": events}, gated=["refund"])

    assert ["nothing-left-pending"] == [each.rule for each in found]
