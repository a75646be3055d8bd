"""Messages and stream events of the framework in the neutral form.

Messages are read as the framework's client for Chat Completions would send them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ...contract import Item
from ...kit.tool_schema import parse_arguments


def to_items(messages: Iterable[Any]) -> list[Item]:
    """Return the model input as a provider would get it."""
    return [item for number, message in enumerate(messages) for item in _message_items(message, number)]


def _message_items(message: Any, number: int) -> Iterator[Item]:
    if message.type == "AssistantMessage":
        yield from _assistant_items(message, number)
    elif message.type == "FunctionExecutionResultMessage":
        for result in message.content:
            yield Item(kind="result", id=result.call_id, tool=result.name, text=result.content, message=number)
    else:
        kind = "user" if message.type == "UserMessage" else "other"
        yield Item(kind=kind, text=text_of(message.content), message=number)


def _assistant_items(message: Any, number: int) -> Iterator[Item]:
    if isinstance(message.content, str):
        yield Item(kind="say", text=message.content, message=number)
        return
    # Text in a message with calls is a thought here; clients send it as the content of the message.
    if message.thought:
        yield Item(kind="say", text=message.thought, message=number)
    for call in message.content:
        yield Item(kind="call", id=call.id, tool=call.name, arguments=parse_arguments(call.arguments), message=number)


def text_of(content: Any) -> str:
    """Return the text of a user's message."""
    return content if isinstance(content, str) else "".join(part for part in content if isinstance(part, str))


ShownEvents = Iterator[tuple[str, dict[str, Any]]]


def read_event(event: Any, *, answers: bool) -> ShownEvents:
    """Yield what one event of a stream shows, as arguments for `World.shown`.

    Args:
        event: The event.
        answers: The agent ends with a structured answer. That streams like text but is not text; other text of the
            agent is also reported as its thought.
    """
    kind = getattr(event, "type", "")
    if kind == ("ThoughtEvent" if answers else "ModelClientStreamingChunkEvent"):
        if not (answers and isinstance(parse_arguments(event.content), dict)):
            yield "text", {"text": event.content}
    elif kind == "ToolCallRequestEvent":
        for call in event.content:
            yield "call", {"id": call.id, "tool": call.name}
    elif kind == "ToolApprovalRequestEvent":
        yield "request", {"id": event.content.request_id}
    elif kind == "ToolCallExecutionEvent":
        for result in event.content:
            yield "result", {"id": result.call_id, "text": result.content}
