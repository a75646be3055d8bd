"""Edits of serialized journals, and renumbering of what they leave."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SerializedEvent = dict[str, Any]
"""An event as it is written to a journal."""

LISTINGS = {"turn.end": "requests", "store.restore": "pending", "run.end": "pending"}
"""The events that list requests, and the field with the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of a journal.

    Attributes:
        what: What was changed, by kinds and fields.
        n: Where, in the journal that was changed.
        events: The events afterwards, not renumbered yet.
    """

    what: str
    n: int
    events: Sequence[SerializedEvent]


def edit_field(events: Sequence[SerializedEvent], index: int, field: str, value: Any, note: str = "") -> Edit:
    """Return the edit that sets a field of one event; None removes it."""
    event = {name: value for name, value in events[index].items() if name != field}
    if value is not None:
        event[field] = value
    what = f"{event['event']} {note or field}"
    return Edit(what=what, n=events[index]["n"], events=[*events[:index], event, *events[index + 1 :]])


def edit_element(
    events: Sequence[SerializedEvent], index: int, field: str, at: int, changes: Mapping[str, Any], note: str
) -> Edit:
    """Return the edit that changes one element of a list in one event."""
    elements = copy.deepcopy(events[index][field])
    elements[at] |= changes
    return edit_field(events, index, field, elements, note)


def edit_insert(events: Sequence[SerializedEvent], index: int, new: Sequence[SerializedEvent], what: str) -> Edit:
    """Return the edit that inserts events before the one at *index*."""
    n = events[min(index, len(events) - 1)]["n"]
    return Edit(what=what, n=n, events=[*events[:index], *new, *events[index:]])


def select_events(events: Sequence[SerializedEvent], *kinds: str) -> Iterator[tuple[int, SerializedEvent]]:
    """Yield the events of these kinds with their indexes."""
    return ((index, event) for index, event in enumerate(events) if event["event"] in kinds)


def listed_requests(events: Sequence[SerializedEvent]) -> Iterator[tuple[int, str, int, SerializedEvent]]:
    """Yield every request that is listed anywhere: index of the event, field, index in the list, request."""
    for index, event in select_events(events, *LISTINGS):
        field = LISTINGS[event["event"]]
        for at, request in enumerate(event.get(field, ())):
            yield index, field, at, request


def model_calls(events: Sequence[SerializedEvent]) -> list[SerializedEvent]:
    """Return all calls that models made, in order."""
    return [call for _, answer in select_events(events, "model.answer") for call in answer.get("calls", ())]


def different_value(value: Any) -> Any:
    """Return a value of the same kind that is not *value*.

    >>> different_value({"amount": 5, "to": "Ann"}), different_value("text"), different_value(True)
    ({'amount': 6, 'to': 'Ann'}, 'quite another text', False)
    """
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return "quite another text"
    if isinstance(value, dict) and value:
        first = next(iter(value))
        return value | {first: different_value(value[first])}
    if isinstance(value, list):
        return [*value, "more"]
    return "something"


_NUMBERING_EVENTS = {"turn.start": "turn", "model.request": "m", "tool.start": "x"}
_REFERRING_EVENTS = {
    "turn.end": "turn",
    "caller.shown": "turn",
    "model.answer": "m",
    "model.failure": "m",
    "model.refusal": "m",
    "model.exhausted": "m",
    "tool.end": "x",
}


def renumber(events: Sequence[SerializedEvent]) -> list[SerializedEvent]:
    """Return events with positions, turns, model requests, executions and requests numbered as they come.

    References follow what they refer to; a reference to something that is gone keeps its number. So no number gives the
    change away.
    """
    moved: dict[int, int] = {}
    for position, event in enumerate(events, 1):
        # A duplicated event has its number twice; references follow the first.
        moved.setdefault(event["n"], position)
    numbers = _Renumbering()
    return [numbers.give(event | {"n": position}, moved) for position, event in enumerate(events, 1)]


class _Renumbering:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.numbers: dict[tuple[str, int], int] = {}
        self.requests: dict[str, str] = {}

    def give(self, event: SerializedEvent, moved: dict[int, int]) -> SerializedEvent:
        kind = event["event"]
        if kind in _NUMBERING_EVENTS:
            self._begin(event, _NUMBERING_EVENTS[kind])
        elif kind in _REFERRING_EVENTS:
            field = _REFERRING_EVENTS[kind]
            event[field] = self.numbers.get((field, event[field]), event[field])
        if "decisions" in event:
            event["decisions"] = [moved[n] for n in event["decisions"] if n in moved]
        if kind in LISTINGS and event.get(LISTINGS[kind]):
            event[LISTINGS[kind]] = [request | {"q": self._q(request["q"])} for request in event[LISTINGS[kind]]]
        if kind == "caller.decide" and "q" in event:
            event["q"] = self.requests.get(event["q"], event["q"])
        if kind == "caller.stuck":
            event["requests"] = self._renumber_requests(event["requests"])
        return event

    def _begin(self, event: SerializedEvent, field: str) -> None:
        self.counts[field] = number = self.counts.get(field, 0) + 1
        self.numbers[field, event[field]] = number
        event[field] = number

    def _q(self, old: str) -> str:
        return self.requests.setdefault(old, f"q{len(self.requests) + 1}")

    def _renumber_requests(self, numbers: Iterable[str]) -> list[Any]:
        return [self.requests.get(q, q) for q in numbers]
