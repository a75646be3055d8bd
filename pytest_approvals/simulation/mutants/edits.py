"""What operators on journals work with: events as they are written, and changes of them."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Written = dict[str, Any]
"""An event as it stands in a journal."""

LISTINGS = {"turn.end": "requests", "store.restore": "pending", "run.end": "pending"}
"""The events that list requests, and the field with the list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """A change of a journal: its events afterwards, not numbered anew yet."""

    what: str
    n: int
    events: Sequence[Written]


def changed(events: Sequence[Written], index: int, field: str, value: Any, note: str = "") -> Edit:
    """Gives the edit that sets a field of one event; None takes it away."""
    event = {name: held for name, held in events[index].items() if name != field}
    if value is not None:
        event[field] = value
    what = f"{event['event']} {note or field}"
    return Edit(what=what, n=events[index]["n"], events=[*events[:index], event, *events[index + 1 :]])


def changed_element(
    events: Sequence[Written], index: int, field: str, at: int, changes: Mapping[str, Any], note: str
) -> Edit:
    """Gives the edit that changes one element of a list in one event."""
    elements = copy.deepcopy(events[index][field])
    elements[at] |= changes
    return changed(events, index, field, elements, note)


def inserted(events: Sequence[Written], index: int, new: Sequence[Written], what: str) -> Edit:
    """Gives the edit that puts new events before the one at *index*."""
    n = events[min(index, len(events) - 1)]["n"]
    return Edit(what=what, n=n, events=[*events[:index], *new, *events[index:]])


def each(events: Sequence[Written], *kinds: str) -> Iterator[tuple[int, Written]]:
    """Gives the events of these kinds with their indexes."""
    return ((index, event) for index, event in enumerate(events) if event["event"] in kinds)


def listed(events: Sequence[Written]) -> Iterator[tuple[int, str, int, Written]]:
    """Gives every request that is listed anywhere: index of the event, field, index in the list, request."""
    for index, event in each(events, *LISTINGS):
        field = LISTINGS[event["event"]]
        for at, request in enumerate(event.get(field, ())):
            yield index, field, at, request


def calls(events: Sequence[Written]) -> list[Written]:
    """Gives all calls that models made, in order."""
    return [call for _, answer in each(events, "model.answer") for call in answer.get("calls", ())]


def other(value: Any) -> Any:
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
        return value | {first: other(value[first])}
    if isinstance(value, list):
        return [*value, "more"]
    return "something"
