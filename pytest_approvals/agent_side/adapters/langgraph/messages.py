"""Messages of the framework in the neutral form, as its class for Chat Completions would send them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...contract import Item

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage

ANSWER = "Answer"
"""The name of the output tool that a structured answer is a call of."""


def items(messages: Iterable[BaseMessage]) -> list[Item]:
    """Gives the input of the model as a provider would get it."""
    return [item for number, message in enumerate(messages) for item in _items(message, number)]


def _items(message: Any, number: int) -> Iterator[Item]:
    text = text_of(message)
    if message.type == "tool" and message.name == ANSWER:
        yield Item(kind="other", text=text, message=number)
    elif message.type == "ai":
        yield from _said(message, text, number)
    elif message.type == "tool":
        yield Item(kind="result", id=message.tool_call_id, tool=message.name, text=text, message=number)
    else:
        yield Item(kind="user" if message.type == "human" else "other", text=text, message=number)


def _said(message: Any, text: str, number: int) -> Iterator[Item]:
    if text:
        yield Item(kind="say", text=text, message=number)
    # Calls whose arguments could not be parsed are sent again, too, as the text that they were.
    for call in (*message.tool_calls, *message.invalid_tool_calls):
        if call["name"] == ANSWER:
            yield Item(kind="other", text=json.dumps(call["args"], separators=(",", ":")), message=number)
            continue
        yield Item(kind="call", id=call["id"], tool=call["name"], arguments=call["args"], message=number)


def text_of(message: Any) -> str:
    """Gives what a message says, out of all its text blocks."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(block if isinstance(block, str) else str(block.get("text", "")) for block in content)
