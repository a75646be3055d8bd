"""Reader of the AI SDK: its model messages and its UI messages.

    [{"role": "assistant", "content": [{"type": "tool-approval-request", ...}]}, ...]     model messages
    [{"role": "assistant", "parts": [{"type": "tool-pay", "state": ...}, ...]}, ...]      UI messages

One part of a UI message goes through the whole life of a call: its state says how far it came, its `approval` what was
decided. Within a step all calls come before all decisions and those before all results.

Sources: the types of `ai` 6 and 7.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_approvals.agent_side.contract.types import Kind, Verdict
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
    FormatReader,
    discriminator_of,
    is_object_list,
    iter_messages,
    optional_flag,
    optional_text,
    require_messages,
    require_object,
    require_text,
)

_DISTINCTIVE_TYPES = frozenset({"tool-call", "tool-result", "tool-approval-request", "tool-approval-response"})


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
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
    """Read model messages.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    reader = _MessageReader(ConversationBuilder("ai_sdk", has_whole_responses=True))
    path, messages = require_messages(document)
    reader.builder.read_messages(path, messages, reader.message, contents=("content",))
    return reader.builder.conversation


class _MessageReader:
    """Reader of model messages; a request names its call only by id."""

    def __init__(self, builder: ConversationBuilder) -> None:
        self.builder = builder
        self.calls: dict[str, CallEntry] = {}
        self.role = ""

    def message(self, item: dict[str, Any], number: int) -> None:
        """Read one message."""
        self.role, content = require_text(item, "role"), item.get("content")
        if type(content) is str:
            self.builder.entries.append(TextEntry(number, -1, self.role, content))
        else:
            self.builder.read_contents(("content",), content, number, self.part)

    def part(self, part: dict[str, Any], message: int, place: int) -> ConversationEntry:
        """Read one part."""
        match part.get("type"):
            case "text":
                return TextEntry(message, place, self.role, require_text(part, "text"))
            case "tool-call":
                return self._call(part, message, place)
            case "tool-approval-request":
                return self._request(part, message, place)
            case "tool-approval-response":
                return _read_response(part, message, place)
            case "tool-result":
                return _read_result(part, message, place)
            case kind:
                return OpaqueEntry(message, place, str(kind))

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
        needs_decision = not optional_flag(part, "isAutomatic")
        request_id = require_text(part, "approvalId")
        if call is None:
            return RequestEntry(message, place, request_id, call_id, "", None, needs_decision=needs_decision)
        return RequestEntry(
            message, place, request_id, call_id, call.tool, call.arguments, call.kind, needs_decision=needs_decision
        )


def _read_result(part: dict[str, Any], message: int, place: int) -> ConversationEntry:
    output = part.get("output", part.get("result"))
    value, outcome = parse_output(output)
    tool = optional_text(part, "toolName")
    return ResultEntry(message, place, require_text(part, "toolCallId"), tool, value, outcome)


def parse_output(output: Any) -> tuple[Any, ResultOutcome]:
    """Return the value of a result's output, and its outcome."""
    kind = output.get("type") if type(output) is dict else None
    if kind == "execution-denied":
        return output.get("reason"), "denied"
    if kind in ("error-text", "error-json"):
        return output.get("value"), "failed"
    if kind in ("text", "json", "content"):
        return output.get("value"), "returned"
    return output, "unknown"


# --- UI messages ---

DYNAMIC_TOOL = "dynamic-tool"
"""The type of parts of tools that are not known before the run."""

_PHASES: dict[type[ConversationEntry], int] = {DecisionEntry: 1, ResultEntry: 2}
"""The order of the entries of one step; all others come first."""


