"""Contents of the framework in the neutral form, as a provider would get them.

What the framework's stream shows to its consumer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from ...contract import Item
from .requests import CONFIRMATION, confirmation_calls

ANSWER_TOOL = "set_model_response"
"""The tool by which a model that has other tools gives a structured answer."""

QUOTE_PREFIXES = ("For context:", "<<<BEGIN_QUOTED_AGENT_CONTENT>>>")
"""What a content begins with in which the framework quotes another agent; it is sent in the user's role."""

SINGLE_TURN_PREFIX = "Important: You will not receive any user replies"
"""What the framework adds to the messages of an agent that a tool runs."""


def to_items(contents: Iterable[Any]) -> list[Item]:
    """Gives the input of the model as a provider would get it."""
    names = UnnamedCalls()
    return [item for number, content in enumerate(contents) for item in _content_items(content, number, names)]


class UnnamedCalls:
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


def _content_items(content: Any, number: int, names: UnnamedCalls) -> Iterator[Item]:
    for part in content.parts or ():
        if ANSWER_TOOL in (getattr(part.function_call, "name", None), getattr(part.function_response, "name", None)):
            yield Item(kind="other", message=number)
        elif part.function_call is not None:
            call = part.function_call
            name = call.id or names.of_call(call.name)
            yield Item(kind="call", id=name, tool=call.name, arguments=dict(call.args or {}), message=number)
        elif part.function_response is not None:
            result = part.function_response
            name = result.id or names.of_result(result.name)
            yield Item(kind="result", id=name, tool=result.name, text=result_text(result.response), message=number)
        elif part.text is not None:
            yield _text_item(content, part.text, number)
        else:
            yield Item(kind="other", message=number)


def _text_item(content: Any, text: str, number: int) -> Item:
    if content.role == "model":
        return Item(kind="say", text=text, message=number)
    first = content.parts[0].text or ""
    if first.startswith(QUOTE_PREFIXES) or text.startswith(SINGLE_TURN_PREFIX):
        return Item(kind="other", text=text, message=number)
    return Item(kind="user", text=_unwrap_input(text), message=number)


def _unwrap_input(text: str) -> str:
    """Gives what an agent is asked that a tool runs, which the framework writes as JSON of the tool's arguments."""
    if not text.startswith('{"input":'):
        return text
    asked: str = json.loads(text)["input"]
    return asked


def result_text(response: Any) -> str:
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


ShownEvents = Iterator[tuple[str, dict[str, Any]]]


def read_event(event: Any) -> ShownEvents:
    """Gives what one event of the stream shows, as arguments for `World.shown`."""
    if event.partial:
        # A call that comes in a partial event comes again in a whole one.
        if text := text_of(event.content):
            yield "text", {"text": text}
        return
    for call in event.get_function_calls():
        if call.name != CONFIRMATION:
            yield "call", {"id": call.id, "tool": call.name}
    for call in confirmation_calls(event):
        yield "request", {"id": call.id}
    waiting = event.actions.requested_tool_confirmations or {}
    for result in event.get_function_responses():
        # What stands in for the result of a call that waits is no result.
        if result.id not in waiting:
            yield "result", {"id": result.id, "text": result_text(result.response)}
