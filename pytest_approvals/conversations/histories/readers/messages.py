"""Reader of Anthropic messages.

    [{"role": "assistant", "content": [{"type": "tool_use", ...}]}, ...]        or {"messages": [...]}

The format has no approvals: it does not show who allowed a call.
"""

from __future__ import annotations

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
    discriminator_of,
    is_object_list,
    iter_messages,
    optional_text,
    require_messages,
    require_text,
    unmarked_outcome,
)
from pytest_approvals.protocols.text import text_of

NAME = "messages"

_DISTINCTIVE_TYPES = frozenset(
    {"tool_use", "tool_result", "mcp_tool_use", "mcp_tool_result", "server_tool_use", "thinking"}
)
_KNOWN_TYPES = frozenset({*_DISTINCTIVE_TYPES, "text", "image", "document", "redacted_thinking", "search_result"})


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    message = None
    for message in iter_messages(document):
        content = message.get("content")
        if discriminator_of(message, "role") not in ("user", "assistant") or "content" not in message:
            return False
        for block in content if is_object_list(content) else ():
            kind = discriminator_of(block)
            if kind in _DISTINCTIVE_TYPES:
                return True
            if kind not in _KNOWN_TYPES:
                return False
    return None if message else False


def read(document: Any) -> StoredConversation:
    """Read messages.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False, has_whole_responses=True)
    path, messages = require_messages(document)

    role = ""

    def message(item: dict[str, Any], number: int) -> None:
        nonlocal role
        role, content = require_text(item, "role"), item.get("content")
        if type(content) is str:
            builder.entries.append(TextEntry(number, -1, role, content))
        else:
            builder.read_contents(("content",), content, number, block)

    def block(item: dict[str, Any], number: int, place: int) -> ConversationEntry:
        if item.get("type") == "text":
            return TextEntry(number, place, role, require_text(item, "text"))
        return _read_block(item, number, place)

    builder.read_messages(path, messages, message, contents=("content",))
    return builder.conversation


def _read_block(block: dict[str, Any], message: int, place: int) -> ConversationEntry:
    match block.get("type"):
        case "tool_use":
            return CallEntry(message, place, require_text(block, "id"), require_text(block, "name"), block.get("input"))
        case "mcp_tool_use":
            tool, server = require_text(block, "name"), optional_text(block, "server_name")
            return CallEntry(message, place, require_text(block, "id"), tool, block.get("input"), "hosted_mcp", server)
        case "tool_result" | "mcp_tool_result" as kind:
            text = text_of(block.get("content"))
            outcome: ResultOutcome = "returned" if kind == "mcp_tool_result" else unmarked_outcome(text)
            if block.get("is_error") is True and outcome != "interrupted":
                outcome = "failed"
            return ResultEntry(message, place, require_text(block, "tool_use_id"), None, text, outcome)
        case kind:
            return OpaqueEntry(message, place, str(kind))


READERS = {NAME: FormatReader(matches, read)}
