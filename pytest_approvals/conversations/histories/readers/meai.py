"""Reader of Microsoft.Extensions.AI messages, and of .NET agent sessions.

Both generations of discriminators are read.

    [{"role", "contents": [{"$type": "toolApprovalRequest", ...}]}, ...]          messages
    {"messages": [...]}                                                           a stored history
    {"stateBag": {"InMemoryChatHistoryProvider": {"messages": [...]}, ...}}       a session
    {"storeState": {"messages": [...]}}                                           a thread, before there were sessions

A session also keeps requests and responses outside of its messages: those that were shown and wait for an answer.

Sources: dotnet/extensions#7299, microsoft/agent-framework#7111, microsoft/agent-framework#7862.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_approvals.agent_side.contract.types import Kind, Verdict
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
    JsonPath,
    OpaqueEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
    verdict_from_flag,
)
from pytest_approvals.conversations.histories.reader_kit import (
    ConversationBuilder,
    FormatReader,
    expected_error,
    is_object_list,
    iter_messages,
    optional_flag,
    optional_text,
    prefix_error,
    read_outcome,
    require_flag,
    require_object,
    require_text,
)
from pytest_approvals.errors import HistoryError, suggest_name
from pytest_approvals.simulation.meai.json_messages import OPAQUE_TYPES, known_types

NAME = "meai"

_APPROVAL_LISTS = {
    "_pendingApprovalRequests": (),
    "_autoApprovedFunctionCalls": (),
    "toolApprovalState": ("collectedApprovalResponses", "queuedApprovalRequests"),
}
"""The lists of approvals by key of a session's state bag; without names, the value is a list itself."""


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    if type(document) is dict and ("stateBag" in document or "storeState" in document):
        return any(True for _ in _iter_message_lists(document)) or None
    message = None
    for message in iter_messages(document):
        contents = message.get("contents")
        if is_object_list(contents):
            return "$type" in contents[0] or (not contents[0] or None)
        if "contents" not in message:
            return False
    return None if message else False


