"""Messages of the framework in the neutral form, as its client for Chat Completions would send them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...contract import Item


def items(messages: Iterable[Any]) -> list[Item]:
    """Gives the input of the model as a provider would get it."""
    return [item for number, message in enumerate(messages) for item in _items(message, number)]


def _items(message: Any, number: int) -> Iterator[Item]:
    if message.type == "AssistantMessage":
        yield from _said(message, number)
    elif message.type == "FunctionExecutionResultMessage":
        for result in message.content:
            yield Item(kind="result", id=result.call_id, tool=result.name, text=result.content, message=number)
    else:
        kind = "user" if message.type == "UserMessage" else "other"
        yield Item(kind=kind, text=text_of(message.content), message=number)


def _said(message: Any, number: int) -> Iterator[Item]:
    if isinstance(message.content, str):
        yield Item(kind="say", text=message.content, message=number)
        return
    # What a model says beside calls is its thought here, and goes out as the content of the message.
    if message.thought:
        yield Item(kind="say", text=message.thought, message=number)
    for call in message.content:
        yield Item(kind="call", id=call.id, tool=call.name, arguments=shown(call.arguments), message=number)


def shown(text: str) -> Any:
    """Gives arguments parsed where they are a JSON object, else the text."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    return parsed if isinstance(parsed, dict) else text


def text_of(content: Any) -> str:
    """Gives what a user's message says."""
    return content if isinstance(content, str) else "".join(part for part in content if isinstance(part, str))
