"""Messages of the framework in the neutral form, as its class for Chat Completions would send them.

What the framework's stream shows to its consumer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...contract import Item

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


ANSWER = "Answer"
"""The name of the output tool that a structured answer is a call of."""


def to_items(messages: Iterable[BaseMessage]) -> list[Item]:
    """Gives the input of the model as a provider would get it."""
    return [item for number, message in enumerate(messages) for item in _message_items(message, number)]


def _message_items(message: Any, number: int) -> Iterator[Item]:
    text = text_of(message)
    if message.type == "tool" and message.name == ANSWER:
        yield Item(kind="other", text=text, message=number)
    elif message.type == "ai":
        yield from _assistant_items(message, text, number)
    elif message.type == "tool":
        yield Item(kind="result", id=message.tool_call_id, tool=message.name, text=text, message=number)
    else:
        yield Item(kind="user" if message.type == "human" else "other", text=text, message=number)


def _assistant_items(message: Any, text: str, number: int) -> Iterator[Item]:
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


ShownEvents = Iterator[tuple[str, dict[str, Any]]]


def read_chunk(mode: str, chunk: Any) -> ShownEvents:
    """Gives what one chunk of the stream shows besides interrupts, as arguments for `World.shown`."""
    if mode == "messages":
        yield from _read_token(chunk[0])
    elif mode == "updates":
        yield from _read_updates(chunk)


def _read_token(message: Any) -> ShownEvents:
    if message.type != "AIMessageChunk":
        return
    if text := text_of(message):
        yield "text", {"text": text}
    for call in message.tool_call_chunks:
        # The name comes with the first piece of a call.
        if call["name"]:
            yield "call", {"id": call["id"], "tool": call["name"]}


def _read_updates(chunk: dict[str, Any]) -> ShownEvents:
    # What was done before and is only told again is marked by the framework.
    if (chunk.get("__metadata__") or {}).get("cached"):
        return
    for update in chunk.values():
        for message in update.get("messages", ()) if isinstance(update, dict) else ():
            if getattr(message, "type", None) == "tool":
                yield "result", {"id": message.tool_call_id, "text": text_of(message)}


def read_interrupts(mode: str, chunk: Any) -> tuple[Any, ...]:
    """Gives the interrupts that one chunk shows."""
    if mode not in ("updates", "values") or not isinstance(chunk, dict):
        return ()
    return tuple(chunk.get("__interrupt__", ()))