def read(document: Any) -> StoredConversation:
    """Read messages, or a session.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    reader = _SessionReader(ConversationBuilder(NAME))
    reader.builder.conversation.is_continuation = type(document) is dict and bool(document.get("conversationId"))
    for path, messages in _iter_message_lists(document):
        reader.builder.read_messages(path, messages, reader.message, contents=("contents",))
    for path, approvals in _iter_approval_lists(document):
        reader.builder.read_state_list(path, approvals, reader.approval)
    return reader.builder.conversation


def _iter_message_lists(document: Any) -> Iterator[tuple[JsonPath, list[Any]]]:
    """Yield the lists of messages of a document, each with its path."""
    if type(document) is list:
        yield (), document
    elif type(document) is dict:
        if type(document.get("messages")) is list:
            yield ("messages",), document["messages"]
        bag = document.get("stateBag")
        for name, held in bag.items() if type(bag) is dict else ():
            if type(held) is dict and type(held.get("messages")) is list:
                yield ("stateBag", name, "messages"), held["messages"]
        store = document.get("storeState")
        if type(store) is dict and type(store.get("messages")) is list:
            yield ("storeState", "messages"), store["messages"]


def _iter_approval_lists(document: Any) -> Iterator[tuple[JsonPath, list[Any]]]:
    """Yield the lists of approvals that a session holds outside of its messages."""
    bag = document.get("stateBag") if type(document) is dict else None
    if type(bag) is not dict:
        return
    for name, lists in _APPROVAL_LISTS.items():
        held = bag.get(name)
        if type(held) is list and not lists:
            yield ("stateBag", name), held
        elif type(held) is dict:
            for inner in lists:
                if type(held.get(inner)) is list:
                    yield ("stateBag", name, inner), held[inner]


class _SessionReader:
    """Reader of the contents of one document."""

    def __init__(self, builder: ConversationBuilder) -> None:
        self.builder = builder

    def message(self, message: dict[str, Any], number: int) -> None:
        """Read one message."""
        contents = message.get("contents")
        if not contents:
            return
        if type(contents) is not list:
            raise HistoryError("expected an array", at=("contents",))
        role = message.get("role")
        if type(role) is not str:
            role = optional_text(message, "role") or "user"
        add = self.builder.entries.append
        place = 0
        try:
            for content in contents:
                if type(content) is not dict:
                    raise HistoryError(expected_error("an object", content))
                kind = content.get("$type")
                if kind == "text":
                    text = content.get("text")
                    add(
                        TextEntry(
                            number, place, role, text if type(text) is str else optional_text(content, "text") or ""
                        )
                    )
                else:
                    read = _READERS.get(kind) if type(kind) is str else None
                    add(read(content, number, place) if read else self._opaque(content, number, place))
                place += 1
        except HistoryError as error:
            raise prefix_error(("contents", place), error) from None

    def approval(self, content: dict[str, Any], number: int) -> None:
        """Read one approval that a session holds outside of its messages."""
        read = _READERS.get(str(content.get("$type")))
        self.builder.entries.append(read(content, number, -1) if read else self._opaque(content, number, -1))

    def _opaque(self, content: dict[str, Any], message: int, place: int) -> ConversationEntry:
        kind = content.get("$type")
        if type(kind) is not str:
            if content:
                self._note(message, place, "has no $type, so nothing in it is understood")
            return OpaqueEntry(message, place, "")
        if kind not in OPAQUE_TYPES and kind not in known_types():
            self._note(message, place, f"$type {kind!r} is not known{suggest_name(kind, known_types())}")
        return OpaqueEntry(message, place, kind)

    def _note(self, message: int, place: int, what: str) -> None:
        self.builder.add_note(self.builder.conversation.path(ConversationEntry(message, place)), what)


def _read_function_call(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    flagged = optional_flag(item, "informationalOnly")
    call_id, tool = require_text(item, "callId"), require_text(item, "name")
    return CallEntry(message, place, call_id, tool, item.get("arguments"), "function", None, flagged)


def _read_server_call(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    tool, server = _server_tool_names(item)
    return CallEntry(
        message, place, require_text(item, "callId"), tool, item.get("arguments"), kind="hosted_mcp", server=server
    )


def _read_other_call(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    tool = item["$type"].removesuffix("Call")
    return CallEntry(message, place, require_text(item, "callId"), tool, item.get("inputs"), kind="hosted_mcp")


def _read_function_result(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    value = item.get("result")
    return ResultEntry(message, place, require_text(item, "callId"), None, value, read_outcome(value))


def _read_other_result(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    outputs = item.get("outputs", item.get("output"))
    return ResultEntry(message, place, require_text(item, "callId"), None, outputs, outcome="returned")


def _read_request(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    call = require_object(item, "functionCall" if "functionCall" in item else "toolCall")
    request_id = require_text(item, "requestId" if "requestId" in item else "id")
    kind, tool, server = _call_facts(call)
    return RequestEntry(
        message,
        place,
        request_id,
        None if kind == "hosted_mcp" else require_text(call, "callId"),
        tool,
        call.get("arguments"),
        kind,
        server,
        optional_flag(call, "informationalOnly"),
        None,
        True,
        optional_flag(item, "requiresConfirmation") is not False,
    )


def _read_response(item: dict[str, Any], message: int, place: int) -> ConversationEntry:
    request_id = require_text(item, "requestId" if "requestId" in item else "id")
    verdict: Verdict = verdict_from_flag(require_flag(item, "approved"))
    name = "functionCall" if "functionCall" in item else "toolCall"
    reason = optional_text(item, "reason")
    if name not in item:  # the earlier generation did not repeat a hosted call
        return DecisionEntry(message, place, request_id, verdict, reason)
    call = require_object(item, name)
    kind, tool, _ = _call_facts(call)
    call_id = None if kind == "hosted_mcp" else require_text(call, "callId")
    flagged = optional_flag(call, "informationalOnly")
    return DecisionEntry(
        message, place, request_id, verdict, reason, call_id, tool, call.get("arguments") or {}, flagged
    )


def _call_facts(call: dict[str, Any]) -> tuple[Kind, str, str | None]:
    """Return kind, tool and server of the call in a request or a response."""
    kind = call.get("$type", "functionCall" if "name" in call else "mcpServerToolCall")
    if kind == "functionCall":
        return "function", require_text(call, "name"), None
    if kind == "mcpServerToolCall":
        return ("hosted_mcp", *_server_tool_names(call))
    return "hosted_mcp", optional_text(call, "name") or str(kind).removesuffix("Call"), None


def _server_tool_names(call: dict[str, Any]) -> tuple[str, str | None]:
    return require_text(call, "name" if "name" in call else "toolName"), optional_text(call, "serverName")


_READERS: dict[str, Callable[[dict[str, Any], int, int], ConversationEntry]] = {
    "functionCall": _read_function_call,
    "functionResult": _read_function_result,
    "toolApprovalRequest": _read_request,
    "toolApprovalResponse": _read_response,
    "functionApprovalRequest": _read_request,
    "functionApprovalResponse": _read_response,
    "mcpServerToolApprovalRequest": _read_request,
    "mcpServerToolApprovalResponse": _read_response,
    "mcpServerToolCall": _read_server_call,
    "mcpServerToolResult": _read_other_result,
    "codeInterpreterToolCall": _read_other_call,
    "codeInterpreterToolResult": _read_other_result,
    "imageGenerationToolCall": _read_other_call,
    "imageGenerationToolResult": _read_other_result,
    "webSearchToolCall": _read_other_call,
    "webSearchToolResult": _read_other_result,
    "toolCall": _read_other_call,
    "toolResult": _read_other_result,
}


READERS = {NAME: FormatReader(matches, read)}
