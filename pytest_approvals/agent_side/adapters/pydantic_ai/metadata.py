"""Metadata of the flavours: what each cannot express, with the API of the framework that is missing or refuses.

For the flavours behind a web client it is the part of the protocol that is missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from ...contract import RENAMED
from ...kit import feature_detection
from ...kit.clients import list_installed_protocols
from ...kit.feature_detection import explain_missing_postgres

POSTGRES = os.environ.get("PYTEST_APPROVALS_POSTGRES", "")
"""Address of a PostgreSQL server; empty if there is none. The option `postgres` takes precedence."""

framework_has = partial(feature_detection.has_source, "pydantic_ai")
"""Return whether the framework has a file and a text in it, as `has_source` does."""


def other_package_has(package: str, path: str) -> bool:
    """Return whether another package is installed and has the file or folder *path*; True without the framework."""
    has_path = feature_detection.find_package_folder(package) is not None and feature_detection.has_source(
        package, path
    )
    return has_path or feature_detection.find_package_folder("pydantic_ai") is None


RELEASE_MISSING: dict[str, str] = {}
"""What the installed release cannot do, with the name that it lacks."""

# Read from the source files, so that flavours can be listed without importing the framework.
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
if not framework_has("mcp.py", "'annotations': "):
    RELEASE_MISSING["annotations"] = "this release's `ToolDefinition.metadata` has no annotations of a server"
if not framework_has("mcp.py", "elicitation_handler"):
    RELEASE_MISSING["elicitation"] = "this release's `MCPToolset` takes no `elicitation_handler`"


MISSING: Mapping[str, str] = {
    "partial_answers": "`Agent.run` refuses a `DeferredToolResults` that does not answer every call with `UserError`",
    "edit_tool": "`ToolApproved` has `override_args` and nothing for another tool",
    "always": "`DeferredToolResults` answers single calls; nothing approves further ones",
    "never": "`DeferredToolResults` answers single calls; nothing rejects further ones",
    "tampered_request": "`DeferredToolResults` takes call ids; nothing else of a request is handed over",
    "contradiction": "`DeferredToolResults.approvals` is a dict by call id: one answer a call",
    "slow_conditions": "`approval_required` takes a plain function; an awaitable that it returns counts as true",
    "hand_offs": "an agent has tools and output functions; none of them makes another agent go on",
    "stores_in_turns": "the framework has no store: the application keeps the messages of a run when it has ended",
    "hosted_mcp": "`MCPServerTool` has no approval setting; the OpenAI model sends `require_approval: never`",
    **RELEASE_MISSING,
}
"""What is missing if gates are declared."""

RAISED_MISSING: Mapping[str, str] = {name: why for name, why in MISSING.items() if name != "slow_conditions"}
"""The same if tools ask from within: their bodies may be asynchronous."""

_HELD = "a run that waits has no result, and so no history to keep"

INLINE_MISSING: Mapping[str, str] = {
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
    **dict.fromkeys(RENAMED, _HELD),
    "trim": _HELD,
    "answer.restored": "a run that waits cannot be restored",
}
"""The same if the run waits in a `HandleDeferredToolCalls` handler."""

PROTOCOLS: Mapping[str, Mapping[str, str]] = list_installed_protocols()
"""The protocols of the model classes whose clients are installed: they are extras of the framework."""


_WHOLE = "the client holds the conversation, and sends all of it"
_METADATA = "an answer carries no metadata, in which the recipe for delegation brings the inner answers back"

_NO_PARTS = "the client here keeps no reasoning of a stream in its messages, and so sends none back"

_WEB_MISSING: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name not in ("partial_answers", "tampered_request")},
    "always": "an answer is about one call; nothing in it approves further ones",
    "never": "an answer is about one call; nothing in it rejects further ones",
    "trim": _WHOLE,
    "reasoning": _NO_PARTS,
    "reasoning_between_calls": _NO_PARTS,
    "redacted_reasoning": _NO_PARTS,
    "hang_up": "what a run did whose stream the client has left is known to nobody: the server keeps nothing",
    "nested": _METADATA,
    "nested_parallel": _METADATA,
    "nested_gate": _METADATA,
}

VERCEL_MISSING: Mapping[str, str] = {
    **_WEB_MISSING,
    "edit": "the approval in a UI message has `approved` and `reason`, and no arguments",
    "edit_tool": "the approval in a UI message has `approved` and `reason`, and no tool",
    "contradiction": "the answer stands in the part of its call, which holds one",
    "cancel": "no state of a part says that its call was given up",
    "history.append": "`dump_messages` puts a result into the part of its call; in new messages alone it finds none",
}
"""The same behind a client of the Vercel AI SDK."""

AGUI_MISSING: Mapping[str, str] = {
    **{name: why for name, why in _WEB_MISSING.items() if name != "contradiction"},
    "edit_tool": "`editedArgs` of a resume payload overrides arguments, and nothing names a tool",
    "stage": "answers are part of a run's input; no message holds one",
    "cancel": "an entry of `resume` that is `cancelled` rejects its call, and the run goes on",
    "history.append": _WHOLE,
}
"""The same behind a client of AG-UI."""

RECOVERY = (
    "a new process starts a run with the messages that the application kept (https://ai.pydantic.dev/deferred-tools: "
    '"a new agent run can then be started with the original run\'s message history plus a DeferredToolResults object")'
)
"""How to go on after the process died."""

_IN_DATABASE = "the messages are the result of a workflow in the database of DBOS, and stay there"

DBOS_MISSING: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name != "stores_in_turns"},
    "stage": "decisions go in with the workflow that they begin",
    "trim": "the messages are the result of the last workflow, whole",
    "rewind": "the id of a workflow names one run: begun again from before, it returns what it has recorded",
    "hang_up": "a workflow whose caller has gone neither runs nor ends, until DBOS is launched anew and resumes it",
    "serialize.copy": _IN_DATABASE,
    "serialize.json": _IN_DATABASE,
    "history.append": _IN_DATABASE,
    **explain_missing_postgres("pydantic_ai", POSTGRES, {"psycopg": "pytest-approvals[postgres]"}),
}
"""The same if each run is a workflow of DBOS."""

DBOS_RECOVERY = (
    "a new process launches DBOS, which resumes the workflow that was cut off "
    '(https://ai.pydantic.dev/durable_execution/dbos: "when it restarts all your workflows will automatically resume '
    'from the last completed step"); then the next one begins with its messages'
)
"""How to go on after the process died, with DBOS."""

DBOS_STORES: Mapping[str, str] = {
    "sqlite": "the system database of DBOS, a file of SQLite",
    "postgres": "the system database of DBOS on a server",
}
"""The stores of the flavour with DBOS."""

DBOS_UNAVAILABLE: tuple[str, str] | None = (
    None
    if other_package_has("dbos", "__init__.py")
    else ("`dbos` is not installed", "pip install 'pytest-approvals[dbos]'")
)
"""Why agents with DBOS cannot run."""
