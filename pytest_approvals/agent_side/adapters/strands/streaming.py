"""What the framework's stream shows to its consumer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .messages import ANSWER, result_text

Seen = Iterator[tuple[str, dict[str, Any]]]


def seen(event: Mapping[str, Any]) -> Seen:
    """Gives what one event of the stream shows besides interrupts, as arguments for `World.shown`."""
    if "data" in event:
        yield "text", {"text": event["data"]}
    elif "event" in event:
        yield from _call(event["event"])
    elif "message" in event and event["message"]["role"] == "user":
        for block in event["message"]["content"]:
            if "toolResult" in block:
                yield "result", {"id": block["toolResult"]["toolUseId"], "text": result_text(block["toolResult"])}


def _call(chunk: Mapping[str, Any]) -> Seen:
    use = chunk.get("contentBlockStart", {}).get("start", {}).get("toolUse")
    if use and use["name"] != ANSWER:
        yield "call", {"id": use["toolUseId"], "tool": use["name"]}


def interrupts(event: Mapping[str, Any]) -> list[Any]:
    """Gives the interrupts that one event shows."""
    return list(event.get("tool_interrupt_event", {}).get("interrupts", ()))
