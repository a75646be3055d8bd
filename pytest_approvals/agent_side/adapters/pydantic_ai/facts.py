"""What each flavour can express, and for the rest the API of the framework that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_approvals.agent_side.clients import spoken

from .releases import LACKS

_ALL = frozenset(
    {
        # how a turn can begin
        "streaming",
        "go_on_without_answer",
        "message_while_pending",
        "message_with_answers",
        # what can be decided
        "reject_reason",
        "edit",
        "stage",
        "cancel",
        # how a caller can misbehave
        "malformed_verdict",
        "malformed_address",
        "unknown_request",
        "repeated_decision",
        "late_decision",
        "hang_up",
        "simultaneous",
        # what a model can do
        "parallel",
        "text_with_calls",
        "repeated_ids",
        "missing_ids",
        "unknown_tools",
        "broken_arguments",
        "model_failure",
        "broken_stream",
        # what tools can do
        "tool_errors",
        "non_text_results",
        "concurrent_tools",
        "asks_again",
        "nested",
        "nested_parallel",
        "nested_gate",
        # what an answer is
        "structured_answer",
        # what is gated
        "conditional_approval",
        "raising_conditions",
        "mcp",
        # where the framework stops by itself
        "limit_model_replies",
        "limit_tool_calls",
        # where the state goes
        "serialize.copy",
        "serialize.json",
        "history.append",
        "fresh",
        "rewind",
        "tools_change",
        "trim",
        "sessions",
        # what a decision is made from: its call id is all that a decision needs of a request
        "answer.held",
        "answer.restored",
        "answer.rebuilt",
    }
)

CLAIMED = _ALL - frozenset(LACKS)
"""Where gates are declared."""

MISSING: Mapping[str, str] = {
    "partial_answers": "`Agent.run` refuses a `DeferredToolResults` that does not answer every call with `UserError`",
    "edit_tool": "`ToolApproved` has `override_args` and nothing for another tool",
    "always": "`DeferredToolResults` answers single calls; nothing approves further ones",
    "never": "`DeferredToolResults` answers single calls; nothing rejects further ones",
    "tampered_request": "`DeferredToolResults` takes call ids; nothing else of a request is handed over",
    "contradiction": "`DeferredToolResults.approvals` is a dict by call id: one answer a call",
    "slow_conditions": "`approval_required` takes a plain function; an awaitable that it returns counts as true",
    "hand_offs": "an agent has tools and output functions; none of them makes another agent go on",
    "hosted_mcp": "`MCPServerTool` has no approval setting; the OpenAI model sends `require_approval: never`",
    **LACKS,
}

CLAIMED_RAISED = CLAIMED | {"slow_conditions"}
"""Where tools ask from within: their bodies may be asynchronous."""

MISSING_RAISED: Mapping[str, str] = {name: why for name, why in MISSING.items() if name not in CLAIMED_RAISED}

_HELD = "a run that waits has no result, and so no history to keep"

MISSING_INLINE: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name != "partial_answers"},
    "message_while_pending": "a run that waits in its handler takes no prompt",
    "message_with_answers": "the handler returns `DeferredToolResults`, which holds no prompt",
    "stage": "the handler returns its answers to the run that waits; there is no state to put them in",
    "hang_up": "a run that waits is a task of its own, which lives longer than the turn; nobody who hangs up ends it",
    "simultaneous": "a run that waits lives in memory, once",
    "serialize.copy": _HELD,
    "serialize.json": _HELD,
    "history.append": _HELD,
    "fresh": _HELD,
    "rewind": _HELD,
    "tools_change": _HELD,
    "trim": _HELD,
    "answer.restored": "a run that waits cannot be restored",
}
"""Where the run waits in a `HandleDeferredToolCalls` handler."""

CLAIMED_INLINE = (CLAIMED | {"partial_answers"}) - frozenset(MISSING_INLINE)

PROTOCOLS: Mapping[str, Mapping[str, str]] = spoken()
"""The protocols of the model classes whose clients are installed: they are extras of the framework."""
