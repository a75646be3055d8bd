"""Replies as messages of the assistant.

Replies as streams of blocks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown, Unsupported
from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Reply
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.streaming import SseEvent, StreamPart, StreamStyle, interleave_parts, split_parts
from pytest_approvals.protocols.text import parse_object

USAGE = {
    "input_tokens": 1,
    "output_tokens": 1,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "service_tier": "standard",
}


def build_message(asked: ParsedRequest, reply: Reply, message_id: str) -> dict[str, Any]:
    """Gives a message."""
    reject_hosted(reply)
    blocks: list[dict[str, Any]] = [] if reply.say is None else [{"type": "text", "text": reply.say}]
    # A model that sends no text for arguments has sent an empty input, as it is in a stream.
    blocks += [tool_use_block(call, parse_object(call.arguments) or {}) for call in reply.calls]
    return {**message_head(asked, message_id), "content": blocks, "stop_reason": stop_reason(reply)}


def message_head(asked: ParsedRequest, message_id: str) -> dict[str, Any]:
    """Gives a message that has not begun."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }


def stop_reason(reply: Reply) -> str:
    """Gives the reason why the model stopped."""
    return "tool_use" if reply.calls else "end_turn"


def tool_use_block(call: ModelCall, given: Any) -> dict[str, Any]:
    """Gives the block of a call with that input."""
    return {"type": "tool_use", "id": call.id, "name": call.tool, "input": given}


def reject_hosted(reply: Reply) -> None:
    """
    Sees to it that a reply holds nothing of hosted MCP with approvals, which Messages does not have.

    Errors:
        Unsupported: It does.
    """
    if reply.hosted or any(call.kind == "hosted_mcp" for call in reply.calls):
        raise Unsupported("hosted_mcp", "Messages has no items for approvals")


def stream_message(asked: ParsedRequest, reply: Reply, style: StreamStyle, message_id: str) -> Iterator[SseEvent]:
    """Gives the events of a streamed message; see `Format.events`."""
    yield _named_event("message_start", message=message_head(asked, message_id))
    for event in _block_events(reply, style):
        if style.comments:
            yield _named_event("ping")
        if style.usage:
            yield _message_delta(None)
        yield event
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield _message_delta(stop_reason(reply))
    yield _named_event("message_stop")


def _block_events(reply: Reply, style: StreamStyle) -> Iterator[SseEvent]:
    parts = split_parts(reply)
    if style.overlapping:
        yield from _overlapping_events(parts, reply)
        return
    for index, part in enumerate(parts):
        yield _block_start(index, part)
        yield from (_block_delta(index, chunk) for chunk in part.chunks if _has_delta(chunk))
        if not part.is_whole:
            return
        yield _named_event("content_block_stop", index=index)


def _overlapping_events(parts: list[StreamPart], reply: Reply) -> Iterator[SseEvent]:
    opened: list[StreamPart] = []
    for part, chunk in interleave_parts(parts, reply):
        # Clients append blocks as they begin, so those before one that begins must have begun, too.
        while part not in opened:
            yield _block_start(len(opened), parts[len(opened)])
            opened.append(parts[len(opened)])
        if _has_delta(chunk):
            yield _block_delta(parts.index(part), chunk)
    for index, part in enumerate(parts):
        if part not in opened:
            yield _block_start(index, part)
        if part.is_whole:
            yield _named_event("content_block_stop", index=index)


def _block_start(index: int, part: StreamPart) -> SseEvent:
    block = {"type": "text", "text": ""} if part.call is None else tool_use_block(part.call, {})
    return _named_event("content_block_start", index=index, content_block=block)


def _has_delta(chunk: Chunk) -> bool:
    return chunk.text is not None or chunk.arguments is not None


def _block_delta(index: int, chunk: Chunk) -> SseEvent:
    if chunk.call is None:
        return _named_event("content_block_delta", index=index, delta={"type": "text_delta", "text": chunk.text})
    delta = {"type": "input_json_delta", "partial_json": chunk.arguments}
    return _named_event("content_block_delta", index=index, delta=delta)


def _message_delta(stop_reason: str | None) -> SseEvent:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return _named_event("message_delta", delta=delta, usage={"output_tokens": USAGE["output_tokens"]})


def _named_event(kind: str, **facts: Any) -> SseEvent:
    return SseEvent(name=kind, data={"type": kind, **facts})
