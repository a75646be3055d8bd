"""
UI messages of the AI SDK: `[{"role": "assistant", "parts": [{"type": "tool-pay", "state": ...}, ...]}, ...]`.

One part goes through the whole life of a call: its state says how far it came, its `approval` what was decided. Within
a step all calls come before all decisions and those before all results.

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
    Entry,
    Opaque,
    Requested,
    Resulted,
    Said,
    verdict_of,
)
from pytest_approvals.histories.draft import Draft
from pytest_approvals.histories.shapes import (
    is_objects,
    listed_messages,
    messages_in,
    object_in,
    optional_flag,
    optional_text,
    text_in,
)

NAME = "ai_sdk_ui"

_PHASES: dict[type[Entry], int] = {Decided: 1, Resulted: 2}
"""In which order the entries of one step stand; all others come first."""


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    first = next(messages_in(document), {})
    if type(first.get("role")) is not str:
        return False
    parts = first.get("parts")
    return is_objects(parts) and "type" in parts[0]


def read(document: Any) -> Conversation:
    """
    Reads messages.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    reader = _Reader(Draft(NAME))
    path, messages = listed_messages(document)
    reader.draft.messages(path, messages, reader.message, contents=("parts",))
    return reader.draft.conversation


class _Reader:
    """The messages of one document."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.role = ""
        self.step: list[Entry] = []

    def message(self, item: dict[str, Any], number: int) -> None:
        """Reads one message."""
        self.role = text_in(item, "role")
        self.draft.contents(("parts",), item.get("parts"), number, self.part)
        self.draft.entries += self._ended_step()

    def part(self, part: dict[str, Any], message: int, place: int) -> Sequence[Entry]:
        """Reads one part; what a step says is held back until it ends."""
        kind = text_in(part, "type")
        if kind == "step-start":
            return self._ended_step()
        if kind == "text":
            self.step.append(Said(message, place, self.role, text_in(part, "text")))
        elif kind == "dynamic-tool":
            self.step += _tool(part, text_in(part, "toolName"), message, place)
        elif kind.startswith("tool-"):
            self.step += _tool(part, kind.removeprefix("tool-"), message, place)
        else:
            self.step.append(Opaque(message, place, kind))
        return ()

    def _ended_step(self) -> list[Entry]:
        ended, self.step = self.step, []
        return sorted(ended, key=lambda entry: _PHASES.get(type(entry), 0))


def _tool(part: dict[str, Any], tool: str, message: int, place: int) -> list[Entry]:
    call_id, state = text_in(part, "toolCallId"), text_in(part, "state")
    kind: Kind = "hosted_mcp" if optional_flag(part, "providerExecuted") else "function"
    call = Called(message, place, call_id, tool, part.get("input"), kind)
    found: list[Entry] = [call]
    if part.get("approval") is not None:
        found += _approval(object_in(part, "approval"), call)
    if state == "output-available":
        found.append(Resulted(message, place, call_id, tool, part.get("output"), "returned"))
    elif state == "output-error":
        found.append(Resulted(message, place, call_id, tool, part.get("errorText"), "failed"))
    elif state == "output-denied":
        reason = part["approval"].get("reason") if type(part.get("approval")) is dict else None
        found.append(Resulted(message, place, call_id, tool, reason, "denied"))
    return found


def _approval(approval: dict[str, Any], call: Called) -> list[Entry]:
    request_id, place = text_in(approval, "id"), (call.message, call.content)
    asks = not optional_flag(approval, "isAutomatic")
    found: list[Entry] = [Requested(*place, request_id, call.id, call.tool, call.arguments, call.kind, asks=asks)]
    approved = optional_flag(approval, "approved")
    if approved is not None:
        verdict = verdict_of(approved)
        found.append(Decided(*place, request_id, verdict, optional_text(approval, "reason")))
    return found
