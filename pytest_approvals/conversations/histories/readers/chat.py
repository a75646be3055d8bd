"""Reader of OpenAI chat completions.

    [{"role": "assistant", "tool_calls": [...]}, ...]        or {"messages": [...]}
    [{"role": "assistant", "toolCalls": [...]}, ...]         as AG-UI writes them

The format has no approvals: it does not show who allowed a call.
"""

from __future__ import annotations

from typing import Any

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    OpaqueEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    discriminator_of,
    is_object_list,
    iter_messages,
    require_messages,
    require_text,
    unmarked_outcome,
)
from pytest_approvals.protocols.text import text_of

NAME = "chat"

_PARTS = frozenset({"text", "image_url", "input_audio", "file", "refusal"})


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    message = None
    for message in iter_messages(document):
        content = message.get("content")
        if type(message.get("role")) is not str or "contents" in message or "parts" in message:
            return False
        if "toolCallId" in message or is_object_list(message.get("toolCalls")):
            return True
        if "tool_call_id" in message or is_object_list(message.get("tool_calls")):
            # Messages of LangChain have the same fields and a type.
            return "type" not in message
        if is_object_list(content) and discriminator_of(content[0]) not in _PARTS:
            return False
    # A conversation of plain texts fits several formats.
    return None if message else False


def read(document: Any) -> StoredConversation:
    """Read messages.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)
    path, messages = require_messages(document)

    add = builder.entries.append

    # Types are checked here before functions that check them are called: there are millions of messages.
    def message(item: dict[str, Any], number: int) -> None:
        role, content = item.get("role"), item.get("content")
        if role == "tool":
            call_id = item.get("tool_call_id")
            if type(call_id) is not str:
                # AG-UI has the same messages with names of JavaScript.
                call_id = require_text(item, "toolCallId" if "toolCallId" in item else "tool_call_id")
            text = content if type(content) is str else text_of(content)
            add(ResultEntry(number, -1, call_id, None, text, unmarked_outcome(text)))
            return
        if type(role) is not str:
            role = require_text(item, "role")
        if content:
            add(TextEntry(number, -1, role, content if type(content) is str else text_of(content)))
        if "tool_calls" in item:
            builder.read_contents(("tool_calls",), item["tool_calls"], number, _read_call)
        if "toolCalls" in item:
            # Clients of AG-UI keep the texts and the calls of one response as messages each.
            builder.conversation.has_whole_responses = False
            builder.read_contents(("toolCalls",), item["toolCalls"], number, _read_call)

    builder.read_messages(path, messages, message, contents=("tool_calls",))
    return builder.conversation


def _read_call(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    call = item.get("function")
    if type(call) is dict:
        arguments = call.get("arguments")
    elif type(call := item.get("custom")) is dict:
        arguments = {"input": call.get("input")}
    else:
        return OpaqueEntry(message, place, str(item.get("type")))
    call_id, tool = item.get("id"), call.get("name")
    call_id = call_id if type(call_id) is str else require_text(item, "id")
    return CallEntry(message, place, call_id, tool if type(tool) is str else require_text(call, "name"), arguments)


READERS = {NAME: FormatReader(matches, read)}
