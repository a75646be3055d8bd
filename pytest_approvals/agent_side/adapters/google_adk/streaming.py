"""What the framework's stream shows to its consumer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .messages import text_of, told
from .requests import CONFIRMATION, confirmations

Seen = Iterator[tuple[str, dict[str, Any]]]


def seen(event: Any) -> Seen:
    """Gives what one event of the stream shows, as arguments for `World.shown`."""
    if event.partial:
        # A call that comes in a partial event comes again in a whole one.
        if text := text_of(event.content):
            yield "text", {"text": text}
        return
    for call in event.get_function_calls():
        if call.name != CONFIRMATION:
            yield "call", {"id": call.id, "tool": call.name}
    for call in confirmations(event):
        yield "request", {"id": call.id}
    waiting = event.actions.requested_tool_confirmations or {}
    for result in event.get_function_responses():
        # What stands in for the result of a call that waits is no result.
        if result.id not in waiting:
            yield "result", {"id": result.id, "text": told(result.response)}
