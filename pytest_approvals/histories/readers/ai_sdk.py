"""
Model messages of the AI SDK: `[{"role": "assistant", "content": [{"type": "tool-approval-request", ...}]}, ...]`.

Sources: the types of `ai` 6 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_approvals.agent_side.neutral import Kind
from pytest_approvals.histories.conversation import (
    Called,
    Conversation,
    Decided,
    Ending,
    Entry,
    Opaque,
    Requested,
    Resulted,
    Said,
    verdict_of,
)
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import (
    flag_in,
    is_objects,
    kind_in,
    listed_messages,
    messages_in,
    optional_flag,
    optional_text,
    text_in,
)

NAME = "ai_sdk"

_TELLING = frozenset({"tool-call", "tool-result", "tool-approval-request", "tool-approval-response"})


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    message = None
    for message in messages_in(document):
        content = message.get("content")
        if type(message.get("role")) is not str or "content" not in message or "tool_calls" in message:
            return False
        for part in content if is_objects(content) else ():
            kind = kind_in(part)
            if kind in _TELLING:
                return True
            if kind not in ("text", "file", "image", "reasoning"):
                return False
    return None if message else False


def read(document: Any) -> Conversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    reader = _Reader(Draft(NAME))
    path, messages = listed_messages(document)
    reader.draft.messages(path, messages, reader.message, contents=("content",))
    return reader.draft.conversation


class _Reader:
    """The messages of one document; a request names its call only by id."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.calls: dict[str, Called] = {}
        self.role = ""

    def message(self, item: dict[str, Any], number: int) -> None:
        """Reads one message."""
        self.role, content = text_in(item, "role"), item.get("content")
        if type(content) is str:
            self.draft.entries.append(Said(number, -1, self.role, content))
        else:
            self.draft.contents(("content",), content, number, self.part)

    def part(self, part: dict[str, Any], message: int, place: int) -> Sequence[Entry]:
        """Reads one part."""
        match part.get("type"):
            case "text":
                return (Said(message, place, self.role, text_in(part, "text")),)
            case "tool-call":
                return (self._call(part, message, place),)
            case "tool-approval-request":
                return (self._request(part, message, place),)
            case "tool-approval-response":
                verdict = verdict_of(flag_in(part, "approved"))
                reason = optional_text(part, "reason")
                return (Decided(message, place, text_in(part, "approvalId"), verdict, reason),)
            case "tool-result":
                return (_result(part, message, place),)
            case kind:
                return (Opaque(message, place, str(kind)),)

    def _call(self, part: dict[str, Any], message: int, place: int) -> Entry:
        kind: Kind = "hosted_mcp" if optional_flag(part, "providerExecuted") else "function"
        call_id = text_in(part, "toolCallId")
        call = Called(message, place, call_id, text_in(part, "toolName"), part.get("input", part.get("args")), kind)
        self.calls[call_id] = call
        return call

    def _request(self, part: dict[str, Any], message: int, place: int) -> Entry:
        call_id = text_in(part, "toolCallId")
        call = self.calls.get(call_id)
        asks = not optional_flag(part, "isAutomatic")
        request_id = text_in(part, "approvalId")
        if call is None:
            return Requested(message, place, request_id, call_id, "", None, asks=asks)
        return Requested(message, place, request_id, call_id, call.tool, call.arguments, call.kind, asks=asks)


def _result(part: dict[str, Any], message: int, place: int) -> Entry:
    output = part.get("output", part.get("result"))
    value, how = output_of(output)
    tool = optional_text(part, "toolName")
    return Resulted(message, place, text_in(part, "toolCallId"), tool, value, how)


def output_of(output: Any) -> tuple[Any, Ending]:
    """Gives the value of a result's output, and how it came about."""
    kind = output.get("type") if type(output) is dict else None
    if kind == "execution-denied":
        return output.get("reason"), "denied"
    if kind in ("error-text", "error-json"):
        return output.get("value"), "failed"
    if kind in ("text", "json", "content"):
        return output.get("value"), "returned"
    return output, "unknown"
