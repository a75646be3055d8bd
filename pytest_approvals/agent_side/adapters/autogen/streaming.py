"""What the framework's stream shows to its consumer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .messages import shown

Seen = Iterator[tuple[str, dict[str, Any]]]


def seen(event: Any, *, answers: bool) -> Seen:
    """
    Gives what one event of a stream shows, as arguments for `World.shown`.

    Arguments:
        answers: The agent ends with a structured answer. That streams as text does and is none; what the agent says
            besides is told as its thought, too.
    """
    kind = getattr(event, "type", "")
    if kind == ("ThoughtEvent" if answers else "ModelClientStreamingChunkEvent"):
        if not (answers and isinstance(shown(event.content), dict)):
            yield "text", {"text": event.content}
    elif kind == "ToolCallRequestEvent":
        for call in event.content:
            yield "call", {"id": call.id, "tool": call.name}
    elif kind == "ToolApprovalRequestEvent":
        yield "request", {"id": event.content.request_id}
    elif kind == "ToolCallExecutionEvent":
        for result in event.content:
            yield "result", {"id": result.call_id, "text": result.content}
