"""Reader of Strands: messages of an agent, and file sessions, whose files are read as one document.

    [{"role": "assistant", "content": [{"toolUse": {...}}]}, ...]
    {"agent": {"agent_id", "_internal_state": {...}}, "messages": [{"message": {...}, "message_id": 0}, ...]}

Requests are the interrupts of a paused session that hooks raised before a tool call, whose ids name the call. They are
gone when the session continues, so decisions are never shown.
"""

from __future__ import annotations

import re
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    JsonPath,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    errors_within,
    is_interruption,
    is_object_list,
    iter_messages,
    optional_text,
    require_messages,
    require_object,
    require_text,
)
from pytest_approvals.errors.printable import quote, shorten
from pytest_approvals.protocols.text import text_of

NAME = "strands"

_BEFORE_CALL = re.compile(r"v1:before_tool_call:(.+):[0-9a-f-]+")
_STATE = ("agent", "_internal_state", "interrupt_state")
_SNAPSHOT_STATE = ("data", "interrupt_state")


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    if _is_snapshot(document):
        return True
    is_session = type(document) is dict and type(document.get("agent")) is dict and "agent_id" in document["agent"]
    if is_session:
        return type(document.get("messages")) is list
    message: dict[str, Any] = {}
    for message in iter_messages(document):
        content = message.get("content")
        if not is_object_list(content) or "type" in content[0] or "role" not in message:
            return False
        if any(type(part) is dict and ("toolUse" in part or "toolResult" in part) for part in content):
            return True
    return None if message else False


def _is_snapshot(document: Any) -> bool:
    """Return whether it is a snapshot, as `Agent.take_snapshot` makes it."""
    data = document.get("data") if type(document) is dict and "schema_version" in document else None
    return type(data) is dict and type(data.get("messages")) is list


def read(document: Any) -> StoredConversation:
    """Read messages, or a session.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)
    is_snapshot = _is_snapshot(document)
    path, messages = require_messages(document["data"] if is_snapshot else document)
    path = ("data", *path) if is_snapshot else path
    inner = ("message",) if messages and type(messages[0]) is dict and "message" in messages[0] else ()

    def message(item: dict[str, Any], number: int) -> None:
        with errors_within(inner):
            item = require_object(item, "message") if inner else item
            role = require_text(item, "role")
            builder.read_contents(
                ("content",), item.get("content"), number, lambda part, at, place: _read_part(part, at, place, role)
            )

    builder.read_messages(path, messages, message, contents=(*inner, "content"))
    if type(document) is dict:
        _read_interrupts(builder, document, _SNAPSHOT_STATE if is_snapshot else _STATE)
    return builder.conversation


def _read_part(part: dict[str, Any], message: int, place: int, role: str) -> ConversationEntry:
    if type(part.get("toolUse")) is dict:
        call = part["toolUse"]
        return CallEntry(message, place, require_text(call, "toolUseId"), require_text(call, "name"), call.get("input"))
    if type(part.get("toolResult")) is dict:
        result = part["toolResult"]
        outcome: ResultOutcome = "returned" if optional_text(result, "status") == "success" else "unknown"
        value = text_of([{"type": "text", **each} for each in result.get("content") or () if type(each) is dict])
        if outcome != "returned" and is_interruption(value):
            outcome = "interrupted"
        return ResultEntry(message, place, require_text(result, "toolUseId"), None, value, outcome)
    if type(part.get("text")) is str:
        return TextEntry(message, place, role, part["text"])
    return OpaqueEntry(message, place, next(iter(part), "part"))


def _read_interrupts(builder: ConversationBuilder, document: dict[str, Any], names: JsonPath) -> None:
    """Read what a paused session waits for, with the results that are not among its messages yet."""
    state: Any = document
    for name in names:
        state = state.get(name) if type(state) is dict else None
    if type(state) is not dict or state.get("activated") is not True:
        return
    calls = {entry.id: entry for entry in builder.entries if isinstance(entry, CallEntry)}
    interrupts = state.get("interrupts")
    asked: set[str | None] = set()
    for request_id, interrupt in interrupts.items() if type(interrupts) is dict else ():
        found = _BEFORE_CALL.fullmatch(request_id)
        # Tools and other hooks interrupt, too: what those ask is not about a call.
        if found is None or type(interrupt) is not dict:
            continue
        asked.add(found[1])
        at = (*names, "interrupts", request_id)
        call = calls.get(found[1])
        if call is None:
            text = f"call {quote(found[1])} waits for a decision, and is not among the messages"
            builder.add_note(at, text, "history-not-rewritten")
            continue
        number = builder.add_state_path(at)
        builder.entries.append(RequestEntry(number, -1, request_id, call.id, call.tool, call.arguments))
    pending = state.get("pending_tool_execution")
    if type(pending) is not dict:
        return
    at = (*names, "pending_tool_execution", "completed_tool_results")
    completed: set[str | None] = set()
    for place, result in enumerate(pending.get("completed_tool_results") or ()):
        if type(result) is dict and type(result.get("toolUseId")) is str:
            completed.add(result["toolUseId"])
            entry = _read_part({"toolResult": result}, builder.add_state_path((*at, place)), -1, "user")
            builder.entries.append(entry)
    message = pending.get("assistant_message")
    for part in message.get("content") or () if type(message) is dict else ():
        call_id = part["toolUse"].get("toolUseId") if type(part) is dict and type(part.get("toolUse")) is dict else None
        if call_id is not None and call_id not in asked | completed and asked:
            tool = shorten(str(part["toolUse"].get("name")))
            text = f"call {quote(str(call_id))} of {tool} has no result, and nobody is asked about it"
            builder.add_note((*names, "interrupts"), text, "pending-survives")


READERS = {NAME: FormatReader(matches, read)}
