"""
Sessions and messages of Agent Framework for Python.

    {"type": "session", "state": {"in_memory": {"messages": [...]}, "tool_approval": {...}}}
    [{"role", "contents": [{"type": "function_approval_request", ...}]}, ...]      or {"messages": [...]}

A session keeps the requests that wait beside its messages; only those count for the framework.

Sources: microsoft/agent-framework#7988.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pytest_approvals.agent_side.neutral import Kind
from pytest_approvals.histories.conversation import (
    Called,
    Conversation,
    Decided,
    Entry,
    Opaque,
    Path,
    Requested,
    Resulted,
    Said,
    verdict_of,
)
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import (
    flag_in,
    is_objects,
    listed_messages,
    messages_in,
    object_in,
    optional_text,
    text_in,
)

NAME = "agent_framework"

_BESIDE = ("pending_approval_requests", "collected_approval_responses")


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    if type(document) is dict and type(document.get("state")) is dict:
        return document.get("type") == "session" or any(True for _ in _histories(document))
    message: dict[str, Any] = {}
    for message in messages_in(document):
        contents = message.get("contents")
        if is_objects(contents):
            return "type" in contents[0]
    return None if "contents" in message and "role" in message else False


def read(document: Any) -> Conversation:
    """
    Reads messages, or a session.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    reader = _Reader(Draft(NAME))
    for path, messages in _histories(document):
        reader.draft.messages(path, messages, reader.message, contents=("contents",))
    for path, approvals in _beside(document):
        reader.draft.beside(path, approvals, reader.approval)
    return reader.draft.conversation


def _histories(document: Any) -> Iterator[tuple[Path, list[Any]]]:
    state = document.get("state") if type(document) is dict else None
    if not isinstance(state, dict):
        yield listed_messages(document)
        return
    for name, held in state.items():
        if type(held) is dict and type(held.get("messages")) is list:
            yield ("state", name, "messages"), held["messages"]


def _beside(document: Any) -> Iterator[tuple[Path, list[Any]]]:
    state = document.get("state") if type(document) is dict else None
    approvals = state.get("tool_approval") if isinstance(state, dict) else None
    for name in _BESIDE:
        if isinstance(approvals, dict) and isinstance(approvals.get(name), list):
            yield ("state", "tool_approval", name), approvals[name]


class _Reader:
    """The messages of one document."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.role = ""

    def message(self, message: dict[str, Any], number: int) -> None:
        """Reads one message."""
        self.role = optional_text(message, "role") or "user"
        self.draft.contents(("contents",), message.get("contents"), number, self.content)

    def approval(self, content: dict[str, Any], number: int) -> None:
        """Reads one approval that a session holds beside its messages."""
        self.draft.entries += self.content(content, number, -1)

    def content(self, item: dict[str, Any], message: int, place: int) -> Sequence[Entry]:
        """Reads one content."""
        kind = text_in(item, "type")
        if kind == "text":
            return (Said(message, place, self.role, optional_text(item, "text") or ""),)
        read = _READERS.get(kind)
        return (read(item, message, place) if read is not None else Opaque(message, place, kind),)


def _call(item: dict[str, Any], message: int, place: int) -> Entry:
    kind, server = _kind(item)
    return Called(message, place, text_in(item, "call_id"), text_in(item, "name"), item.get("arguments"), kind, server)


def _result(item: dict[str, Any], message: int, place: int) -> Entry:
    failed = item.get("exception") is not None
    return Resulted(
        message, place, text_in(item, "call_id"), None, item.get("result"), how="failed" if failed else "unknown"
    )


def _server_call(item: dict[str, Any], message: int, place: int) -> Entry:
    tool, server = text_in(item, "tool_name"), optional_text(item, "server_name")
    return Called(message, place, text_in(item, "call_id"), tool, item.get("arguments"), "hosted_mcp", server)


def _server_result(item: dict[str, Any], message: int, place: int) -> Entry:
    return Resulted(message, place, text_in(item, "call_id"), None, item.get("output"), how="returned")


def _request(item: dict[str, Any], message: int, place: int) -> Entry:
    call = object_in(item, "function_call")
    kind, server = _kind(call)
    return Requested(
        message,
        place,
        text_in(item, "id"),
        None if kind == "hosted_mcp" else text_in(call, "call_id"),
        text_in(call, "name"),
        call.get("arguments"),
        kind,
        server,
        stands_for_call=kind == "hosted_mcp",
    )


def _response(item: dict[str, Any], message: int, place: int) -> Entry:
    call = object_in(item, "function_call")
    kind, _ = _kind(call)
    return Decided(
        message,
        place,
        text_in(item, "id"),
        verdict_of(flag_in(item, "approved")),
        call_id=None if kind == "hosted_mcp" else text_in(call, "call_id"),
        tool=text_in(call, "name"),
        arguments=call.get("arguments") or {},
    )


def _kind(call: dict[str, Any]) -> tuple[Kind, str | None]:
    server = optional_text(call, "server_name")
    return ("hosted_mcp" if call.get("hosted") is True or server else "function"), server


_READERS: dict[str, Callable[[dict[str, Any], int, int], Entry]] = {
    "function_call": _call,
    "function_result": _result,
    "function_approval_request": _request,
    "function_approval_response": _response,
    "mcp_server_tool_call": _server_call,
    "mcp_server_tool_result": _server_result,
}
