"""
Items of OpenAI Responses: a conversation's, a request's input, a response's output.

    [{"type": "function_call", ...}, ...]        {"input": [...]}, {"output": [...]}, {"data": [...]}

The API keeps no approvals of functions; those of hosted MCP calls are items. An item is a message here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

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
    flag_in,
    is_objects,
    kind_in,
    listed_messages,
    messages_in,
    optional_text,
    text_in,
)
from pytest_approvals.protocols.text import text_of

NAME = "responses"

_LISTS = ("input", "output", "data")
_TEXTS = frozenset({"input_text", "output_text", "input_image", "input_file", "refusal"})
_TOOLS_OF_THE_API = frozenset({"computer_call", "local_shell_call", "shell_call", "apply_patch_call"})


def recognises(document: Any) -> bool | None:
    """Says whether it is of this format; None where it only may be."""
    if type(document) is dict:
        held = (document.get(name) for name in _LISTS)
        return any(bool(_known(messages_in(items))) for items in held)
    return _known(messages_in(document))


def _known(items: Iterator[dict[str, Any]]) -> bool | None:
    item: dict[str, Any] = {}
    for item in items:
        kind = kind_in(item)
        if kind in _READERS or kind == "item_reference":
            return True
        if kind is not None and kind != "message":
            continue
        content = item.get("content")
        if "role" not in item or "contents" in item or "parts" in item or "tool_calls" in item:
            return False
        if is_objects(content) and kind_in(content[0]) != "text":
            return kind_in(content[0]) in _TEXTS
    return None if "role" in item else False


def read(document: Any) -> Conversation:
    """
    Reads a list of items, or what holds one.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    draft = Draft(NAME, tells_decisions=False)

    def item(each: dict[str, Any], number: int) -> None:
        draft.entries += entries_of(each, number)

    if type(document) is dict and any(type(document.get(name)) is list for name in _LISTS):
        kept = document.get("previous_response_id") or document.get("conversation")
        draft.conversation.begins_elsewhere = bool(kept)
        for name in _LISTS:
            if type(document.get(name)) is list:
                draft.messages((name,), document[name], item)
    else:
        draft.messages(*listed_messages(document), item)
    return draft.conversation


def entries_of(item: dict[str, Any], number: int) -> Sequence[Entry]:
    """
    Gives what one item says.

    Errors:
        HistoryError: Something has the wrong shape.
    """
    kind = optional_text(item, "type") or "message"
    if kind == "message":
        return (Said(number, -1, text_in(item, "role"), text_of(item.get("content"))),)
    read = _READERS.get(kind)
    return read(item, number) if read is not None else (Opaque(number, -1, kind),)


def _call(item: dict[str, Any], number: int) -> Sequence[Entry]:
    return (Called(number, -1, text_in(item, "call_id"), text_in(item, "name"), item.get("arguments")),)


def _custom_call(item: dict[str, Any], number: int) -> Sequence[Entry]:
    return (Called(number, -1, text_in(item, "call_id"), text_in(item, "name"), {"input": item.get("input")}),)


def _call_of_the_api(item: dict[str, Any], number: int) -> Sequence[Entry]:
    arguments = item.get("action") or item.get("operation") or {}
    return (Called(number, -1, text_in(item, "call_id"), item["type"].removesuffix("_call"), arguments),)


def _result(item: dict[str, Any], number: int) -> Sequence[Entry]:
    return (Resulted(number, -1, text_in(item, "call_id"), None, item.get("output")),)


def _request(item: dict[str, Any], number: int) -> Sequence[Entry]:
    tool, server = text_in(item, "name"), optional_text(item, "server_label")
    return (
        Requested(
            number,
            -1,
            text_in(item, "id"),
            None,
            tool,
            item.get("arguments"),
            "hosted_mcp",
            server,
            stands_for_call=True,
        ),
    )


def _response(item: dict[str, Any], number: int) -> Sequence[Entry]:
    verdict = verdict_of(flag_in(item, "approve"))
    request = text_in(item, "approval_request_id")
    return (Decided(number, -1, request, verdict, optional_text(item, "reason")),)


def _hosted_call(item: dict[str, Any], number: int) -> Sequence[Entry]:
    """The provider's report: the call, and what it gave, under the id of its request where there was one."""
    call_id = optional_text(item, "approval_request_id") or text_in(item, "id")
    tool, server = text_in(item, "name"), optional_text(item, "server_label")
    call = Called(number, -1, call_id, tool, item.get("arguments"), "hosted_mcp", server)
    if item.get("error") is not None:
        return call, Resulted(number, -1, call_id, tool, item["error"], "failed")
    if item.get("output") is None:
        return (call,)
    return call, Resulted(number, -1, call_id, tool, item["output"], "returned")


_READERS: dict[str, Callable[[dict[str, Any], int], Sequence[Entry]]] = {
    "function_call": _call,
    "function_call_output": _result,
    "custom_tool_call": _custom_call,
    "custom_tool_call_output": _result,
    "mcp_approval_request": _request,
    "mcp_approval_response": _response,
    "mcp_call": _hosted_call,
    **dict.fromkeys(_TOOLS_OF_THE_API, _call_of_the_api),
    **dict.fromkeys((f"{name}_output" for name in _TOOLS_OF_THE_API), _result),
}
