"""What the framework's stream shows to its consumer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .messages import text_of

Seen = Iterator[tuple[str, dict[str, Any]]]


def seen(mode: str, chunk: Any) -> Seen:
    """Gives what one chunk of the stream shows besides interrupts, as arguments for `World.shown`."""
    if mode == "messages":
        yield from _token(chunk[0])
    elif mode == "updates":
        yield from _updates(chunk)


def _token(message: Any) -> Seen:
    if message.type != "AIMessageChunk":
        return
    if text := text_of(message):
        yield "text", {"text": text}
    for call in message.tool_call_chunks:
        # The name comes with the first piece of a call.
        if call["name"]:
            yield "call", {"id": call["id"], "tool": call["name"]}


def _updates(chunk: dict[str, Any]) -> Seen:
    # What was done before and is only told again is marked by the framework.
    if (chunk.get("__metadata__") or {}).get("cached"):
        return
    for update in chunk.values():
        for message in update.get("messages", ()) if isinstance(update, dict) else ():
            if getattr(message, "type", None) == "tool":
                yield "result", {"id": message.tool_call_id, "text": text_of(message)}


def interrupts(mode: str, chunk: Any) -> tuple[Any, ...]:
    """Gives the interrupts that one chunk shows."""
    if mode not in ("updates", "values") or not isinstance(chunk, dict):
        return ()
    return tuple(chunk.get("__interrupt__", ()))
