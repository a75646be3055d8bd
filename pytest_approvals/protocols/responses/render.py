"""Replies as responses and their items."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pytest_approvals.agent_side.neutral import HostedResult, ModelCall, Reply
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.text import arguments_text, json_text, mappings

from .parse import allowed_of

USAGE = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}


def response(asked: Asked, response_id: str, output: Sequence[Mapping[str, Any]], status: str) -> dict[str, Any]:
    """Gives the response that holds these items."""
    body = asked.body
    is_done = status == "completed"
    return {
        "id": response_id,
        "object": "response",
        "created_at": 0,
        "completed_at": 0 if is_done else None,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": asked.model,
        "output": list(output),
        "parallel_tool_calls": body.get("parallel_tool_calls", True),
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None},
        "service_tier": "default",
        "store": body.get("store") is not False,
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": body.get("tools") or [],
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation") or "disabled",
        "usage": USAGE if is_done else None,
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
        **_conversation(body.get("conversation")),
    }


def _conversation(named: Any) -> dict[str, Any]:
    if not named:
        return {}
    return {"conversation": {"id": named.get("id") if isinstance(named, Mapping) else named}}


def ran(reply: Reply) -> list[dict[str, Any]]:
    """Gives the calls that the provider ran."""
    return [_ran(result) for result in reply.hosted]


def message(text: str | None, item_id: str) -> dict[str, Any]:
    """Gives a message of the model; None is one that has not begun to speak."""
    return {
        "id": item_id,
        "type": "message",
        "role": "assistant",
        "status": "in_progress" if text is None else "completed",
        "content": [] if text is None else [text_part(text)],
    }


def text_part(text: str) -> dict[str, Any]:
    """Gives the part of a message that holds its text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def called(call: ModelCall, item_id: str) -> dict[str, Any]:
    """Gives a call of the model: of a function, or the request to approve a call of a server's tool."""
    if call.kind == "hosted_mcp":
        return {
            "id": call.id or f"mcpr_{item_id}",
            "type": "mcp_approval_request",
            "arguments": arguments_text(call),
            "name": call.tool,
            "server_label": call.server or "",
        }
    return {
        "id": item_id,
        "type": "function_call",
        "status": "completed",
        "arguments": arguments_text(call),
        "call_id": call.id,
        "name": call.tool,
    }


def begun(item: Mapping[str, Any]) -> dict[str, Any]:
    """Gives an item as a stream shows it when it begins."""
    kind = item["type"]
    if kind == "message":
        return message(None, str(item["id"]))
    if kind == "function_call":
        return {**item, "arguments": "", "status": "in_progress"}
    if kind == "mcp_call":
        return {**item, "arguments": "", "output": None, "error": None, "status": "in_progress"}
    return {**item, "tools": []} if kind == "mcp_list_tools" else dict(item)


def listings(
    asked: Asked, before: Iterable[Mapping[str, Any]], servers: Mapping[str, Sequence[Mapping[str, Any]]], key: str
) -> list[dict[str, Any]]:
    """
    Gives the lists of tools of the servers whose list is not in the conversation yet.

    Arguments:
        before: The conversation so far.
        servers: What each server offers; one that is not known offers what the request allows.
        key: Makes the ids of the items.
    """
    known = {item.get("server_label") for item in before if item.get("type") == "mcp_list_tools"}
    found: list[dict[str, Any]] = []
    for tool in mappings(asked.body.get("tools")):
        label = str(tool.get("server_label"))
        if tool.get("type") == "mcp" and label not in known:
            known.add(label)
            listed = _listed(tool, servers.get(label))
            item_id = f"mcpl_{key}_{len(found)}"
            found.append({"id": item_id, "type": "mcp_list_tools", "server_label": label, "tools": listed})
    return found


def _listed(tool: Mapping[str, Any], offered: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    allowed = allowed_of(tool)
    if offered is not None:
        return [one for one in offered if not allowed or one.get("name") in allowed]
    # Some clients take a description or annotations of null for a broken answer.
    more = {
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": True},
        "annotations": {"read_only": False},
    }
    return [{"name": name, "description": f"The tool {name}.", **more} for name in allowed]


def _ran(result: HostedResult) -> dict[str, Any]:
    return {
        "id": f"mcp_{result.call_id}",
        "type": "mcp_call",
        "status": "completed" if result.error is None else "failed",
        "approval_request_id": result.call_id,
        "arguments": json_text(dict(result.arguments)),
        "error": None if result.error is None else _failed(result.error),
        "name": result.tool,
        "output": result.output,
        "server_label": result.server or "",
    }


def _failed(text: str) -> dict[str, Any]:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}
