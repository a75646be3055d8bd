"""
The scripted model as the framework's client for Responses plays it.

In a stream, the id and the name of a call are known from its beginning and stand in each piece of it; its end tells the
arguments once more, as a whole that stands in place of the pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from agent_framework import Content

from ...contract import ModelCall, Reply
from .contents import OCCURRENCES, answered, call, ran, written
from .model import ScriptedClient


class ResponsesClient(ScriptedClient):
    """The chat client of one agent."""

    def _pieces(self, reply: Reply) -> Iterable[Any]:
        return pieces(reply)


def pieces(reply: Reply) -> Iterator[Any]:
    """Gives a reply in the pieces in which it is streamed."""
    yield from ran(reply.hosted)
    last = {chunk.call: number for number, chunk in enumerate(reply.chunks)}
    for number, chunk in enumerate(reply.chunks):
        if chunk.call is None:
            yield Content.from_text(chunk.text or "")
            continue
        one = reply.calls[chunk.call]
        if one.kind == "hosted_mcp":
            continue
        if chunk.arguments:
            yield _piece(one, chunk.arguments, "append")
        if last[chunk.call] == number and not reply.breaks:
            yield from _end(one)
    if not reply.breaks:
        # A hosted server's request comes whole.
        yield from (call(one) for one in reply.calls if one.kind == "hosted_mcp")
        yield from answered(reply)


def _end(one: ModelCall) -> Iterator[Any]:
    # Early releases have no way to say that a whole stands in place of pieces, and say it only where there are none.
    if OCCURRENCES:
        yield _piece(one, written(one.arguments), "replace")
    elif not written(one.arguments):
        yield _piece(one, "", "append")


def _piece(one: ModelCall, arguments: str, mode: str) -> Any:
    merged: Any = {"merge_mode": mode} if OCCURRENCES else {}
    return Content.from_function_call(call_id=one.id or "", name=one.tool, arguments=arguments, **merged)
