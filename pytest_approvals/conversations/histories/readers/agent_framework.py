"""Reader of Agent Framework for Python: its sessions and messages.

    {"type": "session", "state": {"in_memory": {"messages": [...]}, "tool_approval": {...}}}
    [{"role", "contents": [{"type": "function_approval_request", ...}]}, ...]      or {"messages": [...]}

A session keeps waiting requests outside of its messages; only those count for the framework.

Sources: microsoft/agent-framework#7988.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_approvals.agent_side.contract.types import Kind
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
    JsonPath,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
    verdict_from_flag,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    is_object_list,
    iter_messages,
    optional_text,
    read_outcome,
    require_flag,
    require_messages,
    require_object,
    require_text,
)
from pytest_approvals.errors.printable import quote

NAME = "agent_framework"

_APPROVAL_LISTS = ("pending_approval_requests", "collected_approval_responses")
_WAITING_LISTS = (*_APPROVAL_LISTS, "queued_approval_requests")
"""The lists of a state in which a request is, or the decision about it that waits for the others of its reply."""

_ASKED = "pending_approval_requests"
_GROUPS = "already_approved_approval_request_groups"


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    if type(document) is dict and type(document.get("state")) is dict:
        return document.get("type") == "session" or any(True for _ in _iter_message_lists(document))
    message: dict[str, Any] = {}
    for message in iter_messages(document):
        contents = message.get("contents")
        if is_object_list(contents):
            return "type" in contents[0]
    return None if "contents" in message and "role" in message else False


def read(document: Any) -> StoredConversation:
    """Read messages, or a session.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    reader = _DocumentReader(ConversationBuilder(NAME, has_whole_responses=True))
    for path, messages in _iter_message_lists(document):
        reader.builder.read_messages(path, messages, reader.message, contents=("contents",))
    for path, approvals in _iter_approval_lists(document):
        reader.builder.read_state_list(path, approvals, reader.approval)
    _note_losses(document, reader.builder)
    return reader.builder.conversation


def _note_losses(document: Any, builder: ConversationBuilder) -> None:
    """Note what the state of a paused session says must be there, and is not.

    While requests wait, the state holds them, and a group for the reply that they are from: the order of its calls, the
    ids of its requests, and the calls beside them that need no answer. Early releases have none of that.
    """
    state = document.get("state") if type(document) is dict else None
    approvals = state.get("tool_approval") if type(state) is dict else None
    groups = approvals.get(_GROUPS) if type(approvals) is dict else None
    if type(approvals) is not dict or not is_object_list(groups):
        return
    calls = {entry.id for entry in builder.entries if isinstance(entry, CallEntry)}
    settled = {entry.call_id for entry in builder.entries if isinstance(entry, ResultEntry)}
    shown = {entry.id for entry in builder.entries if isinstance(entry, RequestEntry) and entry.content >= 0}
    for request_id, call_id in _iter_requests(approvals.get(_ASKED)):
        if request_id not in shown:
            text = f"request {quote(request_id)} about call {quote(call_id)} waits, and is not among the messages"
            builder.add_note(("state", "tool_approval", _ASKED), text, "history-not-rewritten")
    held = [request for name in _WAITING_LISTS for request in _iter_requests(approvals.get(name))]
    for place, group in enumerate(group for group in groups if type(group) is dict):
        at = ("state", "tool_approval", _GROUPS, place)
        answered = list(_iter_requests(group.get("approval_responses")))
        beside = list(_iter_requests(group.get("approval_requests")))
        known = {call_id for _, call_id in (*held, *answered, *beside)}
        for request_id in _iter_texts(group.get("approval_request_ids")):
            if request_id not in {held_id for held_id, _ in (*held, *answered)}:
                text = f"request {quote(request_id)} waits for a decision, and is in no list of the state"
                builder.add_note((*at, "approval_request_ids"), text, "pending-survives")
        order = group.get("function_call_order")
        for call_id in _iter_texts(call.get("call_id") for call in order if type(call) is dict) if order else ():
            if call_id not in calls:
                text = f"call {quote(call_id)} is in the order of the calls, and not among the messages"
                builder.add_note((*at, "function_call_order"), text, "history-not-rewritten")
            elif call_id not in known and call_id not in settled:
                text = f"call {quote(call_id)} has no result, and nobody is asked about it"
                builder.add_note((*at, "function_call_order"), text, "pending-survives")


