"""Replies as streams of completion chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.agent_side.neutral import Chunk, Reply
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.sse import Event, Style

from .render import USAGE, head, reason


def events(asked: Asked, reply: Reply, style: Style, completion_id: str) -> Iterator[Event]:
    """Gives the chunks of a streamed completion; see `Format.events`."""
    top = {**head(asked, completion_id), "object": "chat.completion.chunk"}
    wants_usage = _wants_usage(asked.body)
    yield _event(top, {"role": "assistant", "content": None if reply.calls and reply.say is None else ""})
    for chunk in reply.chunks:
        if style.usage:
            yield Event(data={**top, "choices": [], "usage": USAGE})
        yield _event(top, _delta(chunk))
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield _event(top, {}, reason(reply))
    if wants_usage or style.usage:
        yield Event(data={**top, "choices": [], "usage": USAGE})
    if style.done:
        yield Event(data="[DONE]")


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


def _event(top: Mapping[str, Any], delta: dict[str, Any], ended: str | None = None) -> Event:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": ended}
    return Event(data={**top, "choices": [choice]})


def _delta(chunk: Chunk) -> dict[str, Any]:
    if chunk.call is None:
        return {"content": chunk.text or ""}
    call: dict[str, Any] = {"index": chunk.call}
    function: dict[str, Any] = {}
    if chunk.tool is not None:
        call |= {"id": chunk.id, "type": "function"}
        function["name"] = chunk.tool
    function["arguments"] = chunk.arguments or ""
    return {"tool_calls": [{**call, "function": function}]}
