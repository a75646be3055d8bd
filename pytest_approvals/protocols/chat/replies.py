"""Chat Completions replies: whole completions, and streams of their chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Reply
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.streaming import SseEvent, StreamStyle
from pytest_approvals.protocols.text import arguments_text

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def build_completion(request: ParsedRequest, reply: Reply, completion_id: str) -> dict[str, Any]:
    """Return a reply as a completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.say, "refusal": None, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [_tool_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    return {
        **_completion_head(request, completion_id),
        "object": "chat.completion",
        "choices": [choice],
        "usage": USAGE,
    }


def _completion_head(request: ParsedRequest, completion_id: str) -> dict[str, Any]:
    """Return the fields that a completion and each of its chunks have in common."""
    return {
        "id": completion_id,
        "object": "",
        "created": 0,
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _tool_call(call: ModelCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": arguments_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def stream_completion(
    request: ParsedRequest, reply: Reply, style: StreamStyle, completion_id: str
) -> Iterator[SseEvent]:
    """Return the chunks of a streamed completion; see `ProtocolCodec.events`."""
    top = {**_completion_head(request, completion_id), "object": "chat.completion.chunk"}
    wants_usage = _wants_usage(request.body)
    # OpenAI begins a reply without text with a content of null.
    yield _chunk_event(top, {"role": "assistant", "content": None if reply.calls and reply.say is None else ""})
    for chunk in reply.chunks:
        if style.usage:
            yield SseEvent(data={**top, "choices": [], "usage": USAGE})
        yield _chunk_event(top, _delta(chunk))
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield _chunk_event(top, {}, _finish_reason(reply))
    # The chunk with the usage has no choices (API reference of `stream_options`).
    if wants_usage or style.usage:
        yield SseEvent(data={**top, "choices": [], "usage": USAGE})
    if style.done:
        yield SseEvent(data="[DONE]")


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


def _chunk_event(top: Mapping[str, Any], delta: dict[str, Any], ended: str | None = None) -> SseEvent:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": ended}
    return SseEvent(data={**top, "choices": [choice]})


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
