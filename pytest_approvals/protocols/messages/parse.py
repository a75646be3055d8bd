"""Requests for a message as neutral items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Any

from pytest_approvals.agent_side.neutral import Item
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.text import mappings, ordered_json, text_of

from .rules import RULES, SHAPE, blocks_of


def asked(body: Any) -> Asked:
    """Reads a request; see `Format.read`."""
    complaints = SHAPE.broken(body)
    if complaints:
        return Asked(body=body if isinstance(body, Mapping) else {}, complaints=complaints, readable=False)
    tools = mappings(body.get("tools"))
    return Asked(
        body=body,
        items=(*_instructions(body.get("system")), *items(body["messages"])),
        model=str(body.get("model") or ""),
        stream=bool(body.get("stream")),
        tools=tuple(str(tool.get("name")) for tool in tools),
        parameters={str(tool.get("name")): _parameters(tool) for tool in tools},
        formatted=_is_formatted(body),
        complaints=RULES.broken(body),
    )


def _instructions(system: Any) -> tuple[Item, ...]:
    return (Item(kind="other", text=text_of(system)),) if system else ()


def items(messages: list[Mapping[str, Any]]) -> Iterator[Item]:
    """
    Gives the elements of messages.

    Of the model, text blocks that follow each other are one text; each of the caller's is a message, which clients put
    into one where nothing was said in between.
    """
    for number, message in enumerate(messages):
        is_model = message.get("role") == "assistant"
        for is_text, blocks in groupby(blocks_of(message), _has_text):
            if is_text and is_model:
                yield Item(kind="say", text="".join(str(block["text"]) for block in blocks), message=number)
            elif is_text:
                yield from (Item(kind="user", text=str(block["text"]), message=number) for block in blocks)
            else:
                yield from (_item(block, number) for block in blocks)


def _has_text(block: Mapping[str, Any]) -> bool:
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def _item(block: Mapping[str, Any], number: int) -> Item:
    kind = block.get("type")
    if kind == "tool_use":
        arguments = block.get("input")
        arguments = arguments if isinstance(arguments, Mapping) else ordered_json(arguments)
        return Item(kind="call", id=block.get("id"), tool=block.get("name"), arguments=arguments, message=number)
    if kind == "tool_result":
        told = text_of(block.get("content"))
        return Item(kind="result", id=block.get("tool_use_id"), text=told, message=number)
    return Item(kind="other", text=ordered_json(dict(block)), message=number)


def _parameters(tool: Mapping[str, Any]) -> frozenset[str]:
    schema = tool.get("input_schema")
    return frozenset(schema.get("properties") or ()) if isinstance(schema, Mapping) else frozenset()


def _is_formatted(body: Mapping[str, Any]) -> bool:
    wanted = body.get("output_config")
    return bool(body.get("output_format")) or (isinstance(wanted, Mapping) and bool(wanted.get("format")))
