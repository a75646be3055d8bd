"""Responses of providers: bodies, those of streams assembled from their events, and what the model says in them."""

from __future__ import annotations

import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Item
from pytest_approvals.protocols.chat.requests import read_items as chat_items
from pytest_approvals.protocols.converse.event_stream import decode_messages
from pytest_approvals.protocols.converse.requests import read_items as converse_items
from pytest_approvals.protocols.gemini.requests import parts_of
from pytest_approvals.protocols.gemini.requests import read_items as gemini_items
from pytest_approvals.protocols.messages.requests import read_items as messages_items
from pytest_approvals.protocols.reasoning import SentReasoning
from pytest_approvals.protocols.responses.requests import read_items as responses_items
from pytest_approvals.protocols.text import list_objects

Body = dict[str, Any]

_LINE_END = re.compile(r"\r\n|\n|\r")


def parse_response(protocol: str, raw: bytes, *, streamed: bool) -> Body:
    """Return the body of a response; that of a stream is assembled from its events.

    Raises:
        ValueError: It is invalid, or the stream was not finished.
    """
    with _reject_shape(protocol):
        if streamed:
            body = _ASSEMBLERS[protocol](list(_EVENT_READERS.get(protocol, _iter_events)(raw)))
        else:
            body = json.loads(raw)
    if not isinstance(body, dict):
        raise ValueError("invalid response: expected an object")
    return body


def read_response_items(protocol: str, body: Body, asked: Sequence[Mapping[str, Any]] = ()) -> list[Item]:
    """Return what the model says in a response: reasoning, texts and calls.

    Args:
        protocol: The protocol.
        body: The response.
        asked: The contents of the request, for Gemini: what names a call that has no id there is its number.

    Raises:
        ValueError: The response does not have the shape of the protocol.
    """
    with _reject_shape(protocol):
        return list(_read_gemini(body, asked) if protocol == "gemini" else _ITEM_READERS[protocol](body))


@contextmanager
def _reject_shape(protocol: str) -> Iterator[None]:
    """Raise a `ValueError` in place of what is raised where a response does not have the shape of its protocol."""
    try:
        yield
    # The shape of a response is not checked before it is read: all that it can break is this.
    except (KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"invalid response of {protocol}: {error!r}") from error


_ITEM_READERS: dict[str, Callable[[Body], Any]] = {
    "chat": lambda body: chat_items([body["choices"][0]["message"]]),
    "responses": lambda body: responses_items(body["output"]),
    "messages": lambda body: map(
        _unquote_arguments, messages_items([{"role": "assistant", "content": body["content"]}])
    ),
    "converse": lambda body: map(_unquote_arguments, converse_items([body["output"]["message"]])),
}


def _unquote_arguments(item: Item) -> Item:
    """Return a call whose arguments are the text that the model sent in place of an object, and not JSON of it."""
    if item.kind != "call" or not isinstance(item.arguments, str):
        return item
    value = json.loads(item.arguments)
    return replace(item, arguments=value) if isinstance(value, str) else item


def _read_gemini(body: Body, asked: Sequence[Mapping[str, Any]]) -> Iterator[Item]:
    content = body["candidates"][0].get("content") or {}
    items = [
        item
        for item in gemini_items([*asked, {**content, "role": "model"}], SentReasoning())
        if item.message == len(asked)
    ]
    # The text of a thought is in parts of its own; the signature is on the part that it led to.
    thought = "".join(str(part.get("text") or "") for part in parts_of(content) if part.get("thought"))
    signed = [item for item in items if item.kind == "reasoning"]
    if thought or signed:
        yield replace(signed[0], text=thought or None) if signed else Item(kind="reasoning", text=thought)
    yield from (item for item in items if item.kind != "reasoning")


# --- streams ----------------------------------------------------------------------------------------------------------


def _iter_events(raw: bytes) -> Iterator[Body]:
    # Texts may hold characters that end lines elsewhere, but not in the standard of these streams.
    for line in _LINE_END.split(raw.decode("utf-8", "replace")):
        data = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if data and data != "[DONE]":
            event = json.loads(data)
            if isinstance(event, dict):
                yield event


def _iter_gemini_events(raw: bytes) -> Iterator[Body]:
    """Yield the events of a stream, which is an array of JSON if the request does not ask for server-sent events."""
    if raw.lstrip().startswith(b"["):
        yield from map(dict, list_objects(json.loads(raw)))
    else:
        yield from _iter_events(raw)


def _iter_converse_events(raw: bytes) -> Iterator[Body]:
    for name, payload in decode_messages(raw):
        event = json.loads(payload)
        yield {"type": name, **event}


_EVENT_READERS: dict[str, Callable[[bytes], Iterable[Body]]] = {
    "gemini": _iter_gemini_events,
    "converse": _iter_converse_events,
}


