"""
Messages of LangChain, in each of the three ways in which it writes them.

    [{"type": "ai", "data": {"tool_calls": [...], ...}}, ...]                  messages_to_dict
    [{"lc": 1, "id": [..., "AIMessage"], "kwargs": {"tool_calls": [...]}}]     dumpd, and what savers write as JSON
    [{"type": "ai", "tool_calls": [...], ...}, ...]                            model_dump, and what servers send

Messages hold no approvals; a checkpoint does, see `langgraph`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_approvals.errors import HistoryError
from pytest_approvals.histories.conversation import Called, Conversation, Ending, Entry, Path, Resulted, Said
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import (
    kind_in,
    listed_messages,
    messages_in,
    object_in,
    optional_text,
    text_in,
    word_of,
)
from pytest_approvals.protocols.text import text_of

NAME = "langchain"

_ROLES = {
    "human": "user",
    "HumanMessageChunk": "user",
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
}
_RESULTS = ("tool", "ToolMessageChunk")


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    kind = kind_in(inside(next(messages_in(document), {}))[1])
    return kind in _ROLES or kind in _RESULTS


def read(document: Any) -> Conversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    draft = Draft(NAME, tells_decisions=False)
    path, messages = listed_messages(document)
    read_messages(draft, path, messages)
    return draft.conversation


def read_messages(draft: Draft, path: Path, messages: list[Any]) -> None:
    """
    Reads a list of messages into a draft.

    Errors:
        HistoryError: Something has the wrong shape.
    """

    def message(item: dict[str, Any], number: int) -> None:
        read_message(draft, item, number)

    first = inside(messages[0])[0] if messages and type(messages[0]) is dict else ()
    draft.messages(path, messages, message, contents=(*first, "tool_calls"))


def read_message(draft: Draft, item: dict[str, Any], number: int) -> None:
    """
    Reads one message into a draft.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    names, message = inside(item)
    if type(message) is not dict:
        raise HistoryError(f"must be an object, and is {word_of(message)}", at=names)
    kind = text_in(message, "type")
    if kind in _RESULTS:
        how: Ending = "returned" if optional_text(message, "status") == "success" else "unknown"
        call_id, tool = text_in(message, "tool_call_id"), optional_text(message, "name")
        draft.entries.append(Resulted(number, -1, call_id, tool, text_of(message.get("content")), how))
        return
    if message.get("content"):
        draft.entries.append(Said(number, -1, _ROLES.get(kind, kind), text_of(message["content"])))
    draft.contents((*names, "tool_calls"), message.get("tool_calls"), number, _call)


def inside(item: dict[str, Any]) -> tuple[Path, dict[str, Any]]:
    """Gives what a message says, and where in its object that stands."""
    for name in ("data", "kwargs"):
        if type(item.get(name)) is dict:
            return (name,), object_in(item, name)
    return (), item


def _call(call: dict[str, Any], message: int, place: int) -> Sequence[Entry]:
    return (Called(message, place, optional_text(call, "id"), text_in(call, "name"), call.get("args")),)