def _iter_requests(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the id of each request or response in a list of the state, and the id of its call."""
    for item in value if type(value) is list else ():
        call = item.get("function_call") if type(item) is dict else None
        if type(call) is dict and type(item.get("id")) is str and type(call.get("call_id")) is str:
            yield item["id"], call["call_id"]


def _iter_texts(values: Any) -> Iterator[str]:
    yield from (value for value in values if type(value) is str) if values is not None else ()


def _iter_message_lists(document: Any) -> Iterator[tuple[JsonPath, list[Any]]]:
    state = document.get("state") if type(document) is dict else None
    if not isinstance(state, dict):
        yield require_messages(document)
        return
    for name, held in state.items():
        if type(held) is dict and type(held.get("messages")) is list:
            yield ("state", name, "messages"), held["messages"]


def _iter_approval_lists(document: Any) -> Iterator[tuple[JsonPath, list[Any]]]:
    state = document.get("state") if type(document) is dict else None
    approvals = state.get("tool_approval") if isinstance(state, dict) else None
    for name in _APPROVAL_LISTS:
        if isinstance(approvals, dict) and isinstance(approvals.get(name), list):
            yield ("state", "tool_approval", name), approvals[name]


class _DocumentReader:
    """Reader of the contents of one document."""

    def __init__(self, builder: ConversationBuilder) -> None:
        self.builder = builder
        self.role = ""

    def message(self, message: dict[str, Any], number: int) -> None:
        """Read one message."""
        self.role = optional_text(message, "role") or "user"
        self.builder.read_contents(("contents",), message.get("contents"), number, self.content)

    def approval(self, content: dict[str, Any], number: int) -> None:
        """Read one approval that a session holds outside of its messages."""
        self.builder.entries.append(self.content(content, number, -1))

    def content(self, item: dict[str, Any], message: int, place: int) -> ConversationEntry:
        """Read one content."""
        kind = require_text(item, "type")
        if kind == "text":
            return TextEntry(message, place, self.role, optional_text(item, "text") or "")
        read = _READERS.get(kind)
        return read(item, message, place) if read is not None else OpaqueEntry(message, place, kind)


def _read_call(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    kind, server = _call_kind(item)
    return CallEntry(
        message, place, require_text(item, "call_id"), require_text(item, "name"), item.get("arguments"), kind, server
    )


def _read_result(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    value = item.get("result")
    outcome = read_outcome(value) if item.get("exception") is None else "failed"
    return ResultEntry(message, place, require_text(item, "call_id"), None, value, outcome)


def _read_server_call(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    tool, server = require_text(item, "tool_name"), optional_text(item, "server_name")
    return CallEntry(message, place, require_text(item, "call_id"), tool, item.get("arguments"), "hosted_mcp", server)


def _read_server_result(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    return ResultEntry(message, place, require_text(item, "call_id"), None, item.get("output"), outcome="returned")


def _read_request(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    call = require_object(item, "function_call")
    kind, server = _call_kind(call)
    return RequestEntry(
        message,
        place,
        require_text(item, "id"),
        None if kind == "hosted_mcp" else require_text(call, "call_id"),
        require_text(call, "name"),
        call.get("arguments"),
        kind,
        server,
        replaces_call=kind == "hosted_mcp",
    )


def _read_response(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    call = require_object(item, "function_call")
    kind, _ = _call_kind(call)
    return DecisionEntry(
        message,
        place,
        require_text(item, "id"),
        verdict_from_flag(require_flag(item, "approved")),
        call_id=None if kind == "hosted_mcp" else require_text(call, "call_id"),
        tool=require_text(call, "name"),
        arguments=call.get("arguments") or {},
    )


def _call_kind(call: dict[str, Any]) -> tuple[Kind, str | None]:
    server = optional_text(call, "server_name")
    return ("hosted_mcp" if call.get("hosted") is True or server else "function"), server


_READERS: dict[str, Callable[[dict[str, Any], int, int], ConversationEntry]] = {
    "function_call": _read_call,
    "function_result": _read_result,
    "function_approval_request": _read_request,
    "function_approval_response": _read_response,
    "mcp_server_tool_call": _read_server_call,
    "mcp_server_tool_result": _read_server_result,
}


READERS = {NAME: FormatReader(matches, read)}
