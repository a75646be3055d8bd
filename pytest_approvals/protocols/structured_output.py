"""
Structured answers on the wire.

A framework asks for an answer with fields in one of two ways: it offers a tool whose parameters are the fields, or it
asks for text in a format. The scripted model answers in the way that the request asks for, and knows the answer again
when the framework sends it back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from pytest_approvals.agent_side.contract.types import Chunk, Item, ModelCall, Reply
from pytest_approvals.protocols.codec import ParsedRequest
from pytest_approvals.protocols.text import parse_object, to_json


def place_structured_output(reply: Reply, asked: ParsedRequest, call_id: str) -> Reply:
    """
    Gives *reply* with its structured answer as a call or as text, whichever *asked* wants.

    Arguments:
        call_id: The id of the call, where it is one.
    """
    if reply.answer is None:
        return reply
    answer = dict(reply.answer)
    tool = _find_output_tool(answer, asked)
    if tool is None:
        text = to_json(answer)
        more: tuple[Chunk, ...] = () if reply.breaks else (Chunk(text=text),)
        return replace(reply, say=(reply.say or "") + text, answer=None, chunks=(*reply.chunks, *more))
    position = len(reply.calls)
    call = ModelCall(id=call_id, tool=tool, arguments=answer)
    more = () if reply.breaks else (Chunk(call=position, id=call_id, tool=tool, arguments=to_json(answer)),)
    return replace(reply, calls=(*reply.calls, call), answer=None, chunks=(*reply.chunks, *more))


def _find_output_tool(answer: Mapping[str, Any], asked: ParsedRequest) -> str | None:
    if asked.formatted:
        return None
    fields = frozenset(answer)
    return next((name for name, parameters in asked.parameters.items() if parameters == fields), None)


class StructuredOutputs:
    """The structured answers that a conversation was given."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._ids: set[str] = set()

    def given(self, answer: Mapping[str, Any], call_id: str) -> None:
        """Notes the answer of a reply."""
        self._texts.add(to_json(dict(answer)))
        self._ids.add(call_id)

    def hide_in(self, items: Iterable[Item]) -> tuple[Item, ...]:
        """Gives *items* with those that hold an answer, or the response to one, as `other`."""
        return tuple(_as_other(item) if self._holds(item) else item for item in items)

    def _holds(self, item: Item) -> bool:
        if item.kind in ("call", "result"):
            return item.id in self._ids
        return item.kind == "say" and to_json(parse_object(item.text)) in self._texts


def _as_other(item: Item) -> Item:
    told = item.text if item.kind != "call" else json.dumps(item.arguments, ensure_ascii=False, separators=(",", ":"))
    return Item(kind="other", text=told, message=item.message)
