"""Contents and stream events of the framework in the neutral form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ...contract import Item
from .requests import CONFIRMATION, confirmation_calls

ANSWER_TOOL = "set_model_response"
"""Tool through which a model that has other tools gives a structured answer."""

QUOTE_PREFIXES = ("For context:", "<<<BEGIN_QUOTED_AGENT_CONTENT>>>")
"""Beginnings of a content that quotes another agent; the framework sends it in the user's role."""

SINGLE_TURN_PREFIX = "Important: You will not receive any user replies"
"""Beginning of the text that the framework adds to the messages of an agent that a tool runs."""


@dataclass(frozen=True, slots=True)
class ResultReader:
    """Reader of results: the framework puts what is no dictionary under `result`, and its own errors under `error`.

    Attributes:
        own: Of a user's own tools, whose bodies may return such dictionaries themselves: whether a tool says that it
            returns one, by its name.
    """

    own: dict[str, bool] = field(default_factory=dict)

    def read(self, tool: str, response: Any) -> str:
        """Return the text of a result."""
        if isinstance(response, dict) and len(response) == 1:
            (key, value), *_ = response.items()
            if self._is_wrapped(tool, key, value):
                return value if isinstance(value, str) else _write(value)
        return _write(response)

    def unwrap(self, tool: str, result: Any) -> Any:
        """Return what a body's result is to the model: a value, whether the body or the framework has wrapped it."""
        is_alone = isinstance(result, dict) and list(result) == ["result"]
        return result["result"] if is_alone and not self.own.get(tool) else result

    def _is_wrapped(self, tool: str, key: str, value: Any) -> bool:
        if tool not in self.own:
            return key in ("result", "error", "output")
        if key == "error":
            return isinstance(value, str) and value.startswith(_ERROR_PREFIXES)
        return key == "result" and not self.own[tool]


def _write(value: Any) -> str:
    """Return a result as a client of a provider sends it, and as a stored session holds it."""
    from pydantic_core import to_jsonable_python

    return json.dumps(to_jsonable_python(value, fallback=str))


_ERROR_PREFIXES = ("This tool call ", "Invoking `")
"""Beginnings of the errors that the framework itself tells about a call."""


def to_items(contents: Iterable[Any], results: ResultReader) -> list[Item]:
    """Return the model input as a provider would get it."""
    unnamed_calls = UnnamedCalls()
    return [
        item
        for number, content in enumerate(contents)
        for item in _content_items(content, number, unnamed_calls, results)
    ]


class UnnamedCalls:
    """Generated ids for calls that have none.

    The framework removes the ids that it made up from what it sends, because Gemini matches results to calls by the
    tool's name and the order; this class matches them in the same way.
    """

    def __init__(self) -> None:
        self._given = 0
        self._open: dict[str, list[str]] = {}

    def of_call(self, tool: str) -> str:
        """Return an id for the next call."""
        self._given += 1
        name = f"unnamed-{self._given}"
        self._open.setdefault(tool, []).append(name)
        return name

    def of_result(self, tool: str) -> str | None:
        """Return the id of the call that the next result of *tool* belongs to."""
        waiting = self._open.get(tool)
        return waiting.pop(0) if waiting else None


def _content_items(content: Any, number: int, unnamed_calls: UnnamedCalls, results: ResultReader) -> Iterator[Item]:
    thought = None
    for part in content.parts or ():
        if part.thought:
            thought = (thought or "") + (part.text or "")
            continue
        if part.thought_signature:
            # A signature stands for the reasoning; the text before it is its summary.
            signature = part.thought_signature.decode(errors="replace")
            yield Item(kind="reasoning", text=thought, signature=signature, message=number)
        if ANSWER_TOOL in (getattr(part.function_call, "name", None), getattr(part.function_response, "name", None)):
            yield Item(kind="other", message=number)
        elif part.function_call is not None:
            call = part.function_call
            call_id = call.id or unnamed_calls.of_call(call.name)
            yield Item(kind="call", id=call_id, tool=call.name, arguments=dict(call.args or {}), message=number)
        elif part.function_response is not None:
            result = part.function_response
            call_id = result.id or unnamed_calls.of_result(result.name)
            text = results.read(result.name, result.response)
            yield Item(kind="result", id=call_id, tool=result.name, text=text, message=number)
        elif part.text is not None:
            yield _text_item(content, part.text, number)
        else:
            yield Item(kind="other", message=number)


def _text_item(content: Any, text: str, number: int) -> Item:
    if content.role == "model":
        return Item(kind="say", text=text, message=number)
    first_text = content.parts[0].text or ""
    if first_text.startswith(QUOTE_PREFIXES) or text.startswith(SINGLE_TURN_PREFIX):
        return Item(kind="other", text=text, message=number)
    return Item(kind="user", text=_unwrap_input(text), message=number)


def _unwrap_input(text: str) -> str:
    """Return the input of an agent that a tool runs.

    The framework writes it as JSON of the tool's arguments.
    """
    if not text.startswith('{"input":'):
        return text
    input_text: str = json.loads(text)["input"]
    return input_text


def text_of(content: Any) -> str:
    """Return the text of a content, without thoughts."""
    parts = (content.parts or ()) if content is not None else ()
    return "".join(part.text for part in parts if part.text and not part.thought)


ShownEvents = Iterator[tuple[str, dict[str, Any]]]


def read_event(event: Any, results: ResultReader) -> ShownEvents:
    """Yield what one event of the stream shows, as arguments for `World.shown`."""
    if event.partial:
        # A call in a partial event comes again in a whole one.
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
        # The response of a waiting call is a placeholder, not its result.
        if result.id not in waiting:
            yield "result", {"id": result.id, "text": results.read(result.name, result.response)}
