"""Requests for a response as neutral items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pytest_approvals.agent_side.neutral import Item
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.text import mappings, object_of, ordered_json, text_of

from .kept import Kept, Written
from .request import request_of
from .rules import RULES, SHAPE


def asked(body: Any, kept: Kept) -> Asked:
    """Reads a request; see `Format.read`."""
    complaints = SHAPE.broken(body)
    if complaints:
        return Asked(body=body if isinstance(body, Mapping) else {}, complaints=complaints, readable=False)
    request = request_of(body, kept)
    functions = [tool for tool in mappings(body.get("tools")) if tool.get("type") == "function"]
    return Asked(
        body=body,
        items=(*_instructions(body.get("instructions")), *items([*request.before, *request.new])),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(name for tool in mappings(body.get("tools")) for name in offered(tool)),
        parameters={str(tool.get("name")): _parameters(tool) for tool in functions},
        formatted=_is_formatted(body.get("text")),
        complaints=RULES.broken(request),
    )


def _instructions(text: Any) -> tuple[Item, ...]:
    return (Item(kind="other", text=text_of(text)),) if text else ()


def offered(tool: Mapping[str, Any]) -> list[str]:
    """Gives the names of what a tool offers: its own, or those that are allowed of a server."""
    if tool.get("type") != "mcp":
        return [str(tool.get("name") or tool.get("type"))]
    return allowed_of(tool) or [str(tool.get("server_label"))]


def allowed_of(tool: Mapping[str, Any]) -> list[str]:
    """Gives the names that a server's tool allows; empty where it allows all."""
    allowed = tool.get("allowed_tools")
    if isinstance(allowed, Mapping):
        allowed = allowed.get("tool_names")
    return [str(name) for name in allowed] if isinstance(allowed, list) else []


def items(written: Iterable[Written]) -> list[Item]:
    """
    Gives the items of a conversation as neutral ones.

    What the model said in a row is one message, results in a row are one, each message of the caller is its own. What
    the provider lists of a server's tools is nobody's message.
    """
    found: list[Item] = []
    message, before = -1, ""
    for item in written:
        if _type(item) == "mcp_list_tools":
            continue
        side = _SIDES.get(_type(item), "other")
        if side != before or side == "caller":
            message, before = message + 1, side
        found.append(_READERS.get(_type(item), _other)(item, message))
    return found


def _type(item: Written) -> str:
    kind = item.get("type") or "message"
    return f"message of {item.get('role')}" if kind == "message" else str(kind)


def _user(item: Written, message: int) -> Item:
    return Item(kind="user", text=text_of(item.get("content")), message=message)


def _say(item: Written, message: int) -> Item:
    return Item(kind="say", text=text_of(item.get("content")), message=message)


def _call(item: Written, message: int) -> Item:
    arguments = object_of(item.get("arguments"))
    return Item(kind="call", id=item.get("call_id"), tool=item.get("name"), arguments=arguments, message=message)


def _result(item: Written, message: int) -> Item:
    return Item(kind="result", id=item.get("call_id"), text=text_of(item.get("output")), message=message)


def _request(item: Written, message: int) -> Item:
    return Item(
        kind="approval_request",
        id=item.get("id"),
        tool=item.get("name"),
        arguments=object_of(item.get("arguments")),
        message=message,
    )


def _response(item: Written, message: int) -> Item:
    return Item(
        kind="approval_response",
        id=item.get("approval_request_id"),
        approved=bool(item.get("approve")),
        text=item.get("reason"),
        message=message,
    )


def _hosted(item: Written, message: int) -> Item:
    error = item.get("error")
    return Item(
        kind="hosted_result",
        id=item.get("approval_request_id") or item.get("id"),
        tool=item.get("name"),
        arguments=object_of(item.get("arguments")),
        text=item.get("output") if error is None else _told(error),
        message=message,
    )


def _told(error: Any) -> str:
    return text_of(error.get("content", [error]) if isinstance(error, Mapping) else error)


def _other(item: Written, message: int) -> Item:
    return Item(kind="other", text=ordered_json(dict(item)), message=message)


_READERS: dict[str, Callable[[Written, int], Item]] = {
    "message of user": _user,
    "message of assistant": _say,
    "function_call": _call,
    "function_call_output": _result,
    "mcp_approval_request": _request,
    "mcp_approval_response": _response,
    "mcp_call": _hosted,
}

_SIDES = {
    "message of user": "caller",
    "message of assistant": "model",
    "function_call": "model",
    "mcp_approval_request": "model",
    "mcp_call": "model",
    "function_call_output": "results",
    "mcp_approval_response": "results",
}


def _parameters(tool: Mapping[str, Any]) -> frozenset[str]:
    schema = tool.get("parameters")
    return frozenset(schema.get("properties") or ()) if isinstance(schema, Mapping) else frozenset()


def _is_formatted(text: Any) -> bool:
    wanted = text.get("format") if isinstance(text, Mapping) else None
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_schema", "json_object")
