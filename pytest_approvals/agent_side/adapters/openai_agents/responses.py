"""Replies of the script as output items and stream events of the Responses API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseContentPartAddedEvent,
    ResponseContentPartDoneEvent,
    ResponseCreatedEvent,
    ResponseFunctionCallArgumentsDeltaEvent,
    ResponseFunctionCallArgumentsDoneEvent,
    ResponseFunctionToolCall,
    ResponseMcpCallCompletedEvent,
    ResponseMcpCallFailedEvent,
    ResponseOutputItem,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseReasoningSummaryPartAddedEvent,
    ResponseReasoningSummaryPartDoneEvent,
    ResponseReasoningSummaryTextDeltaEvent,
    ResponseReasoningSummaryTextDoneEvent,
    ResponseStreamEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)
from openai.types.responses.response_output_item import McpApprovalRequest, McpCall
from openai.types.responses.response_reasoning_item import Summary

from ...contract import Chunk, HostedResult, ModelCall, ModelDown, Reply, Thought
from ...kit.tool_schema import write_arguments


def build_output_items(reply: Reply, key: str) -> list[ResponseOutputItem]:
    """Return the items of *reply*: hosted calls that were run, the text, the structured answer, then the calls.

    Its reasoning precedes what it leads to.

    Args:
        reply: The reply of the script.
        key: The part of the items' ids that distinguishes replies.
    """
    items: list[ResponseOutputItem] = [_build_hosted_call(result) for result in reply.hosted]
    items += _build_reasoning_items(reply, None)
    if reply.say is not None:
        items.append(build_message(reply.say, f"msg_{key}"))
    if reply.answer is not None:
        items.append(build_message(write_arguments(reply.answer, ensure_ascii=False), f"msg_{key}_answer"))
    for index, call in enumerate(reply.calls):
        items += [*_build_reasoning_items(reply, index), _build_call_item(call, f"fc_{key}_{index}")]
    return items


def _build_reasoning_items(reply: Reply, before: int | None) -> list[ResponseReasoningItem]:
    return [_build_reasoning_item(thought) for thought in reply.thoughts if thought.before == before]


def _build_reasoning_item(thought: Thought) -> ResponseReasoningItem:
    summary = [] if thought.text is None else [Summary(type="summary_text", text=thought.text)]
    return ResponseReasoningItem(type="reasoning", id=thought.id, summary=summary, encrypted_content=thought.signature)


def build_message(text: str | None, item_id: str) -> ResponseOutputMessage:
    """Return a message of the model; with None one that has no text yet."""
    parts = [] if text is None else [build_text_part(text)]
    return ResponseOutputMessage(
        id=item_id,
        type="message",
        role="assistant",
        status="in_progress" if text is None else "completed",
        content=[*parts],
    )


def build_text_part(text: str) -> ResponseOutputText:
    """Return the part of a message that holds its text."""
    return ResponseOutputText(type="output_text", text=text, annotations=[])


def build_response(key: str, items: list[ResponseOutputItem], status: str = "completed") -> Response:
    """Return the response that holds *items*."""
    return Response.model_validate(
        {
            "id": f"resp_{key}",
            "created_at": 0,
            "model": "scripted",
            "object": "response",
            "output": [],
            "status": status,
            "tool_choice": "auto",
            "tools": [],
            "parallel_tool_calls": True,
        }
    ).model_copy(update={"output": items})


def _summary_part(text: str) -> dict[str, str]:
    return {"type": "summary_text", "text": text}


def _build_call_item(call: ModelCall, item_id: str) -> ResponseOutputItem:
    arguments = write_arguments(call.arguments, ensure_ascii=False)
    if call.kind == "hosted_mcp":
        return McpApprovalRequest(
            type="mcp_approval_request",
            id=call.id or item_id,
            name=call.tool,
            server_label=call.server or "",
            arguments=arguments,
        )
    return ResponseFunctionToolCall(
        type="function_call",
        id=item_id,
        call_id=call.id,  # type: ignore[arg-type]  # a call without an id fails here, as the type of the SDK says
        name=call.tool,
        arguments=arguments,
        status="completed",
    )


def _build_hosted_call(result: HostedResult) -> McpCall:
    return McpCall.model_validate(
        {
            "type": "mcp_call",
            "id": f"mcp_{result.call_id}",
            "approval_request_id": result.call_id if result.was_asked else None,
            "name": result.tool,
            "server_label": result.server or "",
            "arguments": write_arguments(result.arguments, ensure_ascii=False),
            "output": result.output,
            "error": None if result.error is None else _build_hosted_error(result.error),
            "status": "completed" if result.error is None else "failed",
        }
    )


def _build_hosted_error(text: str) -> Any:
    # Early releases of the client take the text of an error.
    if str in get_args(McpCall.model_fields["error"].annotation):
        return text
    return {"type": "mcp_tool_execution_error", "content": [{"type": "text", "text": text}]}


def build_stream_events(reply: Reply, items: list[ResponseOutputItem], key: str) -> Iterator[ResponseStreamEvent]:
    """Yield the events of a stream that plays the chunks of *reply*, whose complete items are *items*.

    Raises:
        ModelDown: The stream breaks after the last chunk.
    """
    stream = _EventStream(items)
    yield stream.event(ResponseCreatedEvent, "response.created", response=build_response(key, [], "in_progress"))
    places = {item.id: index for index, item in enumerate(items)}
    texts = [index for index, item in enumerate(items) if isinstance(item, ResponseOutputMessage)]
    calls = [index for index, item in enumerate(items) if isinstance(item, _CALLS)]
    for index in range(len(reply.hosted)):
        yield from stream.open(index)
    for chunk in reply.chunks:
        if chunk.thought is not None:
            yield from stream.reasoning_delta(places[reply.thoughts[chunk.thought].id], chunk.text or "")
        elif chunk.call is not None:
            yield from stream.call_delta(calls[chunk.call], chunk)
        elif chunk.text is not None and reply.say is not None:
            yield from stream.text_delta(texts[0], chunk.text)
    if reply.breaks:
        raise ModelDown(0, reply.how)
    if reply.answer is not None:
        yield from stream.text_delta(texts[-1], write_arguments(reply.answer, ensure_ascii=False))
    for index in range(len(items)):
        yield from stream.close(index)
    yield stream.event(ResponseCompletedEvent, "response.completed", response=build_response(key, items))


_CALLS = (ResponseFunctionToolCall, McpApprovalRequest)


class _EventStream:
    """Events of one stream: opens and closes each of its items once, and numbers the events."""

    def __init__(self, items: list[ResponseOutputItem]) -> None:
        self.items = items
        self._opened: set[int] = set()
        self._number = -1

    def event(self, kind: type[Any], type_: str, **facts: Any) -> Any:
        self._number += 1
        return kind(type=type_, sequence_number=self._number, **facts)

    def open(self, index: int) -> Iterator[ResponseStreamEvent]:
        if index in self._opened:
            return
        self._opened.add(index)
        item = self.items[index]
        begun = self._begun(item)
        yield self.event(ResponseOutputItemAddedEvent, "response.output_item.added", output_index=index, item=begun)
        if isinstance(item, ResponseReasoningItem) and item.summary:
            yield self._summary(ResponseReasoningSummaryPartAddedEvent, "part.added", index, part=_summary_part(""))
        if isinstance(item, ResponseOutputMessage):
            yield self._part(ResponseContentPartAddedEvent, "response.content_part.added", index, item, "")

    def _begun(self, item: ResponseOutputItem) -> ResponseOutputItem:
        if isinstance(item, ResponseOutputMessage):
            return build_message(None, item.id)
        if isinstance(item, ResponseReasoningItem):
            return item.model_copy(update={"summary": []})
        if isinstance(item, ResponseFunctionToolCall):
            return item.model_copy(update={"arguments": "", "status": "in_progress"})
        return item

    def text_delta(self, index: int, text: str) -> Iterator[ResponseStreamEvent]:
        yield from self.open(index)
        yield self.event(
            ResponseTextDeltaEvent,
            "response.output_text.delta",
            output_index=index,
            content_index=0,
            item_id=self.items[index].id,
            delta=text,
            logprobs=[],
        )

    def reasoning_delta(self, index: int, text: str) -> Iterator[ResponseStreamEvent]:
        yield from self.open(index)
        item = self.items[index]
        if isinstance(item, ResponseReasoningItem) and item.summary:
            yield self._summary(ResponseReasoningSummaryTextDeltaEvent, "text.delta", index, delta=text)

    def call_delta(self, index: int, chunk: Chunk) -> Iterator[ResponseStreamEvent]:
        # An approval request of hosted MCP has no events of its own, so its pieces show nothing.
        yield from self.open(index)
        if chunk.arguments is not None and isinstance(self.items[index], ResponseFunctionToolCall):
            yield self.event(
                ResponseFunctionCallArgumentsDeltaEvent,
                "response.function_call_arguments.delta",
                output_index=index,
                item_id=self.items[index].id,
                delta=chunk.arguments,
            )

    def close(self, index: int) -> Iterator[ResponseStreamEvent]:
        yield from self.open(index)
        item = self.items[index]
        if isinstance(item, ResponseOutputMessage):
            yield from self._end_of_text(index, item)
        elif isinstance(item, ResponseReasoningItem) and item.summary:
            text = item.summary[0].text
            yield self._summary(ResponseReasoningSummaryTextDoneEvent, "text.done", index, text=text)
            yield self._summary(ResponseReasoningSummaryPartDoneEvent, "part.done", index, part=_summary_part(text))
        elif isinstance(item, ResponseFunctionToolCall):
            yield self.event(
                ResponseFunctionCallArgumentsDoneEvent,
                "response.function_call_arguments.done",
                output_index=index,
                item_id=item.id,
                name=item.name,
                arguments=item.arguments,
            )
        elif isinstance(item, McpCall):
            yield self._end_of_hosted_call(index, item)
        yield self.event(ResponseOutputItemDoneEvent, "response.output_item.done", output_index=index, item=item)

    def _end_of_text(self, index: int, item: ResponseOutputMessage) -> Iterator[ResponseStreamEvent]:
        text = "".join(part.text for part in item.content if part.type == "output_text")
        yield self.event(
            ResponseTextDoneEvent,
            "response.output_text.done",
            output_index=index,
            content_index=0,
            item_id=item.id,
            text=text,
            logprobs=[],
        )
        yield self._part(ResponseContentPartDoneEvent, "response.content_part.done", index, item, text)

    def _end_of_hosted_call(self, index: int, item: McpCall) -> ResponseStreamEvent:
        outcome = "completed" if item.error is None else "failed"
        kind = ResponseMcpCallCompletedEvent if item.error is None else ResponseMcpCallFailedEvent
        ended: ResponseStreamEvent = self.event(
            kind, f"response.mcp_call.{outcome}", output_index=index, item_id=item.id
        )
        return ended

    def _summary(self, kind: type[Any], how: str, index: int, **facts: Any) -> Any:
        place = {"output_index": index, "summary_index": 0, "item_id": self.items[index].id}
        return self.event(kind, f"response.reasoning_summary_{how}", **place, **facts)

    def _part(self, kind: type[Any], name: str, index: int, item: ResponseOutputMessage, text: str) -> Any:
        return self.event(kind, name, output_index=index, content_index=0, item_id=item.id, part=build_text_part(text))
