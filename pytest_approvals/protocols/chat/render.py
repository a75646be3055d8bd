"""Replies as completions."""

from __future__ import annotations

from typing import Any

from pytest_approvals.agent_side.failures import Unsupported
from pytest_approvals.agent_side.neutral import ModelCall, Reply
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.text import arguments_text

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def completion(asked: Asked, reply: Reply, completion_id: str) -> dict[str, Any]:
    """Gives a completion."""
    refuse_hosted(reply)
    message: dict[str, Any] = {"role": "assistant", "content": reply.say, "refusal": None, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": reason(reply)}
    return {**head(asked, completion_id), "object": "chat.completion", "choices": [choice], "usage": USAGE}


def head(asked: Asked, completion_id: str) -> dict[str, Any]:
    """Gives what stands in a completion and in each of its chunks."""
    return {
        "id": completion_id,
        "object": "",
        "created": 0,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def reason(reply: Reply) -> str:
    """Gives the reason why the model stopped."""
    return "tool_calls" if reply.calls else "stop"


def refuse_hosted(reply: Reply) -> None:
    """
    Sees to it that a reply holds nothing of hosted MCP.

    Errors:
        Unsupported: It does.
    """
    if reply.hosted or any(call.kind == "hosted_mcp" for call in reply.calls):
        raise Unsupported("hosted_mcp", "Chat Completions has no items for it")


def _call(call: ModelCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": arguments_text(call)}
    return {"id": call.id, "type": "function", "function": function}
