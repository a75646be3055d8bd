"""A reply of the script as the events that the Responses API streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from openai.types.responses import (
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
    ResponseStreamEvent,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)
from openai.types.responses.response_output_item import McpCall

from ...contract import Chunk, ModelDown, Reply
from .output import arguments_text, message, response, text_part


def events(reply: Reply, items: list[ResponseOutputItem], key: str) -> Iterator[ResponseStreamEvent]:
    """
    Gives the events of a stream that plays the chunks of *reply*, whose complete items are *items*.

    Errors:
        ModelDown: The stream breaks after the last chunk.
    """
    stream = _Stream(items)
    yield stream.event(ResponseCreatedEvent, "response.created", response=response(key, [], "in_progress"))
    first_text = len(reply.hosted)
    first_call = first_text + (reply.say is not None) + (reply.answer is not None)
    for index in range(first_text):
        yield from stream.open(index)
    for chunk in reply.chunks:
        if chunk.call is not None:
            yield from stream.call_delta(first_call + chunk.call, chunk)
        elif chunk.text is not None and reply.say is not None:
            yield from stream.text_delta(first_text, chunk.text)
    if reply.breaks:
        raise ModelDown(0, reply.how)
    if reply.answer is not None:
        yield from stream.text_delta(first_call - 1, arguments_text(reply.answer))
    for index in range(len(items)):
        yield from stream.close(index)
    yield stream.event(ResponseCompletedEvent, "response.completed", response=response(key, items))


class _Stream:
    """Opens and closes the items of one stream, each once, and numbers its events."""

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
        if isinstance(item, ResponseOutputMessage):
            yield self._part(ResponseContentPartAddedEvent, "response.content_part.added", index, item, "")

    def _begun(self, item: ResponseOutputItem) -> ResponseOutputItem:
        if isinstance(item, ResponseOutputMessage):
            return message(None, item.id)
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
        how = "completed" if item.error is None else "failed"
        kind = ResponseMcpCallCompletedEvent if item.error is None else ResponseMcpCallFailedEvent
        ended: ResponseStreamEvent = self.event(kind, f"response.mcp_call.{how}", output_index=index, item_id=item.id)
        return ended

    def _part(self, kind: type[Any], name: str, index: int, item: ResponseOutputMessage, text: str) -> Any:
        return self.event(kind, name, output_index=index, content_index=0, item_id=item.id, part=text_part(text))
