"""What operators on journals work with: events as they are written, and changes of them.

Numbering a changed journal anew, so that its numbers do not give the change away.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SerializedEvent = dict[str, Any]
"""An event as it stands in a journal."""

LISTINGS = {"turn.end": "requests", "store.restore": "pending", "run.end": "pending"}
"""The events that list requests, and the field with the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of a journal: its events afterwards, not numbered anew yet."""

    what: str
    n: int
    events: Sequence[SerializedEvent]


def edit_field(events: Sequence[SerializedEvent], index: int, field: str, value: Any, note: str = "") -> Edit:
    """Gives the edit that sets a field of one event; None takes it away."""
    event = {name: held for name, held in events[index].items() if name != field}
    if value is not None:
        event[field] = value
    what = f"{event['event']} {note or field}"
    return Edit(what=what, n=events[index]["n"], events=[*events[:index], event, *events[index + 1 :]])


def edit_element(
    events: Sequence[SerializedEvent], index: int, field: str, at: int, changes: Mapping[str, Any], note: str
) -> Edit:
    """Gives the edit that changes one element of a list in one event."""
    elements = copy.deepcopy(events[index][field])
    elements[at] |= changes
    return edit_field(events, index, field, elements, note)


def edit_insert(events: Sequence[SerializedEvent], index: int, new: Sequence[SerializedEvent], what: str) -> Edit:
    """Gives the edit that puts new events before the one at *index*."""
    n = events[min(index, len(events) - 1)]["n"]
    return Edit(what=what, n=n, events=[*events[:index], *new, *events[index:]])


def select_events(events: Sequence[SerializedEvent], *kinds: str) -> Iterator[tuple[int, SerializedEvent]]:
    """Gives the events of these kinds with their indexes."""
    return ((index, event) for index, event in enumerate(events) if event["event"] in kinds)


def listed_requests(events: Sequence[SerializedEvent]) -> Iterator[tuple[int, str, int, SerializedEvent]]:
    """Gives every request that is listed anywhere: index of the event, field, index in the list, request."""
    for index, event in select_events(events, *LISTINGS):
        field = LISTINGS[event["event"]]
        for at, request in enumerate(event.get(field, ())):
            yield index, field, at, request


def model_calls(events: Sequence[SerializedEvent]) -> list[SerializedEvent]:
    """Gives all calls that models made, in order."""
    return [call for _, answer in select_events(events, "model.answer") for call in answer.get("calls", ())]


def different_value(value: Any) -> Any:
    """
    Gives a value of the same kind that is not *value*.

    >>> other({"amount": 5, "to": "Ann"}), other("text"), other(True), other(None)
    ({'amount': 6, 'to': 'Ann'}, 'quite another text', False, 'something')
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
    """
    Gives events with positions, turns, questions, executions and requests numbered as they come.

    What refers to something follows it; what refers to something that is gone keeps its number.
    """
    moved: dict[int, int] = {}
    for position, event in enumerate(events, 1):
        moved.setdefault(event["n"], position)
    numbers = _Renumbering()
    return [numbers.give(event | {"n": position}, moved) for position, event in enumerate(events, 1)]


class _Renumbering:
    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.given: dict[tuple[str, int], int] = {}
        self.requests: dict[str, str] = {}

    def give(self, event: SerializedEvent, moved: dict[int, int]) -> SerializedEvent:
        kind = event["event"]
        if kind in _NUMBERING_EVENTS:
            self._begin(event, _NUMBERING_EVENTS[kind])
        elif kind in _REFERRING_EVENTS:
            field = _REFERRING_EVENTS[kind]
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

    def _begin(self, event: SerializedEvent, field: str) -> None:
        self.counts[field] = number = self.counts.get(field, 0) + 1
        self.given[field, event[field]] = number
        event[field] = number

    def _q(self, old: str) -> str:
        return self.requests.setdefault(old, f"q{len(self.requests) + 1}")

    def _known(self, numbers: Iterable[str]) -> list[Any]:
        return [self.requests.get(q, q) for q in numbers]
