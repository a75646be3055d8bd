"""
Messages of Microsoft.Extensions.AI, of both generations of discriminators, and .NET agent sessions that hold them.

    [{"role", "contents": [{"$type": "toolApprovalRequest", ...}]}, ...]          messages
    {"messages": [...]}                                                           a stored history
    {"stateBag": {"InMemoryChatHistoryProvider": {"messages": [...]}, ...}}       a session
    {"storeState": {"messages": [...]}}                                           a thread, before there were sessions

A session also keeps requests and responses beside its messages: what was shown, and waits to be answered.

Sources: dotnet/extensions#7299, microsoft/agent-framework#7111, microsoft/agent-framework#7862.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pytest_approvals.agent_side.neutral import Kind, Verdict
from pytest_approvals.errors import HistoryError, nearest
from pytest_approvals.histories.conversation import (
    Called,
    Conversation,
    Decided,
    Entry,
    Opaque,
    Path,
    Requested,
    Resulted,
    Said,
    verdict_of,
)
from pytest_approvals.histories.draft import Draft, within
from pytest_approvals.histories.shapes import (
    flag_in,
    is_objects,
    messages_in,
    object_in,
    optional_flag,
    optional_text,
    text_in,
    word_of,
)
from pytest_approvals.simulation.meai.notations import OPAQUE, known_types

NAME = "meai"

_BESIDE = {
    "_pendingApprovalRequests": (),
    "_autoApprovedFunctionCalls": (),
    "toolApprovalState": ("collectedApprovalResponses", "queuedApprovalRequests"),
}
"""By key of a session's state bag: the lists of approvals that it holds; without a name it is a list itself."""


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    if type(document) is dict and ("stateBag" in document or "storeState" in document):
        return any(True for _ in _histories(document)) or None
    message = None
    for message in messages_in(document):
        contents = message.get("contents")
        if is_objects(contents):
            return "$type" in contents[0] or (not contents[0] or None)
        if "contents" not in message:
            return False
    return None if message else False


def read(document: Any) -> Conversation:
    """
    Reads messages, or a session.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    reader = _Reader(Draft(NAME))
    reader.draft.conversation.begins_elsewhere = type(document) is dict and bool(document.get("conversationId"))
    for path, messages in _histories(document):
        reader.draft.messages(path, messages, reader.message, contents=("contents",))
    for path, approvals in _beside(document):
        reader.draft.beside(path, approvals, reader.approval)
    return reader.draft.conversation


def _histories(document: Any) -> Iterator[tuple[Path, list[Any]]]:
    """Gives the lists of messages that a document holds, each with its place."""
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


def _beside(document: Any) -> Iterator[tuple[Path, list[Any]]]:
    """Gives the lists of approvals that a session holds beside its messages."""
    bag = document.get("stateBag") if type(document) is dict else None
    if type(bag) is not dict:
        return
    for name, lists in _BESIDE.items():
        held = bag.get(name)
        if type(held) is list and not lists:
            yield ("stateBag", name), held
        elif type(held) is dict:
            for inner in lists:
                if type(held.get(inner)) is list:
                    yield ("stateBag", name, inner), held[inner]


class _Reader:
    """The messages of one document."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft

    def message(self, message: dict[str, Any], number: int) -> None:
        """Reads one message."""
        contents = message.get("contents")
        if not contents:
            return
        if type(contents) is not list:
            raise HistoryError("must be a list", at=("contents",))
        role = message.get("role")
        if type(role) is not str:
            role = optional_text(message, "role") or "user"
        add = self.draft.entries.append
        place = 0
        try:
            for content in contents:
                if type(content) is not dict:
                    raise HistoryError(f"must be an object, and is {word_of(content)}")
                kind = content.get("$type")
                if kind == "text":
                    text = content.get("text")
                    add(Said(number, place, role, text if type(text) is str else optional_text(content, "text") or ""))
                else:
                    read = _READERS.get(kind) if type(kind) is str else None
                    add(read(content, number, place) if read else self._opaque(content, number, place))
                place += 1
        except HistoryError as mistake:
            raise within(("contents", place), mistake) from None

    def approval(self, content: dict[str, Any], number: int) -> None:
        """Reads one approval that a session holds beside its messages."""
        read = _READERS.get(str(content.get("$type")))
        self.draft.entries.append(read(content, number, -1) if read else self._opaque(content, number, -1))

    def _opaque(self, content: dict[str, Any], message: int, place: int) -> Entry:
        kind = content.get("$type")
        if type(kind) is not str:
            if content:
                self._note(message, place, "has no $type, so nothing in it is understood")
            return Opaque(message, place, "")
        if kind not in OPAQUE and kind not in known_types():
            self._note(message, place, f"$type {kind!r} is not known{nearest(kind, known_types())}")
        return Opaque(message, place, kind)

    def _note(self, message: int, place: int, what: str) -> None:
        self.draft.note(self.draft.conversation.path(Entry(message, place)), what)


