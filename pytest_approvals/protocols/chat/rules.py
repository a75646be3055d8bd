"""
What Chat Completions refuses in the body of a request, besides what the neutral rules say of the conversation.

The rules of the API reference about required and allowed parameters; the sentences are those that the API is quoted
with in the issue trackers of its clients.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.protocols.complaints import Complaint, WireRules
from pytest_approvals.protocols.openai_errors import empty_array, missing, wrong_names, wrong_type, wrong_value
from pytest_approvals.protocols.text import mappings

ROLES = ("system", "assistant", "user", "function", "tool", "developer")

SHAPE: WireRules[Any] = WireRules()
"""The rules without which a body is no request."""

RULES: WireRules[Mapping[str, Any]] = WireRules()
"""All further ones."""


@SHAPE
def body_not_an_object(body: Any) -> Iterator[Complaint]:
    """A request is an object ("expected an object")."""
    if not isinstance(body, Mapping):
        yield Complaint(text="Invalid type for request body: expected an object.", code="invalid_type")


@SHAPE
def messages_not_a_list(body: Any) -> Iterator[Complaint]:
    """The API reference requires `messages`, an array of objects."""
    if not isinstance(body, Mapping):
        return
    messages = body.get("messages")
    if messages is None:
        yield missing("messages")
    elif not isinstance(messages, list):
        yield wrong_type("messages", "an array of objects", messages)
    else:
        for index, message in enumerate(messages):
            if not isinstance(message, Mapping):
                yield wrong_type(f"messages[{index}]", "an object", message)


@RULES
def model_missing(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The API reference requires `model`; without it the API says "you must provide a model parameter"."""
    if not body.get("model"):
        yield Complaint(text="you must provide a model parameter")


@RULES
def unknown_role(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """A message has one of the six roles of the API reference."""
    for index, message in enumerate(body["messages"]):
        role = message.get("role")
        if role is None:
            yield missing(f"messages[{index}].role")
        elif role not in ROLES:
            yield wrong_value(f"messages[{index}].role", role, ROLES)


@RULES
def content_missing(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """Every message has content, but one of the assistant that has calls: "expected a string, got null"."""
    for index, message in enumerate(body["messages"]):
        calls = message.get("tool_calls") or message.get("function_call") or message.get("refusal")
        if message.get("content") is None and not (message.get("role") == "assistant" and calls):
            text = "Invalid value for 'content': expected a string, got null."
            yield Complaint(text=text, param=f"messages.[{index}].content")


@RULES
def result_without_id(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The API reference requires `tool_call_id` of a message with the role `tool`."""
    for index, message in enumerate(body["messages"]):
        if message.get("role") == "tool" and not message.get("tool_call_id"):
            text = "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'."
            yield Complaint(text=text, param=f"messages.[{index}].tool_call_id")


@RULES
def empty_list_of_calls(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """An assistant's message may leave `tool_calls` out, but not send it empty: "empty array"."""
    for index, message in enumerate(body["messages"]):
        if message.get("tool_calls") == []:
            yield empty_array(f"messages[{index}].tool_calls")


@RULES
def malformed_call(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The API reference requires `type`, and a `function` with a `name` and with `arguments` that are text."""
    for index, message in enumerate(body["messages"]):
        for place, call in enumerate(mappings(message.get("tool_calls"))):
            yield from _malformed(call, f"messages[{index}].tool_calls[{place}]")


def _malformed(call: Mapping[str, Any], param: str) -> Iterator[Complaint]:
    if call.get("type") is None:
        yield missing(f"{param}.type")
    if call.get("type", "function") != "function":
        return
    function = call.get("function")
    if not isinstance(function, Mapping):
        yield missing(f"{param}.function")
        return
    if not function.get("name"):
        yield missing(f"{param}.function.name")
    if not isinstance(function.get("arguments"), str):
        yield wrong_type(f"{param}.function.arguments", "a string", function.get("arguments"))


@RULES
def empty_list_of_tools(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """A request may leave `tools` out, but not send it empty: "empty array"."""
    if body.get("tools") == []:
        yield empty_array("tools")


@RULES
def name_of_function(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The API reference allows letters, digits, underscores and dashes in the names of functions."""
    yield from wrong_names(body.get("tools"), "function")
