"""Messages requests: errors of their bodies, and blocks as neutral items.

The rules are those of Anthropic's API reference; the sentences are those that the API is quoted with in the issue
trackers of its clients. Rules about the conversation are in `input_rules.py`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.provider_errors import BodyRules, ProviderError
from pytest_approvals.protocols.text import (
    instruction_items,
    list_objects,
    object_or_empty,
    optional_text,
    property_names,
    text_of,
    to_sorted_json,
)

SHAPE: BodyRules[Any] = BodyRules()
"""The rules without which a body cannot be read."""

RULES: BodyRules[Mapping[str, Any]] = BodyRules()
"""All other rules."""

# `\Z` and not `$`, which would allow a line break at the end.
_ID = re.compile(r"[a-zA-Z0-9_-]+\Z")
_TOOL = re.compile(r"[a-zA-Z0-9_-]{1,128}\Z")


def blocks_of(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the content of a message as blocks; a string is one text block."""
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else list_objects(content)


def _iter_blocks(body: Mapping[str, Any]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Yield each block with its path and the role of its message."""
    for number, message in enumerate(body["messages"]):
        for index, block in enumerate(blocks_of(message)):
            yield f"messages.{number}.content.{index}", str(message.get("role")), block


@SHAPE
def body_not_an_object(body: Any) -> Iterator[ProviderError]:
    """Require an object."""
    if not isinstance(body, Mapping):
        yield ProviderError(text="Input should be a valid dictionary")


@SHAPE
def messages_not_a_list(body: Any) -> Iterator[ProviderError]:
    """Require `messages`, an array of objects (API reference)."""
    if not isinstance(body, Mapping):
        return
    if "messages" not in body:
        yield ProviderError(text="messages: Field required")
    elif not isinstance(body["messages"], list):
        yield ProviderError(text="messages: Input should be a valid list")
    else:
        for number, message in enumerate(body["messages"]):
            if not isinstance(message, Mapping):
                yield ProviderError(text=f"messages.{number}: Input should be a valid dictionary")


@RULES
def field_missing(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `model` and `max_tokens` (API reference): "Field required"."""
    for name in ("model", "max_tokens"):
        if body.get(name) is None:
            yield ProviderError(text=f"{name}: Field required")


@RULES
def unexpected_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require the role `user` or `assistant`; instructions belong in `system`."""
    for message in body["messages"]:
        role = message.get("role")
        if role == "system":
            text = (
                'messages: Unexpected role "system". The Messages API accepts a top-level `system` parameter, not '
                '"system" as an input message role.'
            )
            yield ProviderError(text=text)
        elif role not in ("user", "assistant"):
            yield ProviderError(text=f'messages: Unexpected role "{role}". Allowed roles are "user" or "assistant".')


@RULES
def empty_message(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require content of every message but a final assistant message."""
    last = len(body["messages"]) - 1
    for number, message in enumerate(body["messages"]):
        if not message.get("content") and not (number == last and message.get("role") == "assistant"):
            text = (
                f"messages.{number}: all messages must have non-empty content except for the optional final assistant "
                "message"
            )
            yield ProviderError(text=text)


@RULES
def empty_block(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse an empty text block: "text content blocks must be non-empty"."""
    for _, _, block in _iter_blocks(body):
        if block.get("type") == "text" and block.get("text") == "":
            yield ProviderError(text="messages: text content blocks must be non-empty")


@RULES
def trailing_white_space(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse a prefilled assistant message that ends in white space."""
    last = body["messages"][-1] if body["messages"] else {}
    blocks = blocks_of(last) if last.get("role") == "assistant" else []
    text = str(blocks[-1].get("text") or "") if blocks else ""
    if text != text.rstrip():
        yield ProviderError(text="messages: final assistant content cannot end with trailing whitespace")


@RULES
def block_of_the_other_role(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require calls in assistant messages and results in user messages."""
    roles = {"tool_use": "assistant", "tool_result": "user"}
    for place, role, block in _iter_blocks(body):
        kind = str(block.get("type"))
        if kind in roles and role != roles[kind]:
            yield ProviderError(text=f"{place}: `{kind}` blocks can only be in `{roles[kind]}` messages")


@RULES
def malformed_id(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require call ids to match a pattern, which ids of another provider may not do."""
    names = {"tool_use": "id", "tool_result": "tool_use_id"}
    for place, _, block in _iter_blocks(body):
        kind = str(block.get("type"))
        held = block.get(names[kind]) if kind in names else None
        if isinstance(held, str) and held and not _ID.match(held):
            text = f"{place}.{kind}.{names[kind]}: String should match pattern '^[a-zA-Z0-9_-]+$'"
            yield ProviderError(text=text, ids=(held,))


@RULES
def result_without_id(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Require `tool_use_id` of a result (API reference)."""
    for place, _, block in _iter_blocks(body):
        if block.get("type") == "tool_result" and not block.get("tool_use_id"):
            yield ProviderError(text=f"{place}.tool_result.tool_use_id: Field required")


@RULES
def tool_names_not_unique(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Refuse two tools of one name."""
    names = Counter(str(tool.get("name")) for tool in list_objects(body.get("tools")))
    if any(times > 1 for times in names.values()):
        yield ProviderError(text="tools: Tool names must be unique.")


@RULES
def name_of_tool(body: Mapping[str, Any]) -> Iterator[ProviderError]:
    """Allow up to 128 letters, digits, underscores and dashes in tool names (API reference)."""
    for index, tool in enumerate(list_objects(body.get("tools"))):
        name = tool.get("name")
        if isinstance(name, str) and not _TOOL.match(name):
            text = f"tools.{index}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'"
            yield ProviderError(text=text)


def parse_request(body: Mapping[str, Any]) -> ParsedRequest:
    """Read a body that has the shape of a request."""
    tools = list_objects(body.get("tools"))
    return ParsedRequest(
        body=body,
        items=(*instruction_items(body.get("system")), *read_items(body["messages"])),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(str(tool.get("name")) for tool in tools),
        parameters={str(tool.get("name")): property_names(tool.get("input_schema")) for tool in tools},
        wants_json=_wants_json(body),
        body_errors=RULES.check(body),
    )


def read_items(messages: list[Mapping[str, Any]]) -> Iterator[Item]:
    """Yield the items of messages.

    Consecutive text blocks of the model are one text. Each text block of the caller is a message of its own: clients
    put several messages into one if the model said nothing in between.
    """
    for number, message in enumerate(messages):
        is_model = message.get("role") == "assistant"
        for is_text, blocks in groupby(blocks_of(message), _is_text):
            if is_text and is_model:
                yield Item(kind="say", text="".join(str(block["text"]) for block in blocks), message=number)
            elif is_text:
                yield from (Item(kind="user", text=str(block["text"]), message=number) for block in blocks)
            else:
                yield from (_read_block(block, number) for block in blocks)


def _is_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _read_block(block: Mapping[str, Any], number: int) -> Item:
    kind = block.get("type")
    if kind == "tool_use":
        arguments = block.get("input")
        arguments = arguments if isinstance(arguments, Mapping) else to_sorted_json(arguments)
        call_id, tool = optional_text(block.get("id")), optional_text(block.get("name"))
        return Item(kind="call", id=call_id, tool=tool, arguments=arguments, message=number)
    if kind == "tool_result":
        text = text_of(block.get("content"))
        return Item(kind="result", id=optional_text(block.get("tool_use_id")), text=text, message=number)
    return Item(kind="other", text=to_sorted_json(dict(block)), message=number)


def _wants_json(body: Mapping[str, Any]) -> bool:
    # `output_format` is the earlier name of `output_config.format`.
    return bool(body.get("output_format") or object_or_empty(body.get("output_config")).get("format"))
