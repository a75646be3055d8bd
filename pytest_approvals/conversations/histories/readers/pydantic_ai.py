"""
Message histories of Pydantic AI: `[{"kind": "response", "parts": [{"part_kind": "tool-call", ...}]}, ...]`.

A history holds no requests: a call that waits is one without a return. A return says whether its call was denied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
}


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    first = next(iter_messages(document), {})
    if first.get("kind") not in ("request", "response"):
        return False
    parts = first.get("parts")
    return "part_kind" in parts[0] if is_object_list(parts) else None


def read(document: Any) -> StoredConversation:
    """
    Reads a message history.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    draft = ConversationBuilder(NAME, tells_decisions=False)
    path, messages = require_messages(document)

    def message(item: dict[str, Any], number: int) -> None:
        draft.contents(("parts",), item.get("parts"), number, _read_part)

    draft.messages(path, messages, message, contents=("parts",))
    return draft.conversation


def _read_part(part: dict[str, Any], message: int, place: int) -> Sequence[ConversationEntry]:
    kind = require_text(part, "part_kind")
    read = _READERS.get(kind)
    return (read(part, message, place) if read is not None else OpaqueEntry(message, place, kind),)


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
    how = _OUTCOMES.get(optional_text(part, "outcome") or "", "unknown")
    tool = require_text(part, "tool_name")
    return ResultEntry(message, place, require_text(part, "tool_call_id"), tool, part.get("content"), how)


def _read_retry(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    """What does not fit is told to the model as the result of its call, or as a text where it was no call."""
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
