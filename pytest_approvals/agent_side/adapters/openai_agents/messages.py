"""Model inputs of the SDK (Responses items) as neutral items, and its stream events for `World.shown`."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...contract import Item, World
from ...kit.tool_schema import is_object_text, parse_arguments


def get_field(raw: Any, name: str) -> Any:
    """Return a field of a raw item, which is an object of the API's types or, restored from JSON, a mapping."""
    return raw.get(name) if isinstance(raw, Mapping) else getattr(raw, name, None)


def text_of(content: Any) -> str:
    """Return the text of a message's or a result's content: a string, or a list of parts."""
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    return "".join(_part_text(part) for part in content)


def _part_text(part: Any) -> str:
    if not isinstance(part, Mapping):
        return str(part)
    for name in ("text", "refusal"):
        if isinstance(part.get(name), str):
            return str(part[name])
    return json.dumps(part, sort_keys=True)


# --- Responses --------------------------------------------------------------------------------------------------------


def to_items(input: str | Iterable[Mapping[str, Any]]) -> list[Item]:
    """Return the input of a Responses model as items.

    Consecutive items of the model are one message, consecutive results are one, each message of the caller is its own.
    """
    if isinstance(input, str):
        return [Item(kind="user", text=input)]
    items: list[Item] = []
    message, before = -1, ""
    for written in input:
        side = _SIDES.get(_get_item_type(written), "other")
        if side != before or side == "caller":
            message, before = message + 1, side
        items.append(_READERS.get(_get_item_type(written), _to_other_item)(written, message))
    return items


def _get_item_type(written: Mapping[str, Any]) -> str:
    kind = written.get("type") or "message"
    return f"message of {written.get('role')}" if kind == "message" else str(kind)


def _to_user_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(kind="user", text=text_of(written.get("content")), message=message)


def _to_say_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(kind="say", text=text_of(written.get("content")), message=message)


def _to_call_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(
        kind="call",
        id=written["call_id"],
        tool=written["name"],
        arguments=parse_arguments(written["arguments"]),
        message=message,
    )


def _to_result_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(kind="result", id=written["call_id"], text=text_of(written.get("output")), message=message)


def _to_approval_request_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(
        kind="approval_request",
        id=written["id"],
        tool=written["name"],
        arguments=parse_arguments(written["arguments"]),
        message=message,
    )


def _to_approval_response_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(
        kind="approval_response",
        id=written["approval_request_id"],
        approved=written["approve"],
        text=written.get("reason"),
        message=message,
    )


def _to_hosted_result_item(written: Mapping[str, Any], message: int) -> Item:
    error = written.get("error")
    text = written.get("output") if error is None else _error_text(error)
    return Item(
        kind="hosted_result",
        # Where nobody was asked, the call is named by the id that it was sent under.
        id=written.get("approval_request_id") or written["id"].removeprefix("mcp_"),
        tool=written["name"],
        arguments=parse_arguments(written["arguments"]),
        text=text,
        message=message,
    )


def _error_text(error: Any) -> str:
    return text_of(error.get("content", [error]) if isinstance(error, Mapping) else error)


def _to_reasoning_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(
        kind="reasoning",
        id=written.get("id"),
        text=text_of(written.get("summary")) or None,
        signature=written.get("encrypted_content"),
        message=message,
    )


def _to_other_item(written: Mapping[str, Any], message: int) -> Item:
    return Item(kind="other", text=json.dumps(written, sort_keys=True, default=str), message=message)


_READERS: dict[str, Callable[[Mapping[str, Any], int], Item]] = {
    "message of user": _to_user_item,
    "message of assistant": _to_say_item,
    "reasoning": _to_reasoning_item,
    "function_call": _to_call_item,
    "function_call_output": _to_result_item,
    "mcp_approval_request": _to_approval_request_item,
    "mcp_approval_response": _to_approval_response_item,
    "mcp_call": _to_hosted_result_item,
}

_SIDES = {
    "message of user": "caller",
    "message of assistant": "model",
    "reasoning": "model",
    "function_call": "model",
    "mcp_approval_request": "model",
    "mcp_call": "model",
    "function_call_output": "results",
    "mcp_approval_response": "results",
}


def report_event(event: Any, world: World) -> None:
    """Report to *world* what one event of `RunResultStreaming.stream_events` shows."""
    if event.type != "run_item_stream_event":
        return
    raw = event.item.raw_item
    if event.name == "message_output_created":
        text = "".join(getattr(part, "text", "") for part in raw.content)
        # A structured answer comes as text, but is not shown as text.
        if event.item.agent.output_type is None or not is_object_text(text):
            world.shown("text", text=text)
    elif event.name in ("tool_called", "handoff_requested"):
        world.shown("call", id=get_field(raw, "call_id") or get_field(raw, "id"), tool=get_field(raw, "name"))
    elif event.name in ("tool_output", "handoff_occured"):  # the SDK spells it so
        world.shown("result", id=get_field(raw, "call_id"), text=text_of(get_field(raw, "output")))
    elif event.name == "mcp_approval_requested":
        world.shown("request", id=get_field(raw, "id"), tool=get_field(raw, "name"))
