"""Replies as completions.

Replies as streams of completion chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown, Unsupported
from pytest_approvals.agent_side.contract.types import Chunk, ModelCall, Reply
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.streaming import SseEvent, StreamStyle
from pytest_approvals.protocols.text import arguments_text

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def build_completion(asked: ParsedRequest, reply: Reply, completion_id: str) -> dict[str, Any]:
    """Gives a completion."""
    reject_hosted(reply)
    message: dict[str, Any] = {"role": "assistant", "content": reply.say, "refusal": None, "annotations": []}
    if reply.calls:
        message["tool_calls"] = [_tool_call(call) for call in reply.calls]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason(reply)}
    return {**completion_head(asked, completion_id), "object": "chat.completion", "choices": [choice], "usage": USAGE}


def completion_head(asked: ParsedRequest, completion_id: str) -> dict[str, Any]:
    """Gives what stands in a completion and in each of its chunks."""
    return {
        "id": completion_id,
        "object": "",
        "created": 0,
        "model": asked.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def finish_reason(reply: Reply) -> str:
    """Gives the reason why the model stopped."""
    return "tool_calls" if reply.calls else "stop"


def reject_hosted(reply: Reply) -> None:
    """
    Sees to it that a reply holds nothing of hosted MCP.

    Errors:
        Unsupported: It does.
    """
    if reply.hosted or any(call.kind == "hosted_mcp" for call in reply.calls):
        raise Unsupported("hosted_mcp", "Chat Completions has no items for it")


def _tool_call(call: ModelCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": arguments_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def stream_completion(asked: ParsedRequest, reply: Reply, style: StreamStyle, completion_id: str) -> Iterator[SseEvent]:
    """Gives the chunks of a streamed completion; see `Format.events`."""
    top = {**completion_head(asked, completion_id), "object": "chat.completion.chunk"}
    wants_usage = _wants_usage(asked.body)
    yield _chunk_event(top, {"role": "assistant", "content": None if reply.calls and reply.say is None else ""})
    for chunk in reply.chunks:
        if style.usage:
            yield SseEvent(data={**top, "choices": [], "usage": USAGE})
        yield _chunk_event(top, _delta(chunk))
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield _chunk_event(top, {}, finish_reason(reply))
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
