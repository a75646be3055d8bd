"""
What an input of the model tells it that it did not know: messages, results, and what it is told about itself wrongly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from .calls import CallSeen
from .turns import Exchange
from .wording import said, said_call


def news(exchange: Exchange) -> Iterator[str]:
    """
    Says what an input of the model holds that it was not told before, and does not know of itself.

    Results that follow each other are said in the order of their calls: which tool was faster is chance.
    """
    start = 0
    if exchange.before is not None:
        start = len(exchange.before.items) if exchange.differs is None else exchange.differs
    if exchange.differs is not None:
        yield "is asked with another history than before"
    results = _calls_of_results(exchange)
    for is_result, indexes in groupby(
        range(start, len(exchange.items)), lambda at: exchange.items[at]["kind"] == "result"
    ):
        if is_result:
            yield from _results(exchange, list(indexes), results)
        else:
            yield from _items(exchange, indexes)


def _results(exchange: Exchange, indexes: Sequence[int], calls: Mapping[int, CallSeen]) -> Iterator[str]:
    made = {id(call): number for number, (_, call) in enumerate(exchange.placed)}
    for index in sorted(indexes, key=lambda at: made[id(calls[at])] if at in calls else len(made)):
        label = calls[index].label if index in calls else "of an unknown call"
        yield f"is told {label}: {said(exchange.items[index].get('text'))}"


def _calls_of_results(exchange: Exchange) -> dict[int, CallSeen]:
    """Gives the call that each result in an input belongs to, by position: each call takes one, in order."""
    waiting: dict[Any, list[CallSeen]] = {}
    settled: dict[Any, CallSeen] = {}
    placed = dict(exchange.placed)
    found: dict[int, CallSeen] = {}
    for index, item in enumerate(exchange.items):
        seen = item.get("id")
        if index in placed:
            waiting.setdefault(seen, []).append(placed[index])
        elif item["kind"] == "result":
            if waiting.get(seen):
                settled[seen] = waiting[seen].pop(0)
            if seen in settled:
                found[index] = settled[seen]
    return found


def _items(exchange: Exchange, indexes: Iterable[int]) -> Iterator[str]:
    placed = {index for index, _ in exchange.placed}
    for index in indexes:
        item = exchange.items[index]
        kind, text = item["kind"], said(item.get("text"))
        if kind == "user":
            yield f"is asked {text}"
        elif kind == "approval_response":
            yield f"is told that the caller {'approves' if item.get('approved') else 'rejects'} {said(item.get('id'))}"
        elif kind in ("call", "approval_request") and index not in placed:
            made = said_call(item.get("tool") or "", item.get("arguments"))
            yield f"is told that it made a call: {made}"
        elif kind == "other" or (kind == "say" and exchange.differs is not None):
            yield f"is told {text}" if kind == "other" else f"is told that it said {text}"
