"""Numbering a changed journal anew, so that its numbers do not give the change away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .edits import LISTINGS, Written

_BEGINS = {"turn.start": "turn", "model.request": "m", "tool.start": "x"}
_REFERS = {
    "turn.end": "turn",
    "caller.shown": "turn",
    "model.answer": "m",
    "model.failure": "m",
    "model.refusal": "m",
    "model.exhausted": "m",
    "tool.end": "x",
}


def renumbered(events: Sequence[Written]) -> list[Written]:
    """
    Gives events with positions, turns, questions, executions and requests numbered as they come.

    What refers to something follows it; what refers to something that is gone keeps its number.
    """
    moved: dict[int, int] = {}
    for position, event in enumerate(events, 1):
        moved.setdefault(event["n"], position)
    numbers = _Numbers()
    return [numbers.give(event | {"n": position}, moved) for position, event in enumerate(events, 1)]


class _Numbers:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.given: dict[tuple[str, int], int] = {}
        self.requests: dict[str, str] = {}

    def give(self, event: Written, moved: dict[int, int]) -> Written:
        kind = event["event"]
        if kind in _BEGINS:
            self._begin(event, _BEGINS[kind])
        elif kind in _REFERS:
            field = _REFERS[kind]
            event[field] = self.given.get((field, event[field]), event[field])
        if "decisions" in event:
            event["decisions"] = [moved[n] for n in event["decisions"] if n in moved]
        if kind in LISTINGS and event.get(LISTINGS[kind]):
            event[LISTINGS[kind]] = [request | {"q": self._q(request["q"])} for request in event[LISTINGS[kind]]]
        if kind == "caller.decide" and "q" in event:
            event["q"] = self.requests.get(event["q"], event["q"])
        if kind == "caller.stuck":
            event["requests"] = self._known(event["requests"])
        return event

    def _begin(self, event: Written, field: str) -> None:
        self.counts[field] = number = self.counts.get(field, 0) + 1
        self.given[field, event[field]] = number
        event[field] = number

    def _q(self, old: str) -> str:
        return self.requests.setdefault(old, f"q{len(self.requests) + 1}")

    def _known(self, numbers: Iterable[str]) -> list[Any]:
        return [self.requests.get(q, q) for q in numbers]
