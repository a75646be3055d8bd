"""Metadata of the flavours: what each cannot express, with the API of the SDK that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

ISSUES = "https://github.com/vercel/ai/issues"

MISSING = {
    "edit": "a tool-approval-response has `approved` and `reason`, and no arguments",
    "message_with_answers": "approval responses count in the last message only; a message behind them hides them",
    "edit_tool": "a tool-approval-response has `approved` and `reason`, and no tool",
    "always": "a tool-approval-response answers one request; nothing approves further calls",
    "never": "a tool-approval-response answers one request; nothing rejects further calls",
    "cancel": "a request is given up by writing something else; nothing takes it back",
    "tampered_request": "a tool-approval-response carries the approvalId, and nothing else of the request",
    "large_integers": "JavaScript reads the numbers of JSON as doubles: `JSON.parse` rounds an integer beyond 2**53",
    "missing_ids": "the Responses client refuses a function_call without a call_id",
    "asks_again": "a gate is asked before `execute`; nothing that `execute` does asks for another approval",
    "nested": "a tool that runs another agent returns when that agent pauses; its request does not surface",
    "nested_parallel": "a tool that runs another agent returns when that agent pauses; its request does not surface",
    "nested_gate": "a tool that runs another agent returns when that agent pauses; its request does not surface",
    "hand_offs": "an agent does not hand a conversation over to another one",
    "limit_tool_calls": "`stopWhen` counts the model's replies; nothing counts the calls of tools",
}

STREAM_MISSING = MISSING | {
    "message_while_pending": "a user message behind an open request is refused with AI_MissingToolResultsError",
}

GENERATE_MISSING = STREAM_MISSING | {
    "streaming": "`generateText` gives its result when it is over; `streamText` is the flavour `stream`",
    "broken_stream": "`generateText` does not stream",
}

UI_MISSING = MISSING | {
    "malformed_verdict": "the server refuses a chat in which an answer is no boolean (`validateUIMessages`)",
    "history.append": "an answer is written into the message that asks; a turn does not only add to the messages",
    "trim": "`pruneMessages` takes model messages, which the server makes anew of the chat's messages for each call",
}

PROTOCOLS: dict[str, Mapping[str, str]] = {"chat": {}, "messages": {}}
"""The protocols in addition to its native one, and what is missing over each."""
