"""Messages and stream events of the framework in the neutral form."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ...contract import Item

ANSWER = "Answer"
"""Name of the model class of a structured answer, and so of the tool that the model answers with."""

Message = Mapping[str, Any]


def to_items(messages: Iterable[Message]) -> list[Item]:
    """Return the model input as a provider would get it."""
    tools: dict[str, str] = {}
    return [item for number, message in enumerate(messages) for item in _message_items(message, number, tools)]


def _message_items(message: Message, number: int, tools: dict[str, str]) -> Iterator[Item]:
    for block in message["content"]:
        if "text" in block:
            kind = "say" if message["role"] == "assistant" else "user"
            yield Item(kind=kind, text=block["text"], message=number)
        elif "reasoningContent" in block:
            yield _reasoning_item(block["reasoningContent"], number)
        elif "toolUse" in block:
            yield _call_item(block["toolUse"], number, tools)
        elif "toolResult" in block:
            yield _result_item(block["toolResult"], number, tools)
        else:
            yield Item(kind="other", message=number)


def _reasoning_item(reasoning: Mapping[str, Any], number: int) -> Item:
    redacted = reasoning.get("redactedContent")
    if redacted is not None:
        signature = redacted.decode() if isinstance(redacted, bytes) else str(redacted)
        return Item(kind="reasoning", signature=signature, message=number)
    shown = reasoning.get("reasoningText", {})
    return Item(kind="reasoning", text=shown.get("text"), signature=shown.get("signature"), message=number)


def _call_item(use: Mapping[str, Any], number: int, tools: dict[str, str]) -> Item:
    tools[use["toolUseId"]] = use["name"]
    if use["name"] == ANSWER:
        return Item(kind="other", message=number)
    return Item(
        kind="call", id=use["toolUseId"], tool=use["name"], arguments=sent_arguments(use["input"]), message=number
    )


def sent_arguments(input: Any) -> Mapping[str, Any] | str:
    """Return the input of a call: an object, or the JSON text of any other value."""
    return input if isinstance(input, Mapping) else json.dumps(input)


def _result_item(result: Mapping[str, Any], number: int, tools: dict[str, str]) -> Item:
    tool = tools.get(result["toolUseId"])
    if tool == ANSWER:
        return Item(kind="other", message=number)
    return Item(kind="result", id=result["toolUseId"], tool=tool, text=result_text(result), message=number)


def result_text(result: Mapping[str, Any]) -> str:
    """Return the text of a tool result."""
    return "".join(str(block.get("text", block.get("json", ""))) for block in result["content"])


def text_of(message: Message) -> str | None:
    """Return the text of a message without its calls; None if it has none."""
    return "".join(block["text"] for block in message["content"] if "text" in block) or None


ShownEvents = Iterator[tuple[str, dict[str, Any]]]


def read_event(event: Mapping[str, Any], *, answers: bool = False) -> ShownEvents:
    """Yield what one event of the stream shows, as arguments for `World.shown`.

    Interrupts are not included; see `read_interrupts`.

    Args:
        event: An event of the framework.
        answers: Whether the script writes structured answers as calls, as it does for a user's own agent.
    """
    if "data" in event:
        yield "text", {"text": event["data"]}
    elif "event" in event:
        yield from _read_call(event["event"], answers=answers)
    elif "message" in event and event["message"]["role"] == "user":
        for block in event["message"]["content"]:
            if "toolResult" in block:
                yield "result", {"id": block["toolResult"]["toolUseId"], "text": result_text(block["toolResult"])}


def _read_call(chunk: Mapping[str, Any], *, answers: bool) -> ShownEvents:
    use = chunk.get("contentBlockStart", {}).get("start", {}).get("toolUse")
    if use and (answers or use["name"] != ANSWER):
        yield "call", {"id": use["toolUseId"], "tool": use["name"]}


def read_interrupts(event: Mapping[str, Any]) -> list[Any]:
    """Return the interrupts that one event shows."""
    return list(event.get("tool_interrupt_event", {}).get("interrupts", ()))
