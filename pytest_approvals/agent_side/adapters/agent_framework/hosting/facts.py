"""What each flavour can express, and for the rest the API of the framework that is missing or refuses."""

from __future__ import annotations

from collections.abc import Mapping

FRAMEWORK = "agent-framework-foundry-hosting"

STORES: Mapping[str, str] = {"files": "the server's own files below `AGENTSERVER_STATE_ROOT`"}

_SAYS = "an `mcp_approval_response` says yes or no, and why"
_NESTED = "`Agent.as_tool` is documented to fail closed where an inner call needs a person"
_MODE = "`approval_mode` is always or never"
_KEEPS = "the server keeps its state in its own store"

MISSING: Mapping[str, str] = {
    "edit": _SAYS,
    "edit_tool": _SAYS,
    "always": _SAYS,
    "never": _SAYS,
    "tampered_request": "an `mcp_approval_response` holds the id of a request and nothing else of it",
    "stage": "an `mcp_approval_response` goes in with the input that it is part of",
    "cancel": "`POST /responses/{id}/cancel` ends a response that still runs in the background, and no request",
    "trim": "the server reads the whole transcript each time",
    "asks_again": "a function has no way to ask; `UserInputRequiredException` is for tools that run agents",
    "limit_model_replies": "`max_iterations` limits rounds of tool calls; the model is asked once more afterwards",
    "nested": _NESTED,
    "nested_parallel": _NESTED,
    "conditional_approval": _MODE,
    "slow_conditions": _MODE,
    "raising_conditions": _MODE,
    "hand_offs": "agents hand over in workflows of another distribution, agent-framework-orchestrations",
    "serialize.copy": _KEEPS,
    "serialize.json": f"{_KEEPS}; nothing gives it as text",
    "history.append": _KEEPS,
    "missing_ids": "Responses has an id for every call",
    "mcp": "tools of a server that an agent connects to are the business of the flavours without a server in front",
}
"""Where a client goes on with `previous_response_id`."""

CHAT_MISSING: Mapping[str, str] = {
    **{name: why for name, why in MISSING.items() if name != "missing_ids"},
    "hosted_mcp": "Chat Completions has no hosted servers",
}
"""Where the model is reached with Chat Completions."""

CONVERSATION_MISSING: Mapping[str, str] = {
    **MISSING,
    "rewind": "a conversation has one end, and nothing takes it back to an earlier place",
}
"""Where a client goes on with `conversation`."""

WORKFLOW_MISSING: Mapping[str, str] = {
    **MISSING,
    "go_on_without_answer": "an agent made of a workflow does nothing with an input that answers nothing",
    "message_with_answers": "an agent made of a workflow takes a message or answers, and refuses both together",
    "structured_answer": "an agent made of a workflow takes no options for a run",
}
"""Where the agent is made of a workflow."""
