"""What the release of the framework that can be imported here has.

What each flavour can express, and for the rest the API of the framework that is missing or refuses.

What the flavours behind a web client can express, and for the rest the part of the protocol that is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from pytest_approvals.agent_side.kit import feature_detection
from pytest_approvals.agent_side.kit.clients import list_installed_protocols

framework_has = partial(feature_detection.has_source, "pydantic_ai")
"""Says whether the framework has a file, and in it a text; yes where no framework is here at all."""


def other_package_has(package: str, path: str) -> bool:
    """Says whether another package is here and has the file or folder *path*; yes where no framework is here."""
    here = feature_detection.find_package_folder(package) is not None and feature_detection.has_source(package, path)
    return here or feature_detection.find_package_folder("pydantic_ai") is None


RELEASE_MISSING: dict[str, str] = {}
"""What this release cannot do, and the name that it lacks."""

if not framework_has("_run_context.py", "tool_call_metadata"):
    RELEASE_MISSING |= dict.fromkeys(
        ("nested", "nested_parallel", "nested_gate"), "this release's `ApprovalRequired` takes no metadata"
    )
if not framework_has("_agent_graph.py", "user_prompt=self.user_prompt"):
    RELEASE_MISSING["message_with_answers"] = "this release's `Agent.run` refuses a prompt beside `DeferredToolResults`"
if not framework_has("messages.py", "def repair_messages"):
    RELEASE_MISSING["cancel"] = "this release has no `repair_messages`"
if not framework_has("conversation_store.py"):
    RELEASE_MISSING["trim"] = "this release has no `ConversationStore`"
if not (framework_has("mcp.py", "class MCPToolset") and other_package_has("fastmcp", "client/transports")):
    RELEASE_MISSING["mcp"] = "`MCPToolset`, or the package `fastmcp` that it stands on, is not here"


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

CLAIMED = _ALL - frozenset(RELEASE_MISSING)
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
    **RELEASE_MISSING,
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

PROTOCOLS: Mapping[str, Mapping[str, str]] = list_installed_protocols()
"""The protocols of the model classes whose clients are installed: they are extras of the framework."""


_WHOLE = "the client holds the conversation, and sends all of it"
_METADATA = "an answer carries no metadata, in which the recipe for delegation brings the inner answers back"

_MISSING_WEB: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name not in ("partial_answers", "tampered_request")},
    "always": "an answer is about one call; nothing in it approves further ones",
    "never": "an answer is about one call; nothing in it rejects further ones",
    "trim": _WHOLE,
    "hang_up": "what a run did whose stream the client has left is known to nobody: the server keeps nothing",
    "nested": _METADATA,
    "nested_parallel": _METADATA,
    "nested_gate": _METADATA,
}

MISSING_VERCEL: Mapping[str, str] = {
    **_MISSING_WEB,
    "edit": "the approval in a UI message has `approved` and `reason`, and no arguments",
    "edit_tool": "the approval in a UI message has `approved` and `reason`, and no tool",
    "contradiction": "the answer stands in the part of its call, which holds one",
    "cancel": "no state of a part says that its call was given up",
    "history.append": "`dump_messages` puts a result into the part of its call; in new messages alone it finds none",
}
"""Behind a client of the Vercel AI SDK."""

MISSING_AGUI: Mapping[str, str] = {
    **{name: why for name, why in _MISSING_WEB.items() if name != "contradiction"},
    "edit_tool": "`editedArgs` of a resume payload overrides arguments, and nothing names a tool",
    "stage": "answers are part of a run's input; no message holds one",
    "cancel": "an entry of `resume` that is `cancelled` rejects its call, and the run goes on",
    "history.append": _WHOLE,
}
"""Behind a client of AG-UI."""

_WEB = CLAIMED | {"partial_answers", "tampered_request"}

CLAIMED_VERCEL = _WEB - frozenset(MISSING_VERCEL)

CLAIMED_AGUI = (_WEB | {"contradiction"}) - frozenset(MISSING_AGUI)
