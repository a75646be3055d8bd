"""Operators that leave events as they are: drop, duplicate, swap, truncate."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .edits import Edit, Written, each

_REPLIES = ("model.answer", "model.failure", "model.refusal", "model.exhausted")


def dropped(events: Sequence[Written]) -> Iterator[Edit]:
    """Leaves out each event, and everything that belongs together."""
    for unit in _units(events):
        kept = [event for index, event in enumerate(events) if index not in unit]
        yield Edit(what=_named(events, unit), n=events[unit[0]]["n"], events=kept)


def duplicated(events: Sequence[Written]) -> Iterator[Edit]:
    """Puts each event, and everything that belongs together, there a second time, right behind the first."""
    for unit in _units(events):
        after = unit[-1] + 1
        again = [events[index] for index in unit]
        yield Edit(what=_named(events, unit), n=events[unit[0]]["n"], events=[*events[:after], *again, *events[after:]])


def swapped(events: Sequence[Written]) -> Iterator[Edit]:
    """Lets each two events that follow each other change places."""
    for index in range(len(events) - 1):
        first, second = events[index], events[index + 1]
        moved = [*events[:index], second, first, *events[index + 2 :]]
        yield Edit(what=f"{first['event']}, {second['event']}", n=first["n"], events=moved)


def truncated(events: Sequence[Written]) -> Iterator[Edit]:
    """Ends the run after each event between two turns, as if nothing more had come, and cuts it off in each turn."""
    open_turns = 0
    for index, event in enumerate(events[:-2]):
        open_turns += {"turn.start": 1, "turn.end": -1}.get(event["event"], 0)
        if open_turns == 0 and event["event"] == "turn.end":
            yield Edit(what="after a turn", n=event["n"], events=[*events[: index + 1], events[-1]])
        elif event["event"] == "turn.start":
            yield Edit(what="in a turn", n=event["n"], events=events[: index + 1])


def _named(events: Sequence[Written], unit: Sequence[int]) -> str:
    if events[unit[0]]["event"] == "turn.start" and len(unit) > 1:
        return "turn"
    return " + ".join(str(events[index]["event"]) for index in unit)


def _units(events: Sequence[Written]) -> Iterator[list[int]]:
    """Each event alone, then what belongs together: an execution, an exchange, a restored agent, a turn."""
    yield from ([index] for index in range(len(events)))
    for index, event in each(events, "tool.start"):
        ends = (at for at, end in each(events, "tool.end") if end["x"] == event["x"])
        yield [index, *ends]
    for index, event in each(events, "model.request"):
        replies = (at for at, reply in each(events, *_REPLIES) if reply["m"] == event["m"])
        yield [index, *replies]
    for index, event in each(events, "agent.start"):
        following = events[index + 1] if index + 1 < len(events) else event
        if following["event"] == "store.restore":
            yield [index, index + 1]
    for index, event in each(events, "turn.start"):
        end = next((at for at, end in each(events, "turn.end") if end["turn"] == event["turn"]), None)
        if end is not None:
            yield [*range(index, end + 1)]
