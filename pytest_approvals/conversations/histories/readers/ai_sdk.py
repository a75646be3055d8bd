"""
Model messages of the AI SDK: `[{"role": "assistant", "content": [{"type": "tool-approval-request", ...}]}, ...]`.

Sources: the types of `ai` 6 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_approvals.agent_side.contract.types import Kind
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
    verdict_from_flag,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    discriminator_of,
    is_object_list,
    iter_messages,
    optional_flag,
    optional_text,
    require_flag,
    require_messages,
    require_text,
)

NAME = "ai_sdk"

_DISTINCTIVE_TYPES = frozenset({"tool-call", "tool-result", "tool-approval-request", "tool-approval-response"})


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    message = None
    for message in iter_messages(document):
        content = message.get("content")
        if type(message.get("role")) is not str or "content" not in message or "tool_calls" in message:
            return False
        for part in content if is_object_list(content) else ():
            kind = discriminator_of(part)
            if kind in _DISTINCTIVE_TYPES:
                return True
            if kind not in ("text", "file", "image", "reasoning"):
                return False
    return None if message else False


def read(document: Any) -> StoredConversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    reader = _MessageReader(ConversationBuilder(NAME))
    path, messages = require_messages(document)
    reader.draft.messages(path, messages, reader.message, contents=("content",))
    return reader.draft.conversation


class _MessageReader:
    """The messages of one document; a request names its call only by id."""

    def __init__(self, draft: ConversationBuilder) -> None:
        self.draft = draft
        self.calls: dict[str, CallEntry] = {}
        self.role = ""

    def message(self, item: dict[str, Any], number: int) -> None:
        """Reads one message."""
        self.role, content = require_text(item, "role"), item.get("content")
        if type(content) is str:
            self.draft.entries.append(TextEntry(number, -1, self.role, content))
        else:
            self.draft.contents(("content",), content, number, self.part)

    def part(self, part: dict[str, Any], message: int, place: int) -> Sequence[ConversationEntry]:
        """Reads one part."""
        match part.get("type"):
            case "text":
                return (TextEntry(message, place, self.role, require_text(part, "text")),)
            case "tool-call":
                return (self._call(part, message, place),)
            case "tool-approval-request":
                return (self._request(part, message, place),)
            case "tool-approval-response":
                verdict = verdict_from_flag(require_flag(part, "approved"))
                reason = optional_text(part, "reason")
                return (DecisionEntry(message, place, require_text(part, "approvalId"), verdict, reason),)
            case "tool-result":
                return (_read_result(part, message, place),)
            case kind:
                return (OpaqueEntry(message, place, str(kind)),)

    def _call(self, part: dict[str, Any], message: int, place: int) -> ConversationEntry:
        kind: Kind = "hosted_mcp" if optional_flag(part, "providerExecuted") else "function"
        call_id = require_text(part, "toolCallId")
        call = CallEntry(
            message, place, call_id, require_text(part, "toolName"), part.get("input", part.get("args")), kind
        )
        self.calls[call_id] = call
        return call

    def _request(self, part: dict[str, Any], message: int, place: int) -> ConversationEntry:
        call_id = require_text(part, "toolCallId")
        call = self.calls.get(call_id)
        asks = not optional_flag(part, "isAutomatic")
        request_id = require_text(part, "approvalId")
        if call is None:
            return RequestEntry(message, place, request_id, call_id, "", None, asks=asks)
        return RequestEntry(message, place, request_id, call_id, call.tool, call.arguments, call.kind, asks=asks)


def _read_result(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    output = part.get("output", part.get("result"))
    value, how = parse_output(output)
    tool = optional_text(part, "toolName")
    return ResultEntry(message, place, require_text(part, "toolCallId"), tool, value, how)


def parse_output(output: Any) -> tuple[Any, ResultOutcome]:
    """Gives the value of a result's output, and how it came about."""
    kind = output.get("type") if type(output) is dict else None
    if kind == "execution-denied":
        return output.get("reason"), "denied"
    if kind in ("error-text", "error-json"):
        return output.get("value"), "failed"
    if kind in ("text", "json", "content"):
        return output.get("value"), "returned"
    return output, "unknown"
