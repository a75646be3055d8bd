"""What each flavour can express, and for the rest the API of the framework that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

from ...capabilities import CAPABILITIES

ISSUES = "https://github.com/microsoft/autogen/issues"

_ANSWERED = "an approval function returns its answer; no request is named, and nothing takes an answer otherwise"

_ONCE = "`AssistantAgent` keeps one conversation; its documentation says not to share it between tasks"

_INSIDE: Mapping[str, str] = {
    "message_with_answers": "a run that waits in an approval function takes no message",
    "stage": "an approval function returns its answer to the run that waits; there is no state to put it in",
    "edit_tool": "the result of an approval function has arguments at most, and nothing for another tool",
    "always": "an approval function answers for one call; nothing approves further ones",
    "never": "an approval function answers for one call; nothing rejects further ones",
    "malformed_verdict": "an approval function is the caller's own; what it returns is a model that refuses others",
    "malformed_address": _ANSWERED,
    "unknown_request": _ANSWERED,
    "tampered_request": _ANSWERED,
    "contradiction": _ANSWERED,
    "repeated_decision": _ANSWERED,
    "late_decision": _ANSWERED,
    "missing_ids": "`FunctionCall.id` is a text, and an `AssistantMessage` refuses anything else",
    "hosted_mcp": "no client of the framework has types for approvals of hosted MCP calls",
    "limit_tool_calls": "`max_tool_iterations` counts replies of the model, and nothing counts calls",
    "sessions": _ONCE,
    "history.append": "`save_state` gives the whole conversation each time",
}

MISSING: Mapping[str, str] = {
    **_INSIDE,
    "nested_parallel": "the documentation of `AgentTool` forbids parallel calls beside it: agents cannot run "
    "concurrently",
    "mcp": "TODO",
    "hand_offs": "TODO",
}
"""Where approval functions stand around a workbench or around tools."""


def claimed(missing: Mapping[str, str]) -> frozenset[str]:
    """Gives all other capabilities."""
    return frozenset(CAPABILITIES) - frozenset(missing)
