"""What a provider answered, as neutral items: bodies and streams of every protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.neutral import Item
from pytest_approvals.protocols.chat.parse import items as chat_items
from pytest_approvals.protocols.messages.parse import items as messages_items
from pytest_approvals.protocols.responses.parse import items as responses_items

Body = dict[str, Any]


def answer_in(protocol: str, raw: bytes, *, streamed: bool) -> Body:
    """
    Gives the body of an answer; that of a stream is put together from its events.

    Errors:
        ValueError: It is none, or the stream was not finished.
    """
    body = _TOGETHER[protocol](list(_events(raw))) if streamed else json.loads(raw)
    if not isinstance(body, dict):
        raise ValueError("the answer is no object")
    return body


def items_in(protocol: str, body: Body) -> list[Item]:
    """
    Gives what the model said and called.

    Errors:
        ValueError: The answer has another shape.
    """
    try:
        return list(_ITEMS[protocol](body))
    except (KeyError, IndexError, TypeError) as error:
        raise ValueError(f"the answer has another shape than {protocol}: {error!r}") from error


_ITEMS: dict[str, Callable[[Body], Any]] = {
    "chat": lambda body: chat_items([body["choices"][0]["message"]]),
    "responses": lambda body: responses_items(body["output"]),
    "messages": lambda body: messages_items([{"role": "assistant", "content": body["content"]}]),
}


def _events(raw: bytes) -> Iterator[Body]:
    for line in raw.decode("utf-8", "replace").splitlines():
        told = line.removeprefix("data:").strip() if line.startswith("data:") else ""
        if told and told != "[DONE]":
            event = json.loads(told)
            if isinstance(event, dict):
                yield event


def _completion(events: list[Body]) -> Body:
    message: dict[str, Any] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, Any]] = {}
    finished = False
    for event in events:
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or {}
            message["content"] = _longer(message["content"], delta.get("content"))
            for piece in delta.get("tool_calls") or ():
                _add(calls.setdefault(piece.get("index", 0), {"function": {"name": None, "arguments": None}}), piece)
            finished = finished or choice.get("finish_reason") is not None
    if not finished:
        raise ValueError("the stream was not finished")
    return {"choices": [{"message": {**message, "tool_calls": list(calls.values())}}]}


def _add(call: dict[str, Any], piece: Mapping[str, Any]) -> None:
    call["id"] = piece.get("id") or call.get("id")
    for name, text in (piece.get("function") or {}).items():
        call["function"][name] = _longer(call["function"].get(name), text)


def _longer(text: str | None, piece: str | None) -> str | None:
    return text if not piece else (text or "") + piece


def _response(events: list[Body]) -> Body:
    for event in reversed(events):
        if event.get("type") == "response.completed" and isinstance(event.get("response"), dict):
            return dict(event["response"])
    raise ValueError("the stream was not finished")


def _message(events: list[Body]) -> Body:
    blocks: dict[int, dict[str, Any]] = {}
    arguments: dict[int, str] = {}
    for event in events:
        place, delta = event.get("index", 0), event.get("delta") or {}
        if event.get("type") == "content_block_start":
            blocks[place] = dict(event["content_block"])
        elif delta.get("type") == "text_delta":
            blocks[place]["text"] = blocks[place].get("text", "") + delta["text"]
        elif delta.get("type") == "input_json_delta":
            arguments[place] = arguments.get(place, "") + delta["partial_json"]
    if not any(event.get("type") == "message_stop" for event in events):
        raise ValueError("the stream was not finished")
    for place, text in arguments.items():
        blocks[place]["input"] = json.loads(text) if text else {}
    return {"content": list(blocks.values())}


_TOGETHER: dict[str, Callable[[list[Body]], Body]] = {
    "chat": _completion,
    "responses": _response,
    "messages": _message,
}
