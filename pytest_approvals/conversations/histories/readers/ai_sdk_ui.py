"""
UI messages of the AI SDK: `[{"role": "assistant", "parts": [{"type": "tool-pay", "state": ...}, ...]}, ...]`.

One part goes through the whole life of a call: its state says how far it came, its `approval` what was decided. Within
a step all calls come before all decisions and those before all results.

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
    StoredConversation,
    TextEntry,
    verdict_from_flag,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    is_object_list,
    iter_messages,
    optional_flag,
    optional_text,
    require_messages,
    require_object,
    require_text,
)

NAME = "ai_sdk_ui"

_PHASES: dict[type[ConversationEntry], int] = {DecisionEntry: 1, ResultEntry: 2}
"""In which order the entries of one step stand; all others come first."""


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    first = next(iter_messages(document), {})
    if type(first.get("role")) is not str:
        return False
    parts = first.get("parts")
    return is_object_list(parts) and "type" in parts[0]


def read(document: Any) -> StoredConversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    reader = _UiMessageReader(ConversationBuilder(NAME))
    path, messages = require_messages(document)
    reader.draft.messages(path, messages, reader.message, contents=("parts",))
    return reader.draft.conversation


class _UiMessageReader:
    """The messages of one document."""

    def __init__(self, draft: ConversationBuilder) -> None:
        self.draft = draft
        self.role = ""
        self.step: list[ConversationEntry] = []

    def message(self, item: dict[str, Any], number: int) -> None:
        """Reads one message."""
        self.role = require_text(item, "role")
        self.draft.contents(("parts",), item.get("parts"), number, self.part)
        self.draft.entries += self._ended_step()

    def part(self, part: dict[str, Any], message: int, place: int) -> Sequence[ConversationEntry]:
        """Reads one part; what a step says is held back until it ends."""
        kind = require_text(part, "type")
        if kind == "step-start":
            return self._ended_step()
        if kind == "text":
            self.step.append(TextEntry(message, place, self.role, require_text(part, "text")))
        elif kind == "dynamic-tool":
            self.step += _read_tool_part(part, require_text(part, "toolName"), message, place)
        elif kind.startswith("tool-"):
            self.step += _read_tool_part(part, kind.removeprefix("tool-"), message, place)
        else:
            self.step.append(OpaqueEntry(message, place, kind))
        return ()

    def _ended_step(self) -> list[ConversationEntry]:
        ended, self.step = self.step, []
        return sorted(ended, key=lambda entry: _PHASES.get(type(entry), 0))


def _read_tool_part(part: dict[str, Any], tool: str, message: int, place: int) -> list[ConversationEntry]:
    call_id, state = require_text(part, "toolCallId"), require_text(part, "state")
    kind: Kind = "hosted_mcp" if optional_flag(part, "providerExecuted") else "function"
    call = CallEntry(message, place, call_id, tool, part.get("input"), kind)
    found: list[ConversationEntry] = [call]
    if part.get("approval") is not None:
        found += _read_approval(require_object(part, "approval"), call)
    if state == "output-available":
        found.append(ResultEntry(message, place, call_id, tool, part.get("output"), "returned"))
    elif state == "output-error":
        found.append(ResultEntry(message, place, call_id, tool, part.get("errorText"), "failed"))
    elif state == "output-denied":
        reason = part["approval"].get("reason") if type(part.get("approval")) is dict else None
        found.append(ResultEntry(message, place, call_id, tool, reason, "denied"))
    return found


def _read_approval(approval: dict[str, Any], call: CallEntry) -> list[ConversationEntry]:
    request_id, place = require_text(approval, "id"), (call.message, call.content)
    asks = not optional_flag(approval, "isAutomatic")
    found: list[ConversationEntry] = [
        RequestEntry(*place, request_id, call.id, call.tool, call.arguments, call.kind, asks=asks)
    ]
    approved = optional_flag(approval, "approved")
    if approved is not None:
        verdict = verdict_from_flag(approved)
        found.append(DecisionEntry(*place, request_id, verdict, optional_text(approval, "reason")))
    return found
