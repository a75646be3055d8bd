"""Structured output on the wire.

A framework asks for output with fields in one of two ways: it offers a tool whose parameters are the fields, or it asks
for text in a format. The scripted model answers in the way that the request asks for, and recognizes its output when
the framework sends it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Chunk, Item, ModelCall, Reply
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.text import parse_object, to_json


def place_structured_output(reply: Reply, request: ParsedRequest, call_id: str) -> Reply:
    """Return *reply* with its structured output as a call or as text, whichever *request* asks for.

    Args:
        reply: The reply of the script.
        request: The request that it answers.
        call_id: The id of the call, if it becomes one.
    """
    if reply.answer is None:
        return reply
    answer = dict(reply.answer)
    tool = _find_output_tool(answer, request)
    if tool is None:
        # A stream that breaks does so before the output, so it has no chunk of it.
        text = to_json(answer)
        chunks: tuple[Chunk, ...] = () if reply.breaks else (Chunk(text=text),)
        return replace(reply, say=(reply.say or "") + text, answer=None, chunks=(*reply.chunks, *chunks))
    position = len(reply.calls)
    call = ModelCall(id=call_id, tool=tool, arguments=answer)
    chunks = () if reply.breaks else (Chunk(call=position, id=call_id, tool=tool, arguments=to_json(answer)),)
    return replace(reply, calls=(*reply.calls, call), answer=None, chunks=(*reply.chunks, *chunks))


def _find_output_tool(answer: Mapping[str, Any], request: ParsedRequest) -> str | None:
    if request.wants_json:
        return None
    # The output tool of a framework has exactly the fields of the output as its parameters.
    fields = frozenset(answer)
    return next((name for name, parameters in request.parameters.items() if parameters == fields), None)


class StructuredOutputs:
    """The structured outputs that a conversation was sent."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._ids: set[str] = set()

    def add(self, answer: Mapping[str, Any], call_id: str) -> None:
        """Add the output of a reply."""
        self._texts.add(to_json(dict(answer)))
        self._ids.add(call_id)

    def hide_in(self, items: Iterable[Item]) -> tuple[Item, ...]:
        """Return *items* with those that hold an output, or the result of one, as `other`."""
        if not self._texts:  # most conversations have none, and reading every text as JSON takes time
            return tuple(items)
        return tuple(_as_other(item) if self._holds(item) else item for item in items)

    def _holds(self, item: Item) -> bool:
        if item.kind in ("call", "result"):
            return item.id in self._ids
        # Compared as JSON, because a framework may send the text back with other white space.
        return item.kind == "say" and to_json(parse_object(item.text)) in self._texts


def _as_other(item: Item) -> Item:
    text = item.text if item.kind != "call" else json.dumps(item.arguments, ensure_ascii=False, separators=(",", ":"))
    return Item(kind="other", text=text, message=item.message)
