"""What each flavour can express, and for the rest the API of the framework that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

from ..facts import MISSING as PLAIN

FRAMEWORK = "agent-framework-foundry-hosting"

STORES: Mapping[str, str] = {"files": "the server's own files below `AGENTSERVER_STATE_ROOT`"}

_OWN: Mapping[str, str] = {
    "edit": "an `mcp_approval_response` says yes or no, and why",
    "edit_tool": "an `mcp_approval_response` says yes or no, and why",
    "always": "an `mcp_approval_response` says yes or no, and why",
    "never": "an `mcp_approval_response` says yes or no, and why",
    "tampered_request": "an `mcp_approval_response` holds the id of a request and nothing else of it",
    "stage": "a response goes in with the input that it is part of",
    "cancel": "`POST /responses/{id}/cancel` ends a response that is still running in the background, and no request",
    "trim": "the server reads the whole transcript of a conversation each time",
    "serialize.copy": "the server keeps its state in its own store",
    "serialize.json": "the server keeps its state in its own store; nothing gives it as text",
    "history.append": "the server keeps its state in its own store",
}

_HAS = ("reject_reason",)

MISSING: Mapping[str, str] = {**{name: why for name, why in PLAIN.items() if name not in _HAS}, **_OWN}
"""Where a client goes on with `previous_response_id`."""

CONVERSATION_MISSING: Mapping[str, str] = {
    **MISSING,
    "rewind": "a conversation has one end, and nothing takes it back to an earlier place",
}
"""Where a client goes on with `conversation`."""

WORKFLOW_MISSING: Mapping[str, str] = {
    **MISSING,
    "structured_answer": "a workflow gives messages, and takes no options for a run",
}
"""Where the agent is made of a workflow."""
