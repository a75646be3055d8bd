"""Messages of the framework in the neutral form, as its class for Chat Completions would send them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ...contract import Item
from .delegation import Delegations

if TYPE_CHECKING:
    from agno.models.message import Message


def items(messages: Iterable[Message], delegations: Delegations, *, answers: bool = False) -> list[Item]:
    """
    Gives the input of the model as a provider would get it.

    Arguments:
        answers: The model answers with an object, as text; such texts are nothing that it says.
    """
    return [item for number, message in enumerate(messages) for item in _items(message, number, delegations, answers)]


def _items(message: Any, number: int, delegations: Delegations, answers: bool) -> Iterator[Item]:
    text = text_of(message.content)
    if message.role == "assistant":
        if text:
            answer = answers and is_object(text)
            yield Item(kind="other" if answer else "say", text=text, message=number)
        yield from _called(message, number, delegations)
    elif message.role == "tool":
        tool = message.tool_name
        yield Item(kind="result", id=message.tool_call_id, tool=tool, text=text, message=number)
    else:
        yield Item(kind="user" if message.role == "user" else "other", text=text, message=number)


def _called(message: Any, number: int, delegations: Delegations) -> Iterator[Item]:
    for call in message.tool_calls or ():
        function = call["function"]
        name, arguments = delegations.neutral(function["name"], parsed(function["arguments"]))
        yield Item(kind="call", id=call.get("id"), tool=name, arguments=arguments, message=number)


def parsed(arguments: Any) -> Any:
    """Gives arguments as an object where they are one, else the text that they are."""
    if not isinstance(arguments, str):
        return arguments
    try:
        value = json.loads(arguments)
    except ValueError:
        return arguments
    return value if isinstance(value, dict) else arguments


def is_object(text: str) -> bool:
    """Says whether *text* is an object."""
    return isinstance(parsed(text), dict)


def text_of(content: Any) -> str:
    """Gives what a message says."""
    if content is None:
        return ""
    return content if isinstance(content, str) else json.dumps(content, default=str)
