"""
Message histories of Pydantic AI: `[{"kind": "response", "parts": [{"part_kind": "tool-call", ...}]}, ...]`.

A history holds no requests: a call that waits is one without a return. A return says whether its call was denied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pytest_approvals.histories.conversation import Called, Conversation, Ending, Entry, Opaque, Resulted, Said
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import is_objects, listed_messages, messages_in, optional_text, text_in
from pytest_approvals.protocols.text import text_of

NAME = "pydantic_ai"

_ENDINGS: dict[str, Ending] = {"success": "returned", "denied": "denied", "failed": "failed", "retried": "failed"}


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    first = next(messages_in(document), {})
    if first.get("kind") not in ("request", "response"):
        return False
    parts = first.get("parts")
    return "part_kind" in parts[0] if is_objects(parts) else None


def read(document: Any) -> Conversation:
    """
    Reads a message history.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    draft = Draft(NAME, tells_decisions=False)
    path, messages = listed_messages(document)

    def message(item: dict[str, Any], number: int) -> None:
        draft.contents(("parts",), item.get("parts"), number, _part)

    draft.messages(path, messages, message, contents=("parts",))
    return draft.conversation


def _part(part: dict[str, Any], message: int, place: int) -> Sequence[Entry]:
    kind = text_in(part, "part_kind")
    read = _READERS.get(kind)
    return (read(part, message, place) if read is not None else Opaque(message, place, kind),)


def _said_by(role: str) -> Callable[[dict[str, Any], int, int], Entry]:
    return lambda part, message, place: Said(message, place, role, text_of(part.get("content")))


def _call(part: dict[str, Any], message: int, place: int) -> Entry:
    return Called(message, place, text_in(part, "tool_call_id"), text_in(part, "tool_name"), part.get("args"))


def _provider_call(part: dict[str, Any], message: int, place: int) -> Entry:
    tool = text_in(part, "tool_name")
    return Called(message, place, text_in(part, "tool_call_id"), tool, part.get("args"), "hosted_mcp")


def _return(part: dict[str, Any], message: int, place: int) -> Entry:
    how = _ENDINGS.get(optional_text(part, "outcome") or "", "unknown")
    tool = text_in(part, "tool_name")
    return Resulted(message, place, text_in(part, "tool_call_id"), tool, part.get("content"), how)


def _retry(part: dict[str, Any], message: int, place: int) -> Entry:
    """What does not fit is told to the model as the result of its call, or as a text where it was no call."""
    tool = optional_text(part, "tool_name")
    if tool is None:
        return Opaque(message, place, "retry-prompt")
    return Resulted(message, place, text_in(part, "tool_call_id"), tool, part.get("content"), "failed")


_READERS: dict[str, Callable[[dict[str, Any], int, int], Entry]] = {
    "user-prompt": _said_by("user"),
    "system-prompt": _said_by("system"),
    "text": _said_by("assistant"),
    "tool-call": _call,
    "tool-return": _return,
    "retry-prompt": _retry,
    "builtin-tool-call": _provider_call,
    "builtin-tool-return": _return,
}