def _assemble_completion(events: list[Body]) -> Body:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    finished = False
    for event in events:
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            for name in ("content", "reasoning_content", "reasoning"):
                if isinstance(delta.get(name), str):
                    message[name] = _append_text(message.get(name), delta[name])
            for piece in delta.get("tool_calls") or ():
                _add_delta(
                    calls.setdefault(piece.get("index", 0), {"function": {"name": None, "arguments": None}}), piece
                )
            finished = finished or choice.get("finish_reason") is not None
    if not finished:
        raise ValueError("the stream was not finished")
    return {"choices": [{"message": {**message, "tool_calls": list(calls.values())}}]}


def _add_delta(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    call["id"] = piece.get("id") or call.get("id")
    for name, text in (piece.get("function") or {}).items():
        call["function"][name] = _append_text(call["function"].get(name), text)


def _append_text(text: str | None, piece: str | None) -> str | None:
    return text if not piece else (text or "") + piece


def _assemble_response(events: list[Body]) -> Body:
    for event in reversed(events):
        if event.get("type") == "response.completed" and isinstance(event.get("response"), dict):
            return dict(event["response"])
    raise ValueError("the stream was not finished")


def _assemble_message(events: list[Body]) -> Body:
    blocks: dict[int, dict[str, Any]] = {}
    arguments: dict[int, str] = {}
    for event in events:
        place, delta = event.get("index", 0), event.get("delta") or {}
        if event.get("type") == "content_block_start":
            blocks[place] = dict(event["content_block"])
        elif delta.get("type") == "text_delta":
            blocks[place]["text"] = blocks[place].get("text", "") + delta["text"]
        elif delta.get("type") == "thinking_delta":
            blocks[place]["thinking"] = blocks[place].get("thinking", "") + delta["thinking"]
        elif delta.get("type") == "signature_delta":
            blocks[place]["signature"] = delta["signature"]
        elif delta.get("type") == "input_json_delta":
            arguments[place] = arguments.get(place, "") + delta["partial_json"]
    if not any(event.get("type") == "message_stop" for event in events):
        raise ValueError("the stream was not finished")
    for place, text in arguments.items():
        blocks[place]["input"] = _read_input(text)
    return {"content": list(blocks.values())}


def _read_input(text: str) -> Any:
    """Return the arguments of a call: none for an empty text, and the text itself if it is no JSON."""
    try:
        return json.loads(text) if text else {}
    except ValueError:
        return text


def _assemble_contents(events: list[Body]) -> Body:
    parts: list[Body] = []
    finished = False
    for event in events:
        for candidate in list_objects(event.get("candidates"))[:1]:
            for part in parts_of(candidate.get("content")):
                _add_part(parts, dict(part))
            finished = finished or candidate.get("finishReason") is not None
    if not finished:
        raise ValueError("the stream was not finished")
    return {"candidates": [{"content": {"role": "model", "parts": parts}}]}


def _add_part(parts: list[Body], part: Body) -> None:
    """Add a part, to the one before it if both are pieces of one text."""
    last = parts[-1] if parts else {}
    is_text = all(isinstance(one.get("text"), str) for one in (last, part))
    if is_text and bool(last.get("thought")) == bool(part.get("thought")) and not last.get("thoughtSignature"):
        parts[-1] = {**last, **part, "text": last["text"] + part["text"]}
    else:
        parts.append(part)


def _assemble_converse(events: list[Body]) -> Body:
    blocks: dict[int, Body] = {}
    arguments: dict[int, str] = {}
    for event in events:
        place = event.get("contentBlockIndex", 0)
        if event["type"] == "contentBlockStart":
            blocks[place] = {name: dict(value) for name, value in event["start"].items()}
        for kind, piece in event["delta"].items() if event["type"] == "contentBlockDelta" else ():
            if kind == "toolUse":
                arguments[place] = arguments.get(place, "") + piece["input"]
            elif kind == "reasoningContent":
                _add_reasoning(blocks.setdefault(place, {}).setdefault(kind, {}), piece)
            elif kind == "text":
                block = blocks.setdefault(place, {})
                block["text"] = block.get("text", "") + piece
    if not any(event["type"] == "messageStop" for event in events):
        raise ValueError("the stream was not finished")
    for place, block in blocks.items():
        if "toolUse" in block:
            block["toolUse"]["input"] = _read_input(arguments.get(place, ""))
    return {"output": {"message": {"role": "assistant", "content": [blocks[place] for place in sorted(blocks)]}}}


def _add_reasoning(reasoning: Body, piece: Mapping[str, Any]) -> None:
    if "redactedContent" in piece:
        known = b64decode(reasoning.get("redactedContent", ""))
        reasoning["redactedContent"] = b64encode(known + b64decode(piece["redactedContent"])).decode()
        return
    shown = reasoning.setdefault("reasoningText", {"text": ""})
    shown["text"] += piece.get("text") or ""
    if piece.get("signature"):
        shown["signature"] = shown.get("signature", "") + piece["signature"]


_ASSEMBLERS: dict[str, Callable[[list[Body]], Body]] = {
    "chat": _assemble_completion,
    "responses": _assemble_response,
    "messages": _assemble_message,
    "gemini": _assemble_contents,
    "converse": _assemble_converse,
}
