"""Messages and stream events of the framework in the neutral form.

Messages are read as the framework's class for Chat Completions would send them.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...contract import Item

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage


ANSWER = "Answer"
"""Name of the output tool; a structured answer is a call of it."""


def to_items(messages: Iterable[BaseMessage]) -> list[Item]:
    """Return the model input as a provider would get it."""
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
    # Calls with unparsable arguments are sent again, too, with the original text.
    for call in (*message.tool_calls, *message.invalid_tool_calls):
        if call["name"] == ANSWER:
            yield Item(kind="other", text=json.dumps(call["args"], separators=(",", ":")), message=number)
            continue
        yield Item(kind="call", id=call["id"], tool=call["name"], arguments=call["args"], message=number)


def text_of(message: Any) -> str:
    """Return the text of a message, from all its text blocks."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(block if isinstance(block, str) else str(block.get("text", "")) for block in content)


ShownEvents = Iterator[tuple[str, dict[str, Any]]]


def read_chunk(mode: str, chunk: Any, old: Container[str]) -> ShownEvents:
    """Yield what one chunk of the stream shows, as arguments for `World.shown`.

    Interrupts are not included; see `read_interrupts`.

    Args:
        mode: The mode of the chunk.
        chunk: The chunk.
        old: The ids of messages of earlier turns, whose results are not shown again.
    """
    if mode == "messages":
        yield from _read_token(chunk[0])
    elif mode == "updates":
        yield from _read_updates(chunk, old)


def _read_token(message: Any) -> ShownEvents:
    if message.type != "AIMessageChunk":
        return
    if text := text_of(message):
        yield "text", {"text": text}
    for call in message.tool_call_chunks:
        # The name comes with the first piece of a call.
        if call["name"]:
            yield "call", {"id": call["id"], "tool": call["name"]}


def _read_updates(chunk: dict[str, Any], old: Container[str]) -> ShownEvents:
    # The framework marks results of earlier runs that it only repeats.
    if (chunk.get("__metadata__") or {}).get("cached"):
        return
    for update in chunk.values():
        for message in update.get("messages", ()) if isinstance(update, dict) else ():
            if getattr(message, "type", None) == "tool" and message.id not in old:
                yield "result", {"id": message.tool_call_id, "text": text_of(message)}


def read_interrupts(mode: str, chunk: Any) -> tuple[Any, ...]:
    """Return the interrupts that one chunk shows."""
    if mode not in ("updates", "values") or not isinstance(chunk, dict):
        return ()
    return tuple(chunk.get("__interrupt__", ()))
