"""A result that is lost where the next message of the model is the next reply, and a rejection that nobody made."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_approvals.testing import judge_conversation

Json = dict[str, Any]

AUTOGEN: list[Json] = [
    {"type": "UserMessage", "content": "Pay 5.", "source": "user"},
    {
        "type": "AssistantMessage",
        "content": [{"id": "c1", "name": "pay", "arguments": '{"amount": 5}'}],
        "source": "clerk",
    },
    {
        "type": "FunctionExecutionResultMessage",
        "content": [{"content": "paid 5", "name": "pay", "call_id": "c1", "is_error": False}],
    },
    {"type": "AssistantMessage", "content": "Done.", "source": "clerk"},
]
AI_SDK: list[Json] = [
    {"role": "user", "content": "Pay 5."},
    {
        "role": "assistant",
        "content": [{"type": "tool-call", "toolCallId": "c1", "toolName": "pay", "input": {"amount": 5}}],
    },
    {
        "role": "tool",
        "content": [
            {
                "type": "tool-result",
                "toolCallId": "c1",
                "toolName": "pay",
                "output": {"type": "text", "value": "paid 5"},
            }
        ],
    },
    {"role": "assistant", "content": [{"type": "text", "text": "Done."}]},
]
AGENT_FRAMEWORK: list[Json] = [
    {"type": "message", "role": "user", "contents": [{"type": "text", "text": "Pay 5."}]},
    {
        "type": "message",
        "role": "assistant",
        "contents": [{"type": "function_call", "call_id": "c1", "name": "pay", "arguments": '{"amount": 5}'}],
    },
    {
        "type": "message",
        "role": "tool",
        "contents": [{"type": "function_result", "call_id": "c1", "result": "paid 5"}],
    },
    {"type": "message", "role": "assistant", "contents": [{"type": "text", "text": "Done."}]},
]


@pytest.mark.parametrize("messages", [AUTOGEN, AI_SDK, AGENT_FRAMEWORK], ids=["autogen", "ai_sdk", "agent_framework"])
def test_a_lost_result_before_the_next_reply(messages: list[Json]) -> None:
    """The model has answered, so its call does not wait any more."""
    whole, lost = judge_conversation(messages), judge_conversation([*messages[:2], messages[3]])

    assert [] == whole
    assert ["result-delivered-once"] == [finding.rule for finding in lost]


def test_the_team_of_an_agent_is_read() -> None:
    """`SocietyOfMindAgent` saves its team, whose agents have conversations."""
    inner = {"agent_states": {"clerk": {"agent_state": {"llm_context": {"messages": [*AUTOGEN[:2], AUTOGEN[3]]}}}}}
    found = judge_conversation({"type": "SocietyOfMindAgentState", "inner_team_state": inner})

    assert ["result-delivered-once"] == [finding.rule for finding in found]


def test_nobody_has_rejected_what_is_said_to_be_rejected() -> None:
    """The request was open, and its decision is lost."""
    request = {"type": "tool-approval-request", "approvalId": "a1", "toolCallId": "c1"}
    answer = {"role": "tool", "content": [{"type": "tool-approval-response", "approvalId": "a1", "approved": False}]}
    denial = {"type": "tool-result", "toolCallId": "c1", "toolName": "pay", "output": {"type": "execution-denied"}}
    asked = {**AI_SDK[1], "content": [*AI_SDK[1]["content"], request]}
    told = [{"role": "tool", "content": [denial]}, AI_SDK[3]]
    whole, lost = judge_conversation([AI_SDK[0], asked, answer, *told]), judge_conversation([AI_SDK[0], asked, *told])

    assert [] == whole
    assert ["nothing-left-pending"] == [finding.rule for finding in lost]
    assert "nobody decided about pay(amount=5), and the model is told that it was rejected" in lost[0].text
