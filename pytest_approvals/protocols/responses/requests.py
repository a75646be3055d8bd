"""Responses requests: errors of their bodies, and their items as neutral items.

A request is checked together with what the provider stored before it. The rules are those of OpenAI's API reference;
the sentences are those that the API is quoted with in the issue trackers of its clients. Rules about the conversation
are in `input_rules.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.provider_errors import (
    BodyRules,
    ProviderError,
    invalid_names,
    invalid_type,
    invalid_value,
    missing_parameter,
)
from pytest_approvals.protocols.responses.stored_items import (
    ItemObject,
    ProviderStore,
    ResponsesRequest,
    is_reference,
    resolve_request,
)
from pytest_approvals.protocols.text import (
    instruction_items,
    is_json_format,
    list_objects,
    object_or_empty,
    optional_text,
    parse_object,
    property_names,
    text_of,
    to_sorted_json,
)

TYPES = (
    "message",
    "function_call",
    "function_call_output",
    "item_reference",
    "reasoning",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "custom_tool_call",
    "custom_tool_call_output",
    "computer_call",
    "computer_call_output",
    "file_search_call",
    "web_search_call",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "compaction",
)

_REQUIRED = {
    "function_call": ("name",),
    "function_call_output": ("call_id", "output"),
    "mcp_approval_request": ("id", "name", "arguments", "server_label"),
    "mcp_approval_response": ("approval_request_id", "approve"),
    "item_reference": ("id",),
}

_PREFIXES = {"function_call": "fc", "message of assistant": "msg", "reasoning": "rs"}

SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES: BodyRules[ResponsesRequest] = BodyRules()
"""All other rules."""


@SHAPE
def body_not_an_object(body: Any) -> Iterator[ProviderError]:
    """Require an object: "expected an object"."""
    if not isinstance(body, Mapping):
        yield ProviderError(text="Invalid type for request body: expected an object.", code="invalid_type")


@SHAPE
def input_not_a_list(body: Any) -> Iterator[ProviderError]:
    """Require a string or an array of objects as `input` (API reference)."""
    value = body.get("input") if isinstance(body, Mapping) else None
    if value is not None and not isinstance(value, str | list):
        yield invalid_type("input", "one of a string or an array of objects", value)
    for index, item in enumerate(value if isinstance(value, list) else ()):
        if not isinstance(item, Mapping):
            yield invalid_type(f"input[{index}]", "an object", item)


@RULES
def model_missing(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require `model` (API reference)."""
    if not request.body.get("model"):
        yield missing_parameter("model")


