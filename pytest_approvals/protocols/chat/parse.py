"""Requests for completions as neutral items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.neutral import Item
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.text import mappings, object_of, text_of

from .rules import RULES, SHAPE


def asked(body: Any) -> Asked:
    """Reads a request; see `Format.read`."""
    complaints = SHAPE.broken(body)
    if complaints:
        return Asked(body=body if isinstance(body, Mapping) else {}, complaints=complaints, readable=False)
    functions = [tool["function"] for tool in mappings(body.get("tools")) if isinstance(tool.get("function"), Mapping)]
    return Asked(
        body=body,
        items=tuple(items(body["messages"])),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(str(function.get("name")) for function in functions),
        parameters={str(function.get("name")): _parameters(function) for function in functions},
        formatted=_is_formatted(body.get("response_format")),
        complaints=RULES.broken(body),
    )


def items(messages: list[Mapping[str, Any]]) -> Iterator[Item]:
    """Gives the elements of messages; each message has its number."""
    for number, message in enumerate(messages):
        role = message.get("role")
        if role == "assistant":
            yield from _said(message, number)
        elif role == "tool":
            told = text_of(message.get("content"))
            yield Item(kind="result", id=message.get("tool_call_id"), text=told, message=number)
        else:
            kind = "user" if role == "user" else "other"
            yield Item(kind=kind, text=text_of(message.get("content")), message=number)


def _said(message: Mapping[str, Any], number: int) -> Iterator[Item]:
    if message.get("content"):
        yield Item(kind="say", text=text_of(message["content"]), message=number)
    for call in mappings(message.get("tool_calls")):
        function = call.get("function")
        named: Mapping[str, Any] = function if isinstance(function, Mapping) else {}
        arguments = object_of(named.get("arguments"))
        yield Item(kind="call", id=call.get("id"), tool=named.get("name"), arguments=arguments, message=number)


def _parameters(function: Mapping[str, Any]) -> frozenset[str]:
    schema = function.get("parameters")
    return frozenset(schema.get("properties") or ()) if isinstance(schema, Mapping) else frozenset()


def _is_formatted(wanted: Any) -> bool:
    return isinstance(wanted, Mapping) and wanted.get("type") in ("json_schema", "json_object")
