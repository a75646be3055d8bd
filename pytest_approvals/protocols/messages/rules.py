"""
What Messages refuses in the body of a request, besides what the neutral rules say of the conversation.

The rules of Anthropic's API reference; the sentences are those that the API is quoted with in the issue trackers of its
clients.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.protocols.complaints import Complaint, WireRules
from pytest_approvals.protocols.text import mappings

SHAPE: WireRules[Any] = WireRules()
"""The rules without which a body is no request."""

RULES: WireRules[Mapping[str, Any]] = WireRules()
"""All further ones."""

_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")


def blocks_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Gives the content of a message as blocks; a string is a block of text."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else mappings(content)


def _placed(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Gives each block with its place and the role of its message."""
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_of(message)):
            yield f"messages.{number}.content.{index}", str(message.get("role")), block


@SHAPE
def body_not_an_object(body: Any) -> Iterator[Complaint]:
    """A request is an object."""
    if not isinstance(body, Mapping):
        yield Complaint(text="Input should be a valid dictionary")


@SHAPE
def messages_not_a_list(body: Any) -> Iterator[Complaint]:
    """The API reference requires `messages`, an array of objects."""
    if not isinstance(body, Mapping):
        return
    if "messages" not in body:
        yield Complaint(text="messages: Field required")
    elif not isinstance(body["messages"], list):
        yield Complaint(text="messages: Input should be a valid list")
    else:
        for number, message in enumerate(body["messages"]):
            if not isinstance(message, Mapping):
                yield Complaint(text=f"messages.{number}: Input should be a valid dictionary")


@RULES
def field_missing(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The API reference requires `model` and `max_tokens`: "Field required"."""
    for name in ("model", "max_tokens"):
        if body.get(name) is None:
            yield Complaint(text=f"{name}: Field required")


@RULES
def unexpected_role(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """A message is the user's or the assistant's; instructions stand in `system`."""
    for message in body["messages"]:
        role = message.get("role")
        if role == "system":
            text = (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
                '"system" as an input message role.'
            )
            yield Complaint(text=text)
        elif role not in ("user", "assistant"):
            yield Complaint(text=f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')


@RULES
def empty_message(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """Every message has content, but the last one where it is the assistant's."""
    last = len(body["messages"]) - 1
    for number, message in enumerate(body["messages"]):
        if not message.get("content") and not (number == last and message.get("role") == "assistant"):
            text = (
                f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
                "message"
            )
            yield Complaint(text=text)


@RULES
def empty_block(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """A text block has text: "text content blocks must be non-empty"."""
    for _, _, block in _placed(body):
        if block.get("type") == "text" and block.get("text") == "":
            yield Complaint(text="messages: text content blocks must be non-empty")


@RULES
def trailing_white_space(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """What the assistant is made to begin with does not end in white space."""
    last = body["messages"][-1] if body["messages"] else {}
    blocks = blocks_of(last) if last.get("role") == "assistant" else []
    text = str(blocks[-1].get("text") or "") if blocks else ""
    if text != text.rstrip():
        yield Complaint(text="messages: final assistant content cannot end with trailing whitespace")


@RULES
def block_of_the_other_role(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """Calls stand in messages of the assistant, results in those of the user."""
    homes = {"tool_use": "assistant", "tool_result": "user"}
    for place, role, block in _placed(body):
        kind = str(block.get("type"))
        if kind in homes and role != homes[kind]:
            yield Complaint(text=f"{place}: `{kind}` blocks can only be in `{homes[kind]}` messages")


@RULES
def malformed_id(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The ids of calls match a pattern, which those that another provider made need not."""
    names = {"tool_use": "id", "tool_result": "tool_use_id"}
    for place, _, block in _placed(body):
        kind = str(block.get("type"))
        held = block.get(names[kind]) if kind in names else None
        if isinstance(held, str) and held and not _ID.match(held):
            text = f"{place}.{kind}.{names[kind]}: String should match pattern '^[a-zA-Z0-9_-]+$'"
            yield Complaint(text=text, ids=(held,))


@RULES
def result_without_id(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The API reference requires `tool_use_id` of a result."""
    for place, _, block in _placed(body):
        if block.get("type") == "tool_result" and not block.get("tool_use_id"):
            yield Complaint(text=f"{place}.tool_result.tool_use_id: Field required")


@RULES
def tool_names_not_unique(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """No two tools have one name."""
    names = Counter(str(tool.get("name")) for tool in mappings(body.get("tools")))
    if any(times > 1 for times in names.values()):
        yield Complaint(text="tools: Tool names must be unique.")


@RULES
def name_of_tool(body: Mapping[str, Any]) -> Iterator[Complaint]:
    """The API reference allows up to 128 letters, digits, underscores and dashes in the names of tools."""
    for index, tool in enumerate(mappings(body.get("tools"))):
        name = tool.get("name")
        if isinstance(name, str) and not _TOOL.match(name):
            text = f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            yield Complaint(text=text)
