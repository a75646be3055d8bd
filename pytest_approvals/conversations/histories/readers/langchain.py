"""Reader of LangChain messages, in each of the three ways in which it writes them.

    [{"type": "ai", "data": {"tool_calls": [...], ...}}, ...]                  messages_to_dict
    [{"lc": 1, "id": [..., "AIMessage"], "kwargs": {"tool_calls": [...]}}]     dumpd, and what savers write as JSON
    [{"type": "ai", "tool_calls": [...], ...}, ...]                            model_dump, and what servers send

Messages hold no approvals; a checkpoint does, see `langgraph`.
"""

from __future__ import annotations

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
    FormatReader,
    discriminator_of,
    expected_error,
    is_interruption,
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
_REJECTED = "User rejected the tool call for "
"""How `HumanInTheLoopMiddleware` tells the model of a rejection, unless the user's own message stands in its place."""


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    kind = discriminator_of(unwrap_message(next(iter_messages(document), {}))[1])
    return kind in _ROLES or kind in _RESULTS


def read(document: Any) -> StoredConversation:
    """Read messages.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)
    path, messages = require_messages(document)
    read_messages(builder, path, messages)
    return builder.conversation


def read_messages(builder: ConversationBuilder, path: JsonPath, messages: list[Any]) -> None:
    """Read a list of messages into a builder.

    Raises:
        HistoryError: Something has the wrong shape.
    """

    def message(item: dict[str, Any], number: int) -> None:
        read_message(builder, item, number)

    first = unwrap_message(messages[0])[0] if messages and type(messages[0]) is dict else ()
    builder.read_messages(path, messages, message, contents=(*first, "tool_calls"))


def read_message(builder: ConversationBuilder, item: dict[str, Any], number: int) -> None:
    """Read one message into a builder.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    names, message = unwrap_message(item)
    if type(message) is not dict:
        raise HistoryError(expected_error("an object", message), at=names)
    kind = require_text(message, "type")
    if kind in _RESULTS:
        call_id, tool = require_text(message, "tool_call_id"), optional_text(message, "name")
        value = text_of(message.get("content"))
        outcome: ResultOutcome = "returned" if optional_text(message, "status") == "success" else "unknown"
        if outcome != "returned" and value.startswith(_REJECTED):
            outcome = "denied"
        elif is_interruption(value):
            outcome = "interrupted"
        builder.entries.append(ResultEntry(number, -1, call_id, tool, value, outcome))
        return
    if message.get("content"):
        builder.entries.append(TextEntry(number, -1, _ROLES.get(kind, kind), text_of(message["content"])))
    builder.read_contents((*names, "tool_calls"), message.get("tool_calls"), number, _read_call)


def unwrap_message(item: dict[str, Any]) -> tuple[JsonPath, dict[str, Any]]:
    """Return the fields of a message with their path in its object."""
    for name in ("data", "kwargs"):
        if type(item.get(name)) is dict:
            return (name,), require_object(item, name)
    return (), item


def _read_call(call: dict[str, Any], message: int, place: int) -> ConversationEntry:
    return CallEntry(message, place, optional_text(call, "id"), require_text(call, "name"), call.get("args"))


READERS = {NAME: FormatReader(matches, read)}
