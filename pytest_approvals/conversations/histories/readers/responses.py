"""Reader of OpenAI Responses: items of a conversation, a request or a response.

    [{"type": "function_call", ...}, ...]        {"input": [...]}, {"output": [...]}, {"data": [...]}

The API keeps no approvals of functions; those of hosted MCP calls are items. An item is a message here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

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
    FormatReader,
    discriminator_of,
    is_object_list,
    iter_messages,
    optional_text,
    require_flag,
    require_messages,
    require_text,
    unmarked_outcome,
)
from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.protocols.text import text_of

NAME = "responses"

_LIST_FIELDS = ("input", "output", "data")
_TEXT_TYPES = frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"})
_API_TOOL_CALLS = frozenset({"computer_call", "local_shell_call", "shell_call", "apply_patch_call"})


def matches(document: Any) -> bool | None:
    """Return whether it is of this format; None if it only may be."""
    if type(document) is dict:
        held = (document.get(name) for name in _LIST_FIELDS)
        return any(bool(_has_known_items(iter_messages(items))) for items in held)
    return _has_known_items(iter_messages(document))


def _has_known_items(items: Iterator[dict[str, Any]]) -> bool | None:
    item: dict[str, Any] = {}
    for item in items:
        kind = discriminator_of(item)
        if kind in _READERS or kind == "item_reference":
            return True
        if kind is not None and kind != "message":
            continue
        content = item.get("content")
        if "role" not in item or "contents" in item or "parts" in item or "tool_calls" in item:
            return False
        if is_object_list(content) and discriminator_of(content[0]) != "text":
            return discriminator_of(content[0]) in _TEXT_TYPES
    return None if "role" in item else False


def read(document: Any) -> StoredConversation:
    """Read a list of items, or an object with one.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    builder = ConversationBuilder(NAME, shows_decisions=False)

    entries = builder.entries

    def add_item(item: dict[str, Any], number: int) -> None:
        entries.extend(read_item(item, number))

    if type(document) is dict and any(type(document.get(name)) is list for name in _LIST_FIELDS):
        previous = document.get("previous_response_id") or document.get("conversation")
        builder.conversation.is_continuation = bool(previous)
        for name in _LIST_FIELDS:
            if type(document.get(name)) is list:
                builder.read_messages((name,), document[name], add_item)
    else:
        builder.read_messages(*require_messages(document), add_item)
    return builder.conversation


def read_item(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    """Return the entries of one item.

    Raises:
        HistoryError: Something has the wrong shape.
    """
    kind = item.get("type")
    if type(kind) is not str or not kind:
        kind = optional_text(item, "type") or "message"
    if kind == "message":
        content = item.get("content")
        text = content if type(content) is str else text_of(content)
        return (TextEntry(number, -1, require_text(item, "role"), text),)
    read = _READERS.get(kind)
    return read(item, number) if read is not None else (OpaqueEntry(number, -1, kind),)


def _read_call(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    return (CallEntry(number, -1, require_text(item, "call_id"), require_text(item, "name"), item.get("arguments")),)


def _read_custom_call(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    return (
        CallEntry(number, -1, require_text(item, "call_id"), require_text(item, "name"), {"input": item.get("input")}),
    )


def _read_api_call(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    arguments = item.get("action") or item.get("operation") or {}
    return (CallEntry(number, -1, require_text(item, "call_id"), item["type"].removesuffix("_call"), arguments),)


def _read_result(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    output = item.get("output")
    target = _read_hand_off(output) if type(output) is str and output.startswith("{") else None
    call_id, outcome = require_text(item, "call_id"), unmarked_outcome(output)
    return (ResultEntry(number, -1, call_id, None, output, outcome, hands_over_to=target),)


def _read_hand_off(output: str) -> str | None:
    """Return the name of the agent in what OpenAI Agents stores as the result of a hand-off."""
    value = parse_arguments(output)
    name = value.get("assistant") if type(value) is dict and len(value) == 1 else None
    return name if type(name) is str and name else None


def _read_request(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    tool, server = require_text(item, "name"), optional_text(item, "server_label")
    return (
        RequestEntry(
            number,
            -1,
            require_text(item, "id"),
            None,
            tool,
            item.get("arguments"),
            "hosted_mcp",
            server,
            replaces_call=True,
        ),
    )


def _read_response(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    verdict = verdict_from_flag(require_flag(item, "approve"))
    request = require_text(item, "approval_request_id")
    return (DecisionEntry(number, -1, request, verdict, optional_text(item, "reason")),)


def _read_hosted_call(item: dict[str, Any], number: int) -> Sequence[ConversationEntry]:
    """Read the provider's report: the call and its result, under the id of its request if there was one."""
    call_id = optional_text(item, "approval_request_id") or require_text(item, "id")
    tool, server = require_text(item, "name"), optional_text(item, "server_label")
    call = CallEntry(number, -1, call_id, tool, item.get("arguments"), "hosted_mcp", server)
    if item.get("error") is not None:
        return call, ResultEntry(number, -1, call_id, tool, item["error"], "failed")
    if item.get("output") is None:
        return (call,)
    return call, ResultEntry(number, -1, call_id, tool, item["output"], "returned")


_READERS: dict[str, Callable[[dict[str, Any], int], Sequence[ConversationEntry]]] = {
    "function_call": _read_call,
    "function_call_output": _read_result,
    "custom_tool_call": _read_custom_call,
    "custom_tool_call_output": _read_result,
    "mcp_approval_request": _read_request,
    "mcp_approval_response": _read_response,
    "mcp_call": _read_hosted_call,
    **dict.fromkeys(_API_TOOL_CALLS, _read_api_call),
    **dict.fromkeys((f"{name}_output" for name in _API_TOOL_CALLS), _read_result),
}


READERS = {NAME: FormatReader(matches, read)}
