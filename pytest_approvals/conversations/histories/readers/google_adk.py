"""Reader of sessions of Google ADK, as JSON with names of either style.

    {"appName", "events": [{"author", "content": {"parts": [{"functionCall": {...}}]}, "actions": {...}}]}

A call of `adk_request_confirmation` is a request, and its response the decision. The call that it is about has a
placeholder for a result until then.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
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
    errors_within,
    expected_error,
    is_interruption,
    is_object_list,
    optional_list,
    optional_text,
    require_objects,
    require_text,
)
from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import quote

NAME = "google_adk"

_CONFIRMATION = "adk_request_confirmation"
_REJECTED = "This tool call is rejected"
_WAITS = "This tool call requires confirmation"


def _get(item: dict[str, Any], name: str, other: str) -> Any:
    """Return a value under its name in JSON, else under its name in Python."""
    return item.get(name) if item.get(name) is not None else item.get(other)


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    if type(document) is not dict or not is_object_list(document.get("events")):
        return False
    event = document["events"][0]
    return "author" in event and ("invocationId" in event or "invocation_id" in event)


def read(document: Any) -> StoredConversation:
    """Read a session.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    if type(document) is not dict:
        raise HistoryError(expected_error("an object", document))
    builder = ConversationBuilder(NAME)
    events = require_objects(optional_list(document, "events"), ("events",))

    def event(item: dict[str, Any], number: int) -> None:
        # Parts of a stream are followed by the whole event.
        content = item.get("content")
        if item.get("partial") is True or type(content) is not dict:
            return
        role = "user" if item.get("author") == "user" else "assistant"
        asked = _asked_calls(item)
        with errors_within(("content", "parts")):
            for place, part in enumerate(require_objects(optional_list(content, "parts"))):
                with errors_within((place,)):
                    builder.entries.extend(_read_part(part, number, place, role, asked))

    builder.read_messages(("events",), events, event, contents=("content", "parts"))
    _note_losses(builder, events)
    return builder.conversation


def _asked_calls(event: dict[str, Any]) -> dict[str, Any]:
    """Return what the actions of an event ask to confirm, by call id."""
    actions = event.get("actions")
    asked = _get(actions, "requestedToolConfirmations", "requested_tool_confirmations") if type(actions) is dict else {}
    return asked if type(asked) is dict else {}


def _note_losses(builder: ConversationBuilder, events: Sequence[dict[str, Any]]) -> None:
    """Note the calls that an event says wait for confirmation, and that no request is about."""
    requested = {entry.call_id for entry in builder.entries if isinstance(entry, RequestEntry)}
    for number, event in enumerate(events):
        for call_id in _asked_calls(event):
            if call_id not in requested:
                text = f"call {quote(call_id)} waits for confirmation, and no request asks about it"
                builder.add_note(("events", number, "actions"), text, "pending-survives")


def _read_part(
    part: dict[str, Any], message: int, place: int, role: str, asked: dict[str, Any]
) -> Iterator[ConversationEntry]:
    call, response = _get(part, "functionCall", "function_call"), _get(part, "functionResponse", "function_response")
    if type(call) is dict:
        yield _read_call(call, message, place)
    elif type(response) is dict:
        yield _read_response(response, message, place, asked)
    elif type(part.get("text")) is str and not part.get("thought"):
        yield TextEntry(message, place, role, part["text"])
    else:
        yield OpaqueEntry(message, place, next(iter(part), "part"))


def _read_call(call: dict[str, Any], message: int, place: int) -> ConversationEntry:
    tool, call_id = require_text(call, "name"), optional_text(call, "id")
    if tool != _CONFIRMATION:
        is_own = tool.startswith("adk_request_")
        return (
            OpaqueEntry(message, place, tool) if is_own else CallEntry(message, place, call_id, tool, call.get("args"))
        )
    arguments = call.get("args")
    original = _get(arguments, "originalFunctionCall", "original_function_call") if type(arguments) is dict else None
    with errors_within(("args", "originalFunctionCall")):
        if type(original) is not dict:
            raise HistoryError(expected_error("an object", original))
        original_id, name = optional_text(original, "id"), require_text(original, "name")
    return RequestEntry(message, place, call_id or original_id or "", original_id, name, original.get("args"))


def _read_response(response: dict[str, Any], message: int, place: int, asked: dict[str, Any]) -> ConversationEntry:
    call_id, tool, value = optional_text(response, "id"), optional_text(response, "name"), response.get("response")
    if tool == _CONFIRMATION:
        answer = value
        # A client may send its answer as JSON text.
        if type(answer) is dict and type(answer.get("response")) is str:
            try:
                answer = json.loads(answer["response"])
            except (ValueError, RecursionError):
                answer = None
        confirmed = answer.get("confirmed") if type(answer) is dict else None
        verdict = verdict_from_flag(confirmed) if type(confirmed) is bool else "raw"
        return DecisionEntry(message, place, call_id or "", verdict)
    error = value.get("error") if type(value) is dict else None
    error = error if type(error) is str else ""
    if call_id in asked or error.startswith(_WAITS):
        return OpaqueEntry(message, place, "placeholder")
    plain = value["result"] if type(value) is dict and set(value) == {"result"} else value
    if error.startswith(_REJECTED):
        return ResultEntry(message, place, call_id, tool, error, "denied")
    if is_interruption(error):
        return ResultEntry(message, place, call_id, tool, error, "interrupted")
    return ResultEntry(message, place, call_id, tool, plain, "failed" if error else "returned")


READERS = {NAME: FormatReader(matches, read)}
