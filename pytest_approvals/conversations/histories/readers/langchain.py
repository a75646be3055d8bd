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

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    JsonPath,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    describe_type,
    discriminator_of,
    iter_messages,
    optional_text,
    require_messages,
    require_object,
    require_text,
)
from pytest_approvals.errors import HistoryError
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
    kind = discriminator_of(unwrap_message(next(iter_messages(document), {}))[1])
    return kind in _ROLES or kind in _RESULTS


def read(document: Any) -> StoredConversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    draft = ConversationBuilder(NAME, tells_decisions=False)
    path, messages = require_messages(document)
    read_messages(draft, path, messages)
    return draft.conversation


def read_messages(draft: ConversationBuilder, path: JsonPath, messages: list[Any]) -> None:
    """
    Reads a list of messages into a draft.

    Errors:
        HistoryError: Something has the wrong shape.
    """

    def message(item: dict[str, Any], number: int) -> None:
        read_message(draft, item, number)

    first = unwrap_message(messages[0])[0] if messages and type(messages[0]) is dict else ()
    draft.messages(path, messages, message, contents=(*first, "tool_calls"))


def read_message(draft: ConversationBuilder, item: dict[str, Any], number: int) -> None:
    """
    Reads one message into a draft.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    names, message = unwrap_message(item)
    if type(message) is not dict:
        raise HistoryError(f"must be an object, and is {describe_type(message)}", at=names)
    kind = require_text(message, "type")
    if kind in _RESULTS:
        how: ResultOutcome = "returned" if optional_text(message, "status") == "success" else "unknown"
        call_id, tool = require_text(message, "tool_call_id"), optional_text(message, "name")
        draft.entries.append(ResultEntry(number, -1, call_id, tool, text_of(message.get("content")), how))
        return
    if message.get("content"):
        draft.entries.append(TextEntry(number, -1, _ROLES.get(kind, kind), text_of(message["content"])))
    draft.contents((*names, "tool_calls"), message.get("tool_calls"), number, _read_call)


def unwrap_message(item: dict[str, Any]) -> tuple[JsonPath, dict[str, Any]]:
    """Gives what a message says, and where in its object that stands."""
    for name in ("data", "kwargs"):
        if type(item.get(name)) is dict:
            return (name,), require_object(item, name)
    return (), item


def _read_call(call: dict[str, Any], message: int, place: int) -> Sequence[ConversationEntry]:
    return (CallEntry(message, place, optional_text(call, "id"), require_text(call, "name"), call.get("args")),)
