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
}
"""Where approval functions stand around a workbench or around tools."""


_LOCAL = "`tool_agent_caller_loop` keeps what it is at in variables of its own, and gives it away at its end"

INTERVENTION_MISSING: Mapping[str, str] = {
    **{name: why for name, why in _INSIDE.items() if name not in ("edit_tool", "malformed_verdict")},
    "streaming": "`tool_agent_caller_loop` gives nothing before it ends",
    "trim": "the conversation is the caller's own list",
    "limit_model_replies": "`tool_agent_caller_loop` goes on for as long as the model calls tools",
    "structured_answer": "`tool_agent_caller_loop` asks for no form of answer",
    "partial_answers": "the runtime handles messages one by one, so that there is one request at a time",
    "nested": "agents behind tools are AgentChat's (`AgentTool`)",
    "nested_gate": "agents behind tools are AgentChat's (`AgentTool`)",
    "nested_parallel": "agents behind tools are AgentChat's (`AgentTool`)",
    "hand_offs": "hand-offs are AgentChat's (`Swarm`)",
    "mcp": "a `ToolAgent` takes tools and no workbench",
    "asks_again": "a tool is not a message, so that no handler sees what happens in it",
    "serialize.copy": _LOCAL,
    "serialize.json": _LOCAL,
    "fresh": _LOCAL,
    "rewind": _LOCAL,
    "tools_change": _LOCAL,
    "simultaneous": _LOCAL,
    "answer.restored": _LOCAL,
}
"""Where an intervention handler of autogen-core sees each call."""


def claimed(missing: Mapping[str, str]) -> frozenset[str]:
    """Gives all other capabilities."""
    return frozenset(CAPABILITIES) - frozenset(missing)
