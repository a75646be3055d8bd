"""Messages and stream events of the framework in the neutral form.

Messages are read as the framework's class for Chat Completions would send them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
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
    # Calls with unparsable arguments are sent again, too, with the original text.
    calls = [*message.tool_calls, *message.invalid_tool_calls]
    for block in message.content if isinstance(message.content, list) else ():
        kind = block.get("type") if isinstance(block, dict) else "text"
        if kind == "reasoning":
            yield _reasoning_item(block, number)
        elif kind == "tool_call":
            # Only the place counts: what a call is by now is in `tool_calls`, which a middleware may change.
            here = next((call for call in calls if call["id"] == block["id"]), None)
            if here is not None:
                calls.remove(here)
                yield _call_item(here, number)
        elif text:
            yield Item(kind="say", text=text, message=number)
            text = ""
    if text:
        yield Item(kind="say", text=text, message=number)
    for call in calls:
        yield _call_item(call, number)


def _reasoning_item(block: dict[str, Any], number: int) -> Item:
    signature = block.get("extras", {}).get("signature")
    return Item(kind="reasoning", id=block.get("id"), text=block.get("reasoning"), signature=signature, message=number)


def _call_item(call: Any, number: int) -> Item:
    if call["name"] == ANSWER:
        return Item(kind="other", text=json.dumps(call["args"], separators=(",", ":")), message=number)
    return Item(kind="call", id=call["id"], tool=call["name"], arguments=call["args"], message=number)


def text_of(message: Any) -> str:
    """Return the text of a message, from all its text blocks."""
    content = message.content
    if isinstance(content, str):
        return content
    return "".join(block if isinstance(block, str) else str(block.get("text", "")) for block in content)


ShownEvents = Iterator[tuple[str, dict[str, Any]]]


class KnownResults:
    """Messages with results that a stream of a user's graph repeats: those of earlier turns, and those shown before.

    The update of a node may hold all messages of the state.

    Args:
        ids: The ids of the messages of earlier turns.
    """

    def __init__(self, ids: Iterable[str | None]) -> None:
        self._ids = set(ids)
        self._shown: list[Any] = []

    def is_known(self, message: Any) -> bool:
        """Return whether a message was there before, and remember it."""
        # A message has no id before it is in the state.
        is_known = message.id in self._ids or any(message is one for one in self._shown)
        self._shown.append(message)
        return is_known


def read_chunk(mode: str, chunk: Any, known: KnownResults | None) -> ShownEvents:
    """Yield what one chunk of the stream shows, as arguments for `World.shown`.

    Interrupts are not included; see `read_interrupts`.

    Args:
        mode: The mode of the chunk.
        chunk: The chunk.
        known: The results that are not shown again; None if nothing of the user repeats any.
    """
    if mode == "messages":
        yield from _read_token(chunk[0])
    elif mode == "updates":
        yield from _read_updates(chunk, known)


def _read_token(message: Any) -> ShownEvents:
    if message.type != "AIMessageChunk":
        return
    if text := text_of(message):
        yield "text", {"text": text}
    for call in message.tool_call_chunks:
        # The name comes with the first piece of a call, which does not say which one it is if its id comes later.
        if call["name"] and call["id"] is not None:
            yield "call", {"id": call["id"], "tool": call["name"]}


def _read_updates(chunk: dict[str, Any], known: KnownResults | None) -> ShownEvents:
    # The framework marks results of earlier runs that it only repeats.
    if (chunk.get("__metadata__") or {}).get("cached"):
        return
    for update in chunk.values():
        for message in update.get("messages", ()) if isinstance(update, dict) else ():
            if getattr(message, "type", None) == "tool" and not (known is not None and known.is_known(message)):
                yield "result", {"id": message.tool_call_id, "text": text_of(message)}


def read_interrupts(mode: str, chunk: Any) -> tuple[Any, ...]:
    """Return the interrupts that one chunk shows."""
    if mode not in ("updates", "values") or not isinstance(chunk, dict):
        return ()
    return tuple(chunk.get("__interrupt__", ()))