@RULES
def input_missing(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require `input` of a request that continues no conversation."""
    if request.body.get("input") is None and not request.before:
        yield missing_parameter("input")


@RULES
def two_conversations(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a request that names a response and a conversation (API reference)."""
    if request.previous is not None and request.conversation is not None:
        text = (
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. Ensure you are only providing "
            "one of: 'conversation' or 'previous_response_id'."
        )
        yield ProviderError(text=text, code="mutually_exclusive_parameters")


@RULES
def previous_response_unknown(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse to continue from a response that does not exist or was not stored.

    The code is `previous_response_not_found`.
    """
    if request.previous is not None and not request.store.has_response(request.previous):
        yield ProviderError(
            text=f"Previous response with id '{request.previous}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )


@RULES
def conversation_unknown(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a conversation that was not created before, with status 404."""
    if request.conversation is not None and not request.store.has_conversation(request.conversation):
        yield ProviderError(text=f"Conversation with id '{request.conversation}' not found.", status=404)


@RULES
def unknown_type(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require one of the types of the API reference of every item of the input."""
    for index, item in enumerate(request.written):
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind not in TYPES:
            yield invalid_value(f"input[{index}]" if kind is None else f"input[{index}].type", kind or "", TYPES)


@RULES
def field_missing(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require the fields that the API reference requires of an item's type."""
    for index, item in enumerate(request.written):
        for name in _REQUIRED.get(str(item.get("type")), ()):
            if item.get(name) is None:
                yield missing_parameter(f"input[{index}].{name}")


@RULES
def arguments_not_text(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require text as the arguments of a call, as the model wrote it."""
    for index, item in enumerate(request.written):
        if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str):
            yield invalid_type(f"input[{index}].arguments", "a string", item.get("arguments"))


@RULES
def reference_unknown(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse a reference to an item that was not stored, with status 404."""
    for item in request.new:
        if is_reference(item):
            text = (
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input."
            )
            yield ProviderError(text=text, param="input", status=404)


@RULES
def duplicate_item(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Refuse an item that comes twice: what a previous response holds is not sent again.

    Quoted in openai/openai-agents-python#1789 (a conversation), vercel/ai#15492 and vercel/ai#18605 (a previous
    response and a reference to one of its items).
    """
    seen = Counter(str(item["id"]) for item in (*request.before, *request.new) if item.get("id"))
    new_ids = {str(item["id"]): None for item in request.new if item.get("id")}
    for item_id in new_ids:
        # A script may give one id to several calls, as no provider would; the client must be able to send those back.
        if seen[item_id] > max(1, request.store.id_counts[item_id]):
            text = f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
            yield ProviderError(text=text, param="input", ids=(item_id,))


@RULES
def malformed_id(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require ids with the prefix of their type: "Expected an ID that begins with 'fc'"."""
    for index, item in enumerate(request.written):
        kind = item.get("type") or "message"
        prefix = _PREFIXES.get(f"message of {item.get('role')}" if kind == "message" else str(kind))
        held = item.get("id")
        if prefix is not None and isinstance(held, str) and not held.startswith(prefix):
            text = f"Invalid 'input[{index}].id': '{held}'. Expected an ID that begins with '{prefix}'."
            yield ProviderError(text=text, param=f"input[{index}].id", code="invalid_value")


@RULES
def name_of_function(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Allow letters, digits, underscores and dashes in function names (API reference)."""
    yield from invalid_names(request.body.get("tools"))


@RULES
def server_without_label(request: ResponsesRequest) -> Iterator[ProviderError]:
    """Require `server_label` of a server whose tools the provider calls (API reference)."""
    for index, tool in enumerate(list_objects(request.body.get("tools"))):
        if tool.get("type") == "mcp" and not tool.get("server_label"):
            yield missing_parameter(f"tools[{index}].server_label")


def parse_request(body: Mapping[str, Any], store: ProviderStore) -> ParsedRequest:
    """Read a body that has the shape of a request against what the provider stored."""
    request = resolve_request(body, store)
    functions = [tool for tool in list_objects(body.get("tools")) if tool.get("type") == "function"]
    return ParsedRequest(
        body=body,
        items=(*instruction_items(body.get("instructions")), *read_items([*request.before, *request.new])),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(name for tool in list_objects(body.get("tools")) for name in offered_names(tool)),
        parameters={str(tool.get("name")): property_names(tool.get("parameters")) for tool in functions},
        wants_json=is_json_format(object_or_empty(body.get("text")).get("format")),
        body_errors=RULES.check(request),
    )


def offered_names(tool: Mapping[str, Any]) -> list[str]:
    """Return the names that a tool offers: its own, or those that are allowed of a server."""
    if tool.get("type") != "mcp":
        return [str(tool.get("name") or tool.get("type"))]
    return allowed_tools(tool) or [str(tool.get("server_label"))]


def allowed_tools(tool: Mapping[str, Any]) -> list[str]:
    """Return the names that a server's tool allows; empty if it allows all."""
    allowed = tool.get("allowed_tools")
    if isinstance(allowed, Mapping):
        allowed = allowed.get("tool_names")
    return [str(name) for name in allowed] if isinstance(allowed, list) else []


def read_items(objects: Iterable[ItemObject]) -> list[Item]:
    """Return the items of a conversation as neutral ones.

    Consecutive items of the model are one message, consecutive results are one, each message of the caller is its own.
    The provider's list of a server's tools belongs to no message.
    """
    items: list[Item] = []
    message, before = -1, ""
    for item in objects:
        if _item_type(item) == "mcp_list_tools":
            continue
        # The caller's messages stay apart; a turn of the model and a batch of results are one message each.
        side = _SIDES.get(_item_type(item), "other")
        if side != before or side == "caller":
            message, before = message + 1, side
        items.append(_READERS.get(_item_type(item), _read_other)(item, message))
    return items


def _item_type(item: ItemObject) -> str:
    kind = item.get("type") or "message"
    return f"message of {item.get('role')}" if kind == "message" else str(kind)


def _read_user(item: ItemObject, message: int) -> Item:
    return Item(kind="user", text=text_of(item.get("content")), message=message)


def _read_text(item: ItemObject, message: int) -> Item:
    return Item(kind="say", text=text_of(item.get("content")), message=message)


def _read_call(item: ItemObject, message: int) -> Item:
    arguments = parse_object(item.get("arguments"))
    call_id, tool = optional_text(item.get("call_id")), optional_text(item.get("name"))
    return Item(kind="call", id=call_id, tool=tool, arguments=arguments, message=message)


def _read_result(item: ItemObject, message: int) -> Item:
    call_id, text = optional_text(item.get("call_id")), text_of(item.get("output"))
    return Item(kind="result", id=call_id, text=text, message=message)


def _read_approval_request(item: ItemObject, message: int) -> Item:
    return Item(
        kind="approval_request",
        id=optional_text(item.get("id")),
        tool=optional_text(item.get("name")),
        arguments=parse_object(item.get("arguments")),
        message=message,
    )


def _read_approval_response(item: ItemObject, message: int) -> Item:
    approve = item.get("approve")
    return Item(
        kind="approval_response",
        id=optional_text(item.get("approval_request_id")),
        # What is no boolean decides nothing, even if a lenient server answers the request.
        approved=approve if isinstance(approve, bool) else None,
        text=optional_text(item.get("reason")),
        message=message,
    )


def _read_hosted_call(item: ItemObject, message: int) -> Item:
    error = item.get("error")
    return Item(
        kind="hosted_result",
        id=optional_text(item.get("approval_request_id") or item.get("id")),
        tool=optional_text(item.get("name")),
        arguments=parse_object(item.get("arguments")),
        text=optional_text(item.get("output")) if error is None else _error_text(error),
        message=message,
    )


def _error_text(error: Any) -> str:
    return text_of(error.get("content", [error]) if isinstance(error, Mapping) else error)


def _read_other(item: ItemObject, message: int) -> Item:
    return Item(kind="other", text=to_sorted_json(dict(item)), message=message)


_READERS: dict[str, Callable[[ItemObject, int], Item]] = {
    "message of user": _read_user,
    "message of assistant": _read_text,
    "function_call": _read_call,
    "function_call_output": _read_result,
    "mcp_approval_request": _read_approval_request,
    "mcp_approval_response": _read_approval_response,
    "mcp_call": _read_hosted_call,
}

_SIDES = {
    "message of user": "caller",
    "message of assistant": "model",
    "function_call": "model",
    "mcp_approval_request": "model",
    "mcp_call": "model",
    "function_call_output": "results",
    "mcp_approval_response": "results",
}
