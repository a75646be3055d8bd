"""Replies as streams of blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.agent_side.neutral import Chunk, Reply
from pytest_approvals.protocols.asked import Asked
from pytest_approvals.protocols.pieces import Part, overlapping, parts_of
from pytest_approvals.protocols.sse import Event, Style

from .render import USAGE, head, reason, tool_use


def events(asked: Asked, reply: Reply, style: Style, message_id: str) -> Iterator[Event]:
    """Gives the events of a streamed message; see `Format.events`."""
    yield _event("message_start", message=head(asked, message_id))
    for event in _blocks(reply, style):
        if style.comments:
            yield _event("ping")
        if style.usage:
            yield _message_delta(None)
        yield event
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield _message_delta(reason(reply))
    yield _event("message_stop")


def _blocks(reply: Reply, style: Style) -> Iterator[Event]:
    parts = parts_of(reply)
    if style.overlapping:
        yield from _overlapping(parts, reply)
        return
    for index, part in enumerate(parts):
        yield _start(index, part)
        yield from (_delta(index, chunk) for chunk in part.chunks if _says(chunk))
        if not part.is_whole:
            return
        yield _event("content_block_stop", index=index)


def _overlapping(parts: list[Part], reply: Reply) -> Iterator[Event]:
    opened: list[Part] = []
    for part, chunk in overlapping(parts, reply):
        # Clients append blocks as they begin, so those before one that begins must have begun, too.
        while part not in opened:
            yield _start(len(opened), parts[len(opened)])
            opened.append(parts[len(opened)])
        if _says(chunk):
            yield _delta(parts.index(part), chunk)
    for index, part in enumerate(parts):
        if part not in opened:
            yield _start(index, part)
        if part.is_whole:
            yield _event("content_block_stop", index=index)


def _start(index: int, part: Part) -> Event:
    block = {"type": "text", "text": ""} if part.call is None else tool_use(part.call, {})
    return _event("content_block_start", index=index, content_block=block)


def _says(chunk: Chunk) -> bool:
    return chunk.text is not None or chunk.arguments is not None


def _delta(index: int, chunk: Chunk) -> Event:
    if chunk.call is None:
        return _event("content_block_delta", index=index, delta={"type": "text_delta", "text": chunk.text})
    delta = {"type": "input_json_delta", "partial_json": chunk.arguments}
    return _event("content_block_delta", index=index, delta=delta)


def _message_delta(stop_reason: str | None) -> Event:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return _event("message_delta", delta=delta, usage={"output_tokens": USAGE["output_tokens"]})


def _event(kind: str, **facts: Any) -> Event:
    return Event(name=kind, data={"type": kind, **facts})
