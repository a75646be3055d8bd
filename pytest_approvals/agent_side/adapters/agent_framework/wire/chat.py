"""The Chat Completions API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from ....contract import Chunk, Item, ModelCall, ModelDown, Reply
from ...openai_agents.items import from_chat
from ..contents import written


class Chat:
    """Speaks the Chat Completions API; see `provider.Speaks`."""

    def items(self, body: dict[str, Any]) -> list[Item]:
        """Gives the messages."""
        return from_chat(body["messages"])

    def reply(self, body: dict[str, Any], reply: Reply) -> dict[str, Any]:
        """Gives a completion."""
        message: dict[str, Any] = {"role": "assistant", "content": reply.say}
        if reply.calls:
            message["tool_calls"] = [_call(call) for call in reply.calls]
        choice = {"index": 0, "message": message, "finish_reason": _reason(reply)}
        return {**_head(), "object": "chat.completion", "choices": [choice]}

    def events(self, body: dict[str, Any], reply: Reply) -> Iterator[str]:
        """Gives the chunks of a streamed completion."""
        head = _head()
        yield _chunk(head, {"role": "assistant"})
        for chunk in reply.chunks:
            yield _chunk(head, _delta(chunk))
        if reply.breaks:
            raise ModelDown(0, reply.how)
        yield _chunk(head, {}, _reason(reply))
        yield "[DONE]"


def _head() -> dict[str, Any]:
    """Gives what the chunks of one completion share; the framework knows its messages by the id."""
    return {"id": f"chatcmpl-{uuid4().hex}", "created": 0, "model": "scripted"}


def _reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _call(call: ModelCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": written(call.arguments)}
    return {"id": call.id, "type": "function", "function": function}


def _chunk(head: dict[str, Any], delta: dict[str, Any], reason: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    return json.dumps({**head, "object": "chat.completion.chunk", "choices": [choice]})


def _delta(chunk: Chunk) -> dict[str, Any]:
    if chunk.call is None:
        return {"content": chunk.text or ""}
    function = {"name": chunk.tool, "arguments": chunk.arguments}
    call: dict[str, Any] = {"index": chunk.call, "id": chunk.id, "function": function}
    if chunk.id is not None:
        call["type"] = "function"
    return {"tool_calls": [call]}
