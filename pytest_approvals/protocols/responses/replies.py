"""Responses replies: responses with their items, and streams of their events."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from pytest_approvals.agent_side.contract.types import Chunk, HostedResult, ModelCall, Reply, Thought
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.responses.requests import HOSTED_CALL_PREFIX, allowed_tools
from pytest_approvals.protocols.streaming import PartKey, SseEvent, StreamPart, StreamStyle, stream_parts
from pytest_approvals.protocols.text import arguments_text, list_objects, to_json

USAGE = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}

_ECHOED = ("max_tool_calls", "prompt_cache_key", "prompt_cache_retention", "safety_identifier", "top_logprobs")
"""Parameters that a response shows only if its request has them."""


def build_response(
    request: ParsedRequest, response_id: str, output: Sequence[Mapping[str, Any]], status: str
) -> dict[str, Any]:
    """Return the response that holds these items."""
    body = request.body
    is_done = status == "completed"
    return {
        "id": response_id,
        "object": "response",
        "created_at": 0,
        "completed_at": 0 if is_done else None,
        "status": status,
        "background": body.get("background") is True,
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "max_output_tokens": body.get("max_output_tokens"),
        "model": request.model,
        "output": list(output),
        "parallel_tool_calls": body.get("parallel_tool_calls") is not False,
        "previous_response_id": body.get("previous_response_id"),
        "reasoning": {"effort": None, "summary": None, **(body.get("reasoning") or {})},
        "service_tier": "default",
        "temperature": body.get("temperature", 1.0),
        "text": body.get("text") or {"format": {"type": "text"}},
        "tool_choice": body.get("tool_choice") or "auto",
        "tools": [_shown_tool(tool) for tool in list_objects(body.get("tools"))],
        "top_p": body.get("top_p", 1.0),
        "truncation": body.get("truncation") or "disabled",
        "usage": USAGE if is_done else None,
        "user": body.get("user"),
        "metadata": body.get("metadata") or {},
        **{name: body[name] for name in _ECHOED if name in body},
        **_conversation_field(body.get("conversation")),
    }


def _shown_tool(tool: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a tool as a response shows it: a function has all fields, also those that the request left out."""
    is_whole = tool.get("type") != "function" or ("parameters" in tool and "strict" in tool)
    return tool if is_whole else {"parameters": None, "strict": True, **tool}


def _conversation_field(named: Any) -> dict[str, Any]:
    if not named:
        return {}
    return {"conversation": {"id": named.get("id") if isinstance(named, Mapping) else named}}


def hosted_call_items(reply: Reply) -> list[dict[str, Any]]:
    """Return the items of the calls that the provider executed."""
    return [_hosted_call_item(result) for result in reply.hosted]


def message_item(text: str | None, item_id: str) -> dict[str, Any]:
    """Return a message of the model; one without text is in progress."""
    return {
        "id": item_id,
        "type": "message",
        "role": "assistant",
        "status": "in_progress" if text is None else "completed",
        "content": [] if text is None else [text_part(text)],
    }


def text_part(text: str) -> dict[str, Any]:
    """Return the part of a message that holds its text."""
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def reasoning_item(thought: Thought, *, encrypted: bool) -> dict[str, Any]:
    """Return a piece of reasoning; *encrypted* if the request includes its encrypted content."""
    summary = [] if thought.text is None else [_summary_part(thought.text)]
    content = {"encrypted_content": thought.signature} if encrypted else {}
    return {"id": thought.id, "type": "reasoning", "summary": summary, **content}


def _summary_part(text: str) -> dict[str, Any]:
    return {"type": "summary_text", "text": text}


def call_item(call: ModelCall, item_id: str) -> dict[str, Any]:
    """Return a call of the model: of a function, or the approval request of a hosted call."""
    if call.kind == "hosted_mcp":
        return {
            "id": call.id or f"mcpr_{item_id}",
            "type": "mcp_approval_request",
            "arguments": arguments_text(call),
            "name": call.tool,
            "server_label": call.server or "",
        }
    return {
        "id": item_id,
        "type": "function_call",
        "status": "completed",
        "arguments": arguments_text(call),
        "call_id": call.id,
        "name": call.tool,
    }