def _function_call(item: dict[str, Any], message: int, place: int) -> Entry:
    flagged = optional_flag(item, "informationalOnly")
    call_id, tool = text_in(item, "callId"), text_in(item, "name")
    return Called(message, place, call_id, tool, item.get("arguments"), "function", None, flagged)


def _server_call(item: dict[str, Any], message: int, place: int) -> Entry:
    tool, server = _server_tool(item)
    return Called(
        message, place, text_in(item, "callId"), tool, item.get("arguments"), kind="hosted_mcp", server=server
    )


def _other_call(item: dict[str, Any], message: int, place: int) -> Entry:
    tool = item["$type"].removesuffix("Call")
    return Called(message, place, text_in(item, "callId"), tool, item.get("inputs"), kind="hosted_mcp")


def _function_result(item: dict[str, Any], message: int, place: int) -> Entry:
    return Resulted(message, place, text_in(item, "callId"), None, item.get("result"))


def _other_result(item: dict[str, Any], message: int, place: int) -> Entry:
    outputs = item.get("outputs", item.get("output"))
    return Resulted(message, place, text_in(item, "callId"), None, outputs, how="returned")


def _request(item: dict[str, Any], message: int, place: int) -> Entry:
    call = object_in(item, "functionCall" if "functionCall" in item else "toolCall")
    request_id = text_in(item, "requestId" if "requestId" in item else "id")
    kind, tool, server = _called(call)
    return Requested(
        message,
        place,
        request_id,
        None if kind == "hosted_mcp" else text_in(call, "callId"),
        tool,
        call.get("arguments"),
        kind,
        server,
        optional_flag(call, "informationalOnly"),
        None,
        True,
        optional_flag(item, "requiresConfirmation") is not False,
    )


def _response(item: dict[str, Any], message: int, place: int) -> Entry:
    request_id = text_in(item, "requestId" if "requestId" in item else "id")
    verdict: Verdict = verdict_of(flag_in(item, "approved"))
    name = "functionCall" if "functionCall" in item else "toolCall"
    reason = optional_text(item, "reason")
    if name not in item:  # the earlier generation did not repeat the call of a server
        return Decided(message, place, request_id, verdict, reason)
    call = object_in(item, name)
    kind, tool, _ = _called(call)
    call_id = None if kind == "hosted_mcp" else text_in(call, "callId")
    flagged = optional_flag(call, "informationalOnly")
    return Decided(message, place, request_id, verdict, reason, call_id, tool, call.get("arguments") or {}, flagged)


def _called(call: dict[str, Any]) -> tuple[Kind, str, str | None]:
    """Gives kind, tool and server of the call in a request or a response."""
    kind = call.get("$type", "functionCall" if "name" in call else "mcpServerToolCall")
    if kind == "functionCall":
        return "function", text_in(call, "name"), None
    if kind == "mcpServerToolCall":
        return ("hosted_mcp", *_server_tool(call))
    return "hosted_mcp", optional_text(call, "name") or str(kind).removesuffix("Call"), None


def _server_tool(call: dict[str, Any]) -> tuple[str, str | None]:
    return text_in(call, "name" if "name" in call else "toolName"), optional_text(call, "serverName")


_READERS: dict[str, Callable[[dict[str, Any], int, int], Entry]] = {
    "functionCall": _function_call,
    "functionResult": _function_result,
    "toolApprovalRequest": _request,
    "toolApprovalResponse": _response,
    "functionApprovalRequest": _request,
    "functionApprovalResponse": _response,
    "mcpServerToolApprovalRequest": _request,
    "mcpServerToolApprovalResponse": _response,
    "mcpServerToolCall": _server_call,
    "mcpServerToolResult": _other_result,
    "codeInterpreterToolCall": _other_call,
    "codeInterpreterToolResult": _other_result,
    "imageGenerationToolCall": _other_call,
    "imageGenerationToolResult": _other_result,
    "webSearchToolCall": _other_call,
    "webSearchToolResult": _other_result,
    "toolCall": _other_call,
    "toolResult": _other_result,
}
