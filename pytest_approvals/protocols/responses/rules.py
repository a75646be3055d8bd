"""
What Responses refuses in a request and in what it is read against, besides what the neutral rules say of the
conversation.

The rules of OpenAI's API reference; the sentences are those that the API is quoted with in the issue trackers of its
clients.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.protocols.complaints import Complaint, WireRules
from pytest_approvals.protocols.openai_errors import missing, wrong_names, wrong_type, wrong_value
from pytest_approvals.protocols.text import mappings

from .request import Request, is_reference

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

SHAPE: WireRules[Any] = WireRules()
"""The rules without which a body is no request."""

RULES: WireRules[Request] = WireRules()
"""All further ones."""


@SHAPE
def body_not_an_object(body: Any) -> Iterator[Complaint]:
    """A request is an object ("expected an object")."""
    if not isinstance(body, Mapping):
        yield Complaint(text="Invalid type for request body: expected an object.", code="invalid_type")


@SHAPE
def input_not_a_list(body: Any) -> Iterator[Complaint]:
    """The API reference allows a string or an array of objects as `input`."""
    given = body.get("input") if isinstance(body, Mapping) else None
    if given is not None and not isinstance(given, str | list):
        yield wrong_type("input", "one of a string or an array of objects", given)
    for index, item in enumerate(given if isinstance(given, list) else ()):
        if not isinstance(item, Mapping):
            yield wrong_type(f"input[{index}]", "an object", item)


@RULES
def model_missing(request: Request) -> Iterator[Complaint]:
    """The API reference requires `model`."""
    if not request.body.get("model"):
        yield missing("model")


@RULES
def input_missing(request: Request) -> Iterator[Complaint]:
    """A request without a conversation to go on with needs `input`."""
    if request.body.get("input") is None and not request.before:
        yield missing("input")


@RULES
def two_conversations(request: Request) -> Iterator[Complaint]:
    """The API reference lets a request name a response or a conversation, not both."""
    if request.previous is not None and request.conversation is not None:
        text = (
            "Mutually exclusive parameters: 'conversation' and 'previous_response_id'. Ensure you are only providing "
            "one of: 'conversation' or 'previous_response_id'."
        )
        yield Complaint(text=text, code="mutually_exclusive_parameters")


@RULES
def previous_response_unknown(request: Request) -> Iterator[Complaint]:
    """A response that was never given, or not stored, cannot be gone on from (code `previous_response_not_found`)."""
    if request.previous is not None and not request.kept.has_response(request.previous):
        yield Complaint(
            text=f"Previous response with id '{request.previous}' not found.",
            param="previous_response_id",
            code="previous_response_not_found",
        )


@RULES
def conversation_unknown(request: Request) -> Iterator[Complaint]:
    """A conversation is created before it is used; another is answered with status 404."""
    if request.conversation is not None and not request.kept.has_conversation(request.conversation):
        yield Complaint(text=f"Conversation with id '{request.conversation}' not found.", status=404)


@RULES
def unknown_type(request: Request) -> Iterator[Complaint]:
    """An item of the input has one of the types of the API reference."""
    for index, item in enumerate(request.given):
        kind = item.get("type") or ("message" if "role" in item else None)
        if kind not in TYPES:
            yield wrong_value(f"input[{index}]" if kind is None else f"input[{index}].type", kind or "", TYPES)


@RULES
def field_missing(request: Request) -> Iterator[Complaint]:
    """The API reference requires some fields of every type of item."""
    for index, item in enumerate(request.given):
        for name in _REQUIRED.get(str(item.get("type")), ()):
            if item.get(name) is None:
                yield missing(f"input[{index}].{name}")


@RULES
def arguments_not_text(request: Request) -> Iterator[Complaint]:
    """The arguments of a call are the text that the model wrote."""
    for index, item in enumerate(request.given):
        if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str):
            yield wrong_type(f"input[{index}].arguments", "a string", item.get("arguments"))


@RULES
def reference_unknown(request: Request) -> Iterator[Complaint]:
    """An item that was not stored cannot be referred to; the answer has status 404."""
    for item in request.new:
        if is_reference(item):
            text = (
                f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. Try "
                "again with `store` set to true, or remove this item from your input."
            )
            yield Complaint(text=text, param="input", status=404)


@RULES
def duplicate_item(request: Request) -> Iterator[Complaint]:
    """
    An item comes once: what a previous response holds is not sent again.

    Quoted in openai/openai-agents-python#1789 (a conversation), vercel/ai#15492 and vercel/ai#18605 (a previous
    response and a reference to one of its items).
    """
    seen = Counter(str(item["id"]) for item in (*request.before, *request.new) if item.get("id"))
    brought = {str(item["id"]): None for item in request.new if item.get("id")}
    for item_id in brought:
        # A script may give one id to several calls, as no provider would; sending those back is no fault of the client.
        if seen[item_id] > max(1, request.kept.given[item_id]):
            text = f"Duplicate item found with id {item_id}. Remove duplicate items from your input and try again."
            yield Complaint(text=text, param="input", ids=(item_id,))


@RULES
def malformed_id(request: Request) -> Iterator[Complaint]:
    """The ids of items begin with the letters of their type: "Expected an ID that begins with 'fc'"."""
    for index, item in enumerate(request.given):
        kind = item.get("type") or "message"
        prefix = _PREFIXES.get(f"message of {item.get('role')}" if kind == "message" else str(kind))
        held = item.get("id")
        if prefix is not None and isinstance(held, str) and not held.startswith(prefix):
            text = f"Invalid 'input[{index}].id': '{held}'. Expected an ID that begins with '{prefix}'."
            yield Complaint(text=text, param=f"input[{index}].id", code="invalid_value")


@RULES
def name_of_function(request: Request) -> Iterator[Complaint]:
    """The API reference allows letters, digits, underscores and dashes in the names of functions."""
    yield from wrong_names(request.body.get("tools"))


@RULES
def server_without_label(request: Request) -> Iterator[Complaint]:
    """The API reference requires `server_label` of a server whose tools the provider calls."""
    for index, tool in enumerate(mappings(request.body.get("tools"))):
        if tool.get("type") == "mcp" and not tool.get("server_label"):
            yield missing(f"tools[{index}].server_label")
