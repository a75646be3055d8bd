"""
Messages of Anthropic: `[{"role": "assistant", "content": [{"type": "tool_use", ...}]}, ...]`, or `{"messages": [...]}`.

The format knows no approvals: who allowed a call is told nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_approvals.histories.conversation import Called, Conversation, Ending, Entry, Opaque, Resulted, Said
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import is_objects, kind_in, listed_messages, messages_in, optional_text, text_in
from pytest_approvals.protocols.text import text_of

NAME = "messages"

_TELLING = frozenset({"tool_use", "tool_result", "mcp_tool_use", "mcp_tool_result", "server_tool_use", "thinking"})
_KNOWN = frozenset({*_TELLING, "text", "image", "document", "redacted_thinking", "search_result"})


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    message = None
    for message in messages_in(document):
        content = message.get("content")
        if kind_in(message, "role") not in ("user", "assistant") or "content" not in message:
            return False
        for block in content if is_objects(content) else ():
            kind = kind_in(block)
            if kind in _TELLING:
                return True
            if kind not in _KNOWN:
                return False
    return None if message else False


def read(document: Any) -> Conversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    draft = Draft(NAME, tells_decisions=False)
    path, messages = listed_messages(document)

    def message(item: dict[str, Any], number: int) -> None:
        role, content = text_in(item, "role"), item.get("content")
        if type(content) is str:
            draft.entries.append(Said(number, -1, role, content))
        else:
            draft.contents(("content",), content, number, lambda block, at, place: _block(block, at, place, role))

    draft.messages(path, messages, message, contents=("content",))
    return draft.conversation


def _block(block: dict[str, Any], message: int, place: int, role: str) -> Sequence[Entry]:
    match block.get("type"):
        case "text":
            return (Said(message, place, role, text_in(block, "text")),)
        case "tool_use":
            return (Called(message, place, text_in(block, "id"), text_in(block, "name"), block.get("input")),)
        case "mcp_tool_use":
            tool, server = text_in(block, "name"), optional_text(block, "server_name")
            return (Called(message, place, text_in(block, "id"), tool, block.get("input"), "hosted_mcp", server),)
        case "tool_result" | "mcp_tool_result" as kind:
            returned: Ending = "returned" if kind == "mcp_tool_result" else "unknown"
            how: Ending = "failed" if block.get("is_error") is True else returned
            told = text_of(block.get("content"))
            return (Resulted(message, place, text_in(block, "tool_use_id"), None, told, how),)
        case kind:
            return (Opaque(message, place, str(kind)),)