def matches_ui(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    # A message may have no parts: one that was stopped before it said anything.
    first = next((each for each in iter_messages(document) if each.get("parts") != []), {})
    if type(first.get("role")) is not str:
        return False
    parts = first.get("parts")
    return is_object_list(parts) and "type" in parts[0]


def read_ui(document: Any) -> StoredConversation:
    """Read UI messages.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    reader = _UiMessageReader(ConversationBuilder("ai_sdk_ui"))
    path, messages = require_messages(document)
    reader.builder.read_messages(path, messages, reader.message, contents=("parts",))
    return reader.builder.conversation


class _UiMessageReader:
    """Reader of UI messages."""

    def __init__(self, builder: ConversationBuilder) -> None:
        self.builder = builder
        self.role = ""
        self.step: list[ConversationEntry] = []

    def message(self, item: dict[str, Any], number: int) -> None:
        """Read one message."""
        self.role = require_text(item, "role")
        self.builder.read_groups(("parts",), item.get("parts"), number, self.part)
        self.builder.entries += self._end_step()

    def part(self, part: dict[str, Any], message: int, place: int) -> Sequence[ConversationEntry]:
        """Read one part; the entries of a step are held back until it ends."""
        kind = require_text(part, "type")
        if kind == "step-start":
            return self._end_step()
        if kind == "text":
            self.step.append(TextEntry(message, place, self.role, require_text(part, "text")))
        elif kind == DYNAMIC_TOOL:
            self.step += _read_tool_part(part, self._name_dynamic_tool(part, message, place), message, place)
        elif kind == "tool-approval-response":
            self.step.append(_read_response(part, message, place))
        elif kind == "tool-invocation":
            # Of AI SDK 4, and of what speaks its protocol.
            held = part["toolInvocation"] if type(part.get("toolInvocation")) is dict else part
            self.step += _read_tool_part(_modernize(held), require_text(held, "toolName"), message, place)
        elif kind.startswith("tool-") and "toolCallId" in part and kind != "tool-approval-request":
            self.step += _read_tool_part(part, kind.removeprefix("tool-"), message, place)
        else:
            self.step.append(OpaqueEntry(message, place, kind))
        return ()

    def _name_dynamic_tool(self, part: dict[str, Any], message: int, place: int) -> str:
        """Return the name of a dynamic tool; a part that lost it is still a call, with its approval and its result."""
        name = optional_text(part, "toolName")
        if name is None:
            path = self.builder.conversation.path(OpaqueEntry(message, place, DYNAMIC_TOOL))
            self.builder.add_note(path, f"a dynamic tool has no toolName, and is called {DYNAMIC_TOOL!r} here")
        return name or DYNAMIC_TOOL

    def _end_step(self) -> list[ConversationEntry]:
        ended, self.step = self.step, []
        # The sort is stable: entries of one phase stay in the order of their parts.
        return sorted(ended, key=lambda entry: _PHASES.get(type(entry), 0))


def _read_response(part: dict[str, Any], message: int, place: int) -> DecisionEntry:
    """Read a decision in a part of its own, which clients send among UI messages, too."""
    verdict = _read_verdict(part.get("approved"))
    return DecisionEntry(message, place, require_text(part, "approvalId"), verdict, optional_text(part, "reason"))


def _read_verdict(approved: Any) -> Verdict:
    """Return a verdict; the library stores whatever a client has sent."""
    return verdict_from_flag(approved) if type(approved) is bool else "raw"


def _modernize(part: dict[str, Any]) -> dict[str, Any]:
    """Return an invocation of AI SDK 4 with the names that parts of tools have now."""
    state = "output-available" if part.get("state") == "result" else part.get("state")
    output = part["result"] if "result" in part else part.get("output")
    return {**part, "state": state, "input": part.get("input", part.get("args")), "output": output}


def _read_tool_part(part: dict[str, Any], tool: str, message: int, place: int) -> list[ConversationEntry]:
    call_id, state = require_text(part, "toolCallId"), require_text(part, "state")
    kind: Kind = "hosted_mcp" if optional_flag(part, "providerExecuted") else "function"
    call = CallEntry(message, place, call_id, tool, part.get("input"), kind)
    entries: list[ConversationEntry] = [call]
    if part.get("approval") is not None:
        entries += _read_approval(require_object(part, "approval"), call)
    if state == "output-available":
        entries.append(ResultEntry(message, place, call_id, tool, part.get("output"), "returned"))
    elif state == "output-error":
        entries.append(ResultEntry(message, place, call_id, tool, part.get("errorText"), "failed"))
    elif state == "output-denied":
        reason = part["approval"].get("reason") if type(part.get("approval")) is dict else None
        entries.append(ResultEntry(message, place, call_id, tool, reason, "denied"))
    return entries


def _read_approval(approval: dict[str, Any], call: CallEntry) -> list[ConversationEntry]:
    request_id, place = require_text(approval, "id"), (call.message, call.content)
    needs_decision = not optional_flag(approval, "isAutomatic")
    entries: list[ConversationEntry] = [
        RequestEntry(*place, request_id, call.id, call.tool, call.arguments, call.kind, needs_decision=needs_decision)
    ]
    if approval.get("approved") is not None:
        verdict = _read_verdict(approval["approved"])
        entries.append(DecisionEntry(*place, request_id, verdict, optional_text(approval, "reason")))
    return entries


READERS = {"ai_sdk": FormatReader(matches, read), "ai_sdk_ui": FormatReader(matches_ui, read_ui)}
