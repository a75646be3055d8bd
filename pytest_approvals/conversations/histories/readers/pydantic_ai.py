"""Reader of Pydantic AI message histories.

    [{"kind": "response", "parts": [{"part_kind": "tool-call", ...}]}, ...]

A history has no requests: a waiting call is one without a return. A return says whether its call was denied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    OpaqueEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    is_object_list,
    iter_messages,
    optional_text,
    require_messages,
    require_text,
)
from pytest_approvals.protocols.text import text_of

NAME = "pydantic_ai"

_OUTCOMES: dict[str, ResultOutcome] = {
    "success": "returned",
    "denied": "denied",
    "failed": "failed",
    "retried": "failed",
    "interrupted": "interrupted",
}


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    first = next(iter_messages(document), {})
    if first.get("kind") not in ("request", "response"):
        return False
    parts = first.get("parts")
    return "part_kind" in parts[0] if is_object_list(parts) else None


def read(document: Any) -> StoredConversation:
    """Read a message history.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)
    path, messages = require_messages(document)

    def message(item: dict[str, Any], number: int) -> None:
        builder.read_contents(("parts",), item.get("parts"), number, _read_part)

    builder.read_messages(path, messages, message, contents=("parts",))
    return builder.conversation


def _read_part(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    kind = require_text(part, "part_kind")
    read = _READERS.get(kind)
    return read(part, message, place) if read is not None else OpaqueEntry(message, place, kind)


def _text_reader(role: str) -> Callable[[dict[str, Any], int, int], ConversationEntry]:
    return lambda part, message, place: TextEntry(message, place, role, text_of(part.get("content")))


def _read_call(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    return CallEntry(
        message, place, require_text(part, "tool_call_id"), require_text(part, "tool_name"), part.get("args")
    )


def _read_provider_call(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    tool = require_text(part, "tool_name")
    return CallEntry(message, place, require_text(part, "tool_call_id"), tool, part.get("args"), "hosted_mcp")


def _read_return(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    outcome = _OUTCOMES.get(optional_text(part, "outcome") or "", "unknown")
    tool = require_text(part, "tool_name")
    return ResultEntry(message, place, require_text(part, "tool_call_id"), tool, part.get("content"), outcome)


def _read_retry(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    """Read a retry prompt, which is the result of a call, or a text if it is not about a call."""
    tool = optional_text(part, "tool_name")
    if tool is None:
        return OpaqueEntry(message, place, "retry-prompt")
    return ResultEntry(message, place, require_text(part, "tool_call_id"), tool, part.get("content"), "failed")


_READERS: dict[str, Callable[[dict[str, Any], int, int], ConversationEntry]] = {
    "user-prompt": _text_reader("user"),
    "system-prompt": _text_reader("system"),
    "text": _text_reader("assistant"),
    "tool-call": _read_call,
    "tool-return": _read_return,
    "retry-prompt": _read_retry,
    "builtin-tool-call": _read_provider_call,
    "builtin-tool-return": _read_return,
}


READERS = {NAME: FormatReader(matches, read)}
