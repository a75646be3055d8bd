"""Replies as messages of the assistant."""

from __future__ import annotations

from typing import Any

from pytest_approvals.agent_side.failures import Unsupported
from pytest_approvals.agent_side.neutral import ModelCall, Reply
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.text import object_of

USAGE = {
    "input_tokens": 1,
    "output_tokens": 1,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "service_tier": "standard",
}


def message(asked: Asked, reply: Reply, message_id: str) -> dict[str, Any]:
    """Gives a message."""
    refuse_hosted(reply)
    blocks: list[dict[str, Any]] = [] if reply.say is None else [{"type": "text", "text": reply.say}]
    # A model that sends no text for arguments has sent an empty input, as it is in a stream.
    blocks += [tool_use(call, object_of(call.arguments) or {}) for call in reply.calls]
    return {**head(asked, message_id), "content": blocks, "stop_reason": reason(reply)}


def head(asked: Asked, message_id: str) -> dict[str, Any]:
    """Gives a message that has not begun."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }


def reason(reply: Reply) -> str:
    """Gives the reason why the model stopped."""
    return "tool_use" if reply.calls else "end_turn"


def tool_use(call: ModelCall, given: Any) -> dict[str, Any]:
    """Gives the block of a call with that input."""
    return {"type": "tool_use", "id": call.id, "name": call.tool, "input": given}


def refuse_hosted(reply: Reply) -> None:
    """
    Sees to it that a reply holds nothing of hosted MCP with approvals, which Messages does not have.

    Errors:
        Unsupported: It does.
    """
    if reply.hosted or any(call.kind == "hosted_mcp" for call in reply.calls):
        raise Unsupported("hosted_mcp", "Messages has no items for approvals")