def as_in_progress(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item as a stream shows it at its beginning."""
    kind = item["type"]
    if kind == "message":
        return message_item(None, str(item["id"]))
    if kind == "reasoning":
        return {**item, "summary": []}
    if kind == "function_call":
        return {**item, "arguments": "", "status": "in_progress"}
    if kind == "mcp_call":
        return {**item, "arguments": "", "output": None, "error": None, "status": "in_progress"}
    return {**item, "tools": []} if kind == "mcp_list_tools" else dict(item)


def tool_list_items(
    request: ParsedRequest,
    before: Iterable[Mapping[str, Any]],
    servers: Mapping[str, Sequence[Mapping[str, Any]]],
    key: str,
) -> list[dict[str, Any]]:
    """Return the tool lists of the servers whose list is not in the conversation yet.

    Args:
        request: The request that names the servers.
        before: The conversation so far.
        servers: What each server offers; an unknown one offers what the request allows.
        key: A part of the items' ids.
    """
    known = {item.get("server_label") for item in before if item.get("type") == "mcp_list_tools"}
    items: list[dict[str, Any]] = []
    for tool in list_objects(request.body.get("tools")):
        label = str(tool.get("server_label"))
        if tool.get("type") == "mcp" and label not in known:
            known.add(label)
            listed = _listed_tools(tool, servers.get(label))
            item_id = f"mcpl_{key}_{len(items)}"
            items.append({"id": item_id, "type": "mcp_list_tools", "server_label": label, "tools": listed})
    return items


def _listed_tools(tool: Mapping[str, Any], offered: Sequence[Mapping[str, Any]] | None) -> list[Mapping[str, Any]]:
    allowed = allowed_tools(tool)
    if offered is not None:
        return [entry for entry in offered if not allowed or entry.get("name") in allowed]
    # Some clients fail on a description or annotations of null.
    more = {
        "input_schema": {"type": "object", "properties": {}, "additionalProperties": True},
        "annotations": {"read_only": False},
    }
    return [{"name": name, "description": f"The tool {name}.", **more} for name in allowed]


def _hosted_call_item(result: HostedResult) -> dict[str, Any]:
    return {
        "id": f"{HOSTED_CALL_PREFIX}{result.call_id}",
        "type": "mcp_call",
        "status": "completed" if result.error is None else "failed",
        "approval_request_id": result.call_id if result.was_asked else None,
        "arguments": to_json(dict(result.arguments)),
        "error": None if result.error is None else _hosted_error(result.error),
        "name": result.tool,
        "output": result.output,
        "server_label": result.server or "",
    }


def _hosted_error(text: str) -> dict[str, Any]:
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResponseOutput:
    """The items of one response.

    Attributes:
        from_provider: What the provider did itself: lists of tools, and calls that it executed.
        from_model: The items of the reply's reasoning, text and calls, by the key of their part.
    """

    from_provider: tuple[Mapping[str, Any], ...]
    from_model: Mapping[PartKey, Mapping[str, Any]]

    @property
    def items(self) -> list[Mapping[str, Any]]:
        """All items, in their order."""
        return [*self.from_provider, *self.from_model.values()]


class ResponseStream:
    """The numbered events of the items of one response."""

    def __init__(self, output: ResponseOutput) -> None:
        self._output = output
        self._numbers = count()

    def event(self, kind: str, **facts: Any) -> SseEvent:
        """Return an event with the next number."""
        return SseEvent(name=kind, data={"type": kind, "sequence_number": next(self._numbers), **facts})

    def item_events(self, reply: Reply, style: StreamStyle) -> Iterator[SseEvent]:
        """Yield the events of all items; of a stream that breaks, those up to there."""
        for index, item in enumerate(self._output.from_provider):
            yield from self._provider_events(index, item)
        for _, part, step in stream_parts(reply, overlapping=style.overlapping):
            if step == "begin":
                yield from self._begin(part)
            elif step == "end":
                yield from self._end(part)
            else:
                yield from self._delta(part, step)

    def _locate(self, part: StreamPart) -> tuple[int, Mapping[str, Any]]:
        positions = list(self._output.from_model)
        index = len(self._output.from_provider) + positions.index(part.key)
        return index, self._output.from_model[part.key]

    def _begin(self, part: StreamPart) -> Iterator[SseEvent]:
        index, item = self._locate(part)
        yield self.event("response.output_item.added", output_index=index, item=as_in_progress(item))
        if item["type"] == "message":
            yield self._part_event("added", index, item, "")
        elif item["type"] == "reasoning" and item["summary"]:
            yield self._summary_event("part.added", index, item, part=_summary_part(""))

    def _delta(self, part: StreamPart, chunk: Chunk) -> Iterator[SseEvent]:
        index, item = self._locate(part)
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "reasoning":
            if item["summary"]:
                yield self._summary_event("text.delta", index, item, delta=chunk.text)
        elif chunk.text is not None:
            more = {"content_index": 0, "delta": chunk.text, "logprobs": []}
            yield self.event("response.output_text.delta", **place, **more)
        elif chunk.arguments is not None and item["type"] == "function_call":
            yield self.event("response.function_call_arguments.delta", **place, delta=chunk.arguments)

    def _end(self, part: StreamPart) -> Iterator[SseEvent]:
        index, item = self._locate(part)
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            text = item["content"][0]["text"]
            yield self.event("response.output_text.done", **place, content_index=0, text=text, logprobs=[])
            yield self._part_event("done", index, item, text)
        elif item["type"] == "reasoning" and item["summary"]:
            text = item["summary"][0]["text"]
            yield self._summary_event("text.done", index, item, text=text)
            yield self._summary_event("part.done", index, item, part=_summary_part(text))
        elif item["type"] == "function_call":
            facts = {"name": item["name"], "arguments": item["arguments"]}
            yield self.event("response.function_call_arguments.done", **place, **facts)
        yield self.event("response.output_item.done", output_index=index, item=dict(item))

    def _part_event(self, how: str, index: int, item: Mapping[str, Any], text: str) -> SseEvent:
        place = {"item_id": item["id"], "output_index": index, "content_index": 0}
        return self.event(f"response.content_part.{how}", **place, part=text_part(text))

    def _summary_event(self, how: str, index: int, item: Mapping[str, Any], **facts: Any) -> SseEvent:
        place = {"item_id": item["id"], "output_index": index, "summary_index": 0}
        return self.event(f"response.reasoning_summary_{how}", **place, **facts)

    def _provider_events(self, index: int, item: Mapping[str, Any]) -> Iterator[SseEvent]:
        """Yield the events of what the provider did itself; an `mcp_call` shows its arguments, too."""
        kind = str(item["type"])
        place = {"item_id": item["id"], "output_index": index}
        yield self.event("response.output_item.added", output_index=index, item=as_in_progress(item))
        yield self.event(f"response.{kind}.in_progress", **place)
        if kind == "mcp_call":
            yield self.event("response.mcp_call_arguments.delta", **place, delta=item["arguments"])
            yield self.event("response.mcp_call_arguments.done", **place, arguments=item["arguments"])
        how = "completed" if item.get("error") is None else "failed"
        yield self.event(f"response.{kind}.{how}", **place)
        yield self.event("response.output_item.done", output_index=index, item=dict(item))
