"""Contents of the framework in the neutral form, as a provider would get them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...contract import Item

ANSWERS = "set_model_response"
"""The tool by which a model that has other tools gives a structured answer."""

QUOTED = ("For context:", "<<<BEGIN_QUOTED_AGENT_CONTENT>>>")
"""What a content begins with in which the framework quotes another agent; it is sent in the user's role."""

ALONE = "Important: You will not receive any user replies"
"""What the framework adds to the messages of an agent that a tool runs."""


def items(contents: Iterable[Any]) -> list[Item]:
    """Gives the input of the model as a provider would get it."""
    names = Unnamed()
    return [item for number, content in enumerate(contents) for item in _items(content, number, names)]


class Unnamed:
    """
    Names for calls that have none.

    The framework takes the ids that it made up out of what it sends, because Gemini tells results to their calls by the
    tool's name and the order; so they are told here.
    """

    def __init__(self) -> None:
        self._given = 0
        self._open: dict[str, list[str]] = {}

    def of_call(self, tool: str) -> str:
        """Names the next call."""
        self._given += 1
        name = f"unnamed-{self._given}"
        self._open.setdefault(tool, []).append(name)
        return name

    def of_result(self, tool: str) -> str | None:
        """Gives the name of the call that the next result of *tool* belongs to."""
        waiting = self._open.get(tool)
        return waiting.pop(0) if waiting else None


def _items(content: Any, number: int, names: Unnamed) -> Iterator[Item]:
    for part in content.parts or ():
        if ANSWERS in (getattr(part.function_call, "name", None), getattr(part.function_response, "name", None)):
            yield Item(kind="other", message=number)
        elif part.function_call is not None:
            call = part.function_call
            name = call.id or names.of_call(call.name)
            yield Item(kind="call", id=name, tool=call.name, arguments=dict(call.args or {}), message=number)
        elif part.function_response is not None:
            result = part.function_response
            name = result.id or names.of_result(result.name)
            yield Item(kind="result", id=name, tool=result.name, text=told(result.response), message=number)
        elif part.text is not None:
            yield _said(content, part.text, number)
        else:
            yield Item(kind="other", message=number)


def _said(content: Any, text: str, number: int) -> Item:
    if content.role == "model":
        return Item(kind="say", text=text, message=number)
    first = content.parts[0].text or ""
    if first.startswith(QUOTED) or text.startswith(ALONE):
        return Item(kind="other", text=text, message=number)
    return Item(kind="user", text=_unwrapped(text), message=number)


def _unwrapped(text: str) -> str:
    """Gives what an agent is asked that a tool runs, which the framework writes as JSON of the tool's arguments."""
    if not text.startswith('{"input":'):
        return text
    asked: str = json.loads(text)["input"]
    return asked


def told(response: Any) -> str:
    """Gives what a model reads of a result; the framework puts what is no dictionary under `result`."""
    if isinstance(response, dict) and len(response) == 1:
        (key, value), *_ = response.items()
        if key in ("result", "error", "output"):
            return value if isinstance(value, str) else json.dumps(value, default=str)
    return json.dumps(response, default=str)


def text_of(content: Any) -> str:
    """Gives what a content says to the person."""
    parts = (content.parts or ()) if content is not None else ()
    return "".join(part.text for part in parts if part.text and not part.thought)
