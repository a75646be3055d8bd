"""Responses as streams of events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from pytest_approvals.agent_side.neutral import Chunk, Reply
from pytest_approvals.protocols.pieces import Part, overlapping, parts_of
from pytest_approvals.protocols.sse import Event, Style

from .render import begun, text_part


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """
    The items of one response.

    Attributes:
        first: What the provider did itself: lists of tools, and calls that it ran.
        said: The items of the reply's text and calls, by their position in the reply; None is the text.
    """

    first: tuple[Mapping[str, Any], ...]
    said: Mapping[int | None, Mapping[str, Any]]

    @property
    def items(self) -> list[Mapping[str, Any]]:
        """All items, in their order."""
        return [*self.first, *self.said.values()]


class Stream:
    """The events of the items of one response, with their numbers."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._numbers = count()

    def event(self, kind: str, **facts: Any) -> Event:
        """Gives an event with the next number."""
        return Event(name=kind, data={"type": kind, "sequence_number": next(self._numbers), **facts})

    def items(self, reply: Reply, style: Style) -> Iterator[Event]:
        """Gives the events of all items, of a stream that breaks up to there."""
        for index, item in enumerate(self._output.first):
            yield from self._of_provider(index, item)
        parts = parts_of(reply)
        if style.overlapping:
            yield from self._overlapping(parts, reply)
            return
        for part in parts:
            yield from self._begin(part)
            for chunk in part.chunks:
                yield from self._delta(part, chunk)
            if not part.is_whole:
                return
            yield from self._end(part)

    def _overlapping(self, parts: list[Part], reply: Reply) -> Iterator[Event]:
        begun_parts: list[Part] = []
        for part, chunk in overlapping(parts, reply):
            # Clients append items as they begin, so those before one that begins must have begun, too.
            while part not in begun_parts:
                following = parts[len(begun_parts)]
                yield from self._begin(following)
                begun_parts.append(following)
            yield from self._delta(part, chunk)
        for part in parts:
            if part not in begun_parts:
                yield from self._begin(part)
            if part.is_whole:
                yield from self._end(part)

    def _place(self, part: Part) -> tuple[int, Mapping[str, Any]]:
        positions = list(self._output.said)
        return len(self._output.first) + positions.index(part.position), self._output.said[part.position]

    def _begin(self, part: Part) -> Iterator[Event]:
        index, item = self._place(part)
        yield self.event("response.output_item.added", output_index=index, item=begun(item))
        if item["type"] == "message":
            yield self._part_event("added", index, item, "")

    def _delta(self, part: Part, chunk: Chunk) -> Iterator[Event]:
        index, item = self._place(part)
        place = {"item_id": item["id"], "output_index": index}
        if chunk.text is not None:
            more = {"content_index": 0, "delta": chunk.text, "logprobs": []}
            yield self.event("response.output_text.delta", **place, **more)
        elif chunk.arguments is not None and item["type"] == "function_call":
            yield self.event("response.function_call_arguments.delta", **place, delta=chunk.arguments)

    def _end(self, part: Part) -> Iterator[Event]:
        index, item = self._place(part)
        place = {"item_id": item["id"], "output_index": index}
        if item["type"] == "message":
            text = item["content"][0]["text"]
            yield self.event("response.output_text.done", **place, content_index=0, text=text, logprobs=[])
            yield self._part_event("done", index, item, text)
        elif item["type"] == "function_call":
            facts = {"name": item["name"], "arguments": item["arguments"]}
            yield self.event("response.function_call_arguments.done", **place, **facts)
        yield self.event("response.output_item.done", output_index=index, item=dict(item))

    def _part_event(self, how: str, index: int, item: Mapping[str, Any], text: str) -> Event:
        place = {"item_id": item["id"], "output_index": index, "content_index": 0}
        return self.event(f"response.content_part.{how}", **place, part=text_part(text))

    def _of_provider(self, index: int, item: Mapping[str, Any]) -> Iterator[Event]:
        """Gives the events of what the provider did itself; `mcp_call` shows its arguments, too."""
        kind = str(item["type"])
        place = {"item_id": item["id"], "output_index": index}
        yield self.event("response.output_item.added", output_index=index, item=begun(item))
        yield self.event(f"response.{kind}.in_progress", **place)
        if kind == "mcp_call":
            yield self.event("response.mcp_call_arguments.delta", **place, delta=item["arguments"])
            yield self.event("response.mcp_call_arguments.done", **place, arguments=item["arguments"])
        how = "completed" if item.get("error") is None else "failed"
        yield self.event(f"response.{kind}.{how}", **place)
        yield self.event("response.output_item.done", output_index=index, item=dict(item))
