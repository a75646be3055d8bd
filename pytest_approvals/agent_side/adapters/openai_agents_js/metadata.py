"""Metadata: what cannot be expressed, with the API of the SDK that is missing or refuses."""

from __future__ import annotations

ISSUES = "https://github.com/openai/openai-agents-js/issues"

MISSING = {
    "edit": "RunState.approve takes no arguments, and an item whose arguments were changed is not what was asked",
    "edit_tool": "RunState.approve takes no other tool",
    "cancel": "RunState has approve and reject; giving up a paused run is dropping its state",
    "malformed_verdict": "a decision is a method, RunState.approve or RunState.reject; no value stands for it",
    "contradiction": "RunState keeps one decision a call: until it is handed in, a later one replaces the earlier one",
    "large_integers": "JavaScript reads the numbers of JSON as doubles: `JSON.parse` rounds an integer beyond 2**53",
    "missing_ids": "a function_call item requires a callId",
    "asks_again": "needsApproval is asked before the body; nothing that a body throws or returns is an interruption",
    "limit_tool_calls": "run has maxTurns; nothing counts the calls of tools",
    "serialize.copy": "a RunState has private fields, which structuredClone refuses; its copy is its text",
    "history.append": "RunState.toString gives the whole run each time",
    "tools_change": "RunState.fromString refuses a state that waits for a tool that the agent does not have",
    "trim": "nothing trims: the input list is the caller's",
}

PROTOCOLS = {
    "chat": {"hosted_mcp": "OpenAIChatCompletionsModel refuses hosted tools before any request"},
}
"""The protocol in addition to its native one, and what is missing over it."""
