"""Messages replies: whole messages of the assistant, and streams of their blocks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Reply, Thought
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.streaming import (
    PartKey,
    SseEvent,
    StreamPart,
    StreamStyle,
    list_part_keys,
    stream_parts,
)
from pytest_approvals.protocols.text import parse_object

USAGE = {
    "input_tokens": 1,
    "output_tokens": 1,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "service_tier": "standard",
}


def build_message(request: ParsedRequest, reply: Reply, message_id: str) -> dict[str, Any]:
    """Return a reply as a message."""
    blocks = [_block(reply, key) for key in list_part_keys(reply)]
    return {**_message_head(request, message_id), "content": blocks, "stop_reason": _stop_reason(reply)}


def _block(reply: Reply, key: PartKey) -> dict[str, Any]:
    kind, position = key
    if kind == "thought":
        return _thinking_block(reply.thoughts[position])
    if kind == "text":
        return {"type": "text", "text": reply.say}
    call = reply.calls[position]
    # Arguments without text are an empty input, as they are in a stream.
    return _tool_use_block(call, parse_object(call.arguments) or {})


def _thinking_block(thought: Thought) -> dict[str, Any]:
    if thought.text is None:
        return {"type": "redacted_thinking", "data": thought.signature}
    return {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


def _message_head(request: ParsedRequest, message_id: str) -> dict[str, Any]:
    """Return a message without content."""
    return {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": USAGE,
    }


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _tool_use_block(call: ModelCall, value: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call.id, "name": call.tool, "input": value}


def stream_message(request: ParsedRequest, reply: Reply, style: StreamStyle, message_id: str) -> Iterator[SseEvent]:
    """Return the events of a streamed message; see `ProtocolCodec.events`."""
    yield _named_event("message_start", message=_message_head(request, message_id))
    for event in _block_events(reply, style):
        if style.comments:
            yield _named_event("ping")
        if style.usage:
            yield _message_delta(None)
        yield event
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield _message_delta(_stop_reason(reply))
    yield _named_event("message_stop")


def _block_events(reply: Reply, style: StreamStyle) -> Iterator[SseEvent]:
    for index, part, step in stream_parts(reply, overlapping=style.overlapping):
        if step == "begin":
            yield _block_start(index, part)
        elif step == "end":
            if part.thought is not None and part.thought.text is not None:
                delta = {"type": "signature_delta", "signature": part.thought.signature}
                yield _named_event("content_block_delta", index=index, delta=delta)
            yield _named_event("content_block_stop", index=index)
        elif part.thought is not None and part.thought.text is None:
            continue
        elif step.text is not None or step.arguments is not None:
            yield _block_delta(index, step)


def _block_start(index: int, part: StreamPart) -> SseEvent:
    if part.thought is not None:
        block = _thinking_block(part.thought)
        # Text and signature follow in deltas; encrypted reasoning has none.
        block |= {} if part.thought.text is None else {"thinking": "", "signature": ""}
    else:
        block = {"type": "text", "text": ""} if part.call is None else _tool_use_block(part.call, {})
    return _named_event("content_block_start", index=index, content_block=block)


def _block_delta(index: int, chunk: Chunk) -> SseEvent:
    if chunk.thought is not None:
        delta = {"type": "thinking_delta", "thinking": chunk.text}
        return _named_event("content_block_delta", index=index, delta=delta)
    if chunk.call is None:
        return _named_event("content_block_delta", index=index, delta={"type": "text_delta", "text": chunk.text})
    delta = {"type": "input_json_delta", "partial_json": chunk.arguments}
    return _named_event("content_block_delta", index=index, delta=delta)


def _message_delta(stop_reason: str | None) -> SseEvent:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return _named_event("message_delta", delta=delta, usage={"output_tokens": USAGE["output_tokens"]})


def _named_event(kind: str, **facts: Any) -> SseEvent:
    return SseEvent(name=kind, data={"type": kind, **facts})
