"""Capabilities that each flavour lacks, with the API that is missing or refuses."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version

from ...kit.feature_detection import explain_missing_postgres, has_source

ISSUES = "https://github.com/langchain-ai/langchain/issues"

POSTGRES = os.environ.get("PYTEST_APPROVALS_POSTGRES", "")
"""Address of a PostgreSQL server; empty if there is none. The option `postgres` takes precedence."""

STORES: Mapping[str, str] = {
    "sqlite": "`AsyncSqliteSaver` on a file",
    "postgres": "`AsyncPostgresSaver` on a server",
}


def _is_missing(distribution: str) -> bool:
    """Return whether the framework is installed without one of its optional distributions.

    Distributions are looked up and not modules: to find `langgraph.checkpoint.sqlite`, Python would import `langgraph`.
    """
    return _is_installed("langchain") and not _is_installed(distribution)


def _is_installed(distribution: str) -> bool:
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True


_SQLITE = ("langgraph-checkpoint-sqlite", "aiosqlite")
_NO_SQLITE = "`langgraph-checkpoint-sqlite` is not installed: pip install 'pytest-approvals[langgraph]'"

_POSTGRES = {
    "langgraph.checkpoint.postgres": "langgraph-checkpoint-postgres",
    "psycopg": "pytest-approvals[postgres]",
}

_STATE = "a checkpointer keeps the thread in its own store; nothing gives a thread as text"

HANDS_ANNOTATIONS_ON = has_source("langchain_mcp_adapters", "tools.py", "tool.annotations")
"""Whether the metadata of a tool say what its server says about it."""

CAN_BE_ASKED = has_source("langchain_mcp_adapters", "callbacks.py", "on_elicitation")
"""Whether a client takes an answer to what its server asks in the middle of a call."""

_ALL: Mapping[str, str] = {
    **({} if HANDS_ANNOTATIONS_ON else {"annotations": "this release's tools have no annotations in their metadata"}),
    **({} if CAN_BE_ASKED else {"elicitation": "this release's `Callbacks` has no `on_elicitation`"}),
    "always": "a decision is about one call; nothing approves further ones",
    "never": "a decision is about one call; nothing rejects further ones",
    "stage": "a decision goes in with the run that it resumes: `Command(resume=...)`",
    "cancel": "nothing gives up an interrupt",
    "trim": "trimming is a middleware around the model (`before_model`), which does not run while a request is pending",
    "tampered_request": "a decision holds the id of an interrupt at most; nothing else of a request is handed over",
    "contradiction": "a value to resume with holds one answer for each request",
    "changing_ids": "chunks with one index and another id are another call: `merge_lists` of `langchain_core`",
    "missing_ids": "`ToolMessage` takes no None as the id of its call; chat model classes fill in missing ids",
    "hosted_mcp": "`HumanInTheLoopMiddleware` sees calls of functions; a hosted server's request ends the run as text",
    "serialize.json": _STATE,
    "history.append": _STATE,
    **({"mcp": "`langchain-mcp-adapters` is not installed"} if _is_missing("langchain-mcp-adapters") else {}),
    **({"native.sqlite": _NO_SQLITE} if any(map(_is_missing, _SQLITE)) else {}),
    **explain_missing_postgres("langgraph.graph", POSTGRES, _POSTGRES),
}

_UNADDRESSED: Mapping[str, str] = {
    "malformed_address": "the documented answer names no request, so that there is no place for an address",
    "unknown_request": "the documented answer names no request, so that it cannot name an unknown one",
}

_SLOW: Mapping[str, str] = {"slow_conditions": "`when` is a plain function; an awaitable that it gives counts as true"}

MISSING: Mapping[str, str] = {
    **_ALL,
    **_UNADDRESSED,
    **_SLOW,
    "partial_answers": "a list of decisions that is shorter than that of the calls is refused with `ValueError`",
}
"""For flavours in which one request asks about all calls of a reply."""

PER_CALL_MISSING: Mapping[str, str] = {
    **_ALL,
    **_SLOW,
    "edit_tool": "`response_schema` pins the name of the tool in an edit, and another one is refused",
}
"""For flavours that ask about each call."""

INTERRUPT_MISSING: Mapping[str, str] = {
    **_ALL,
    "unknown_request": _UNADDRESSED["unknown_request"],
    "edit_tool": "`interrupt()` gives the answer to the body of one tool, which cannot become another one",
}
"""For flavours whose tools ask themselves."""

_BARE = "a custom graph has no middleware; its other behaviour is up to its author"

OWN_MISSING: Mapping[str, str] = {
    **INTERRUPT_MISSING,
    "broken_arguments": "`tools_condition` skips calls whose arguments are not JSON; the rest is up to its author",
    "partial_answers": "of the questions in one `ToolNode` only the first one shows until it is answered",
    "hand_offs": _BARE,
    "limit_model_replies": _BARE,
    "limit_tool_calls": _BARE,
    "mcp": "`ToolNode` does not stop the calls beside one that asks; a server gets some of them after the turn",
    "structured_answer": _BARE,
}
"""For a custom graph that runs all calls of a reply in one node."""

_CLIENTS = {"chat": "langchain-openai", "responses": "langchain-openai", "messages": "langchain-anthropic"}

_UNREAD: Mapping[str, Mapping[str, str]] = {
    "chat": {"reasoning": "`ChatOpenAI` reads no `reasoning_content`, as its documentation says"},
}

PROTOCOLS: Mapping[str, Mapping[str, str]] = {
    protocol: _UNREAD.get(protocol, {}) for protocol, client in _CLIENTS.items() if not _is_missing(client)
}
"""Protocols of the installed chat model classes, which are separate distributions."""

_RACE = {
    "nested_parallel": "in one `ToolNode` an answer goes to the tool that asks first; over a network that is a race"
}

OWN_PROTOCOLS: Mapping[str, Mapping[str, str]] = {name: {**missing, **_RACE} for name, missing in PROTOCOLS.items()}
"""The same if one node runs all calls of a reply."""

RECOVERY = (
    "a new process runs the thread again, without input "
    '(https://docs.langchain.com/oss/python/langgraph/durable-execution: "executing the workflow with the same thread '
    'identifier by providing it with a None as the input value")'
)
"""How to go on after the process died."""
