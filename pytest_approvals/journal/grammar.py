"""
The grammar of journals: what must hold of any journal before a check can be asked about it.

The harness keeps to it whatever the agent does. So a journal that breaks it was recorded wrongly, was cut off, or was
changed by hand, and its verdicts mean nothing. Turns may overlap and conversations may nest; nothing here forbids what
an agent can do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .events import Event, Header, RunEnd
from .grammar_flow import Frame, Turns
from .grammar_sides import Decisions, Models, Tools
from .grammar_store import Agents, Saves
from .grammar_topic import BrokenGrammar, Topic

__all__ = ["BrokenGrammar", "broken_grammar"]

_TOPICS: tuple[type[Topic], ...] = (Frame, Agents, Saves, Turns, Models, Tools, Decisions)


def broken_grammar(events: Sequence[Event]) -> list[BrokenGrammar]:
    """Names all places where a journal breaks the grammar, in the order of their first witness."""
    found: list[BrokenGrammar] = []
    cut = _is_cut(events)
    topics = [topic(found, cut=cut) for topic in _TOPICS]
    for event in events:
        for place, listener in _LISTENERS.get(type(event), ()):
            listener(topics[place], event)
    for topic in topics:
        topic.end()
    _numbers(events, found)
    return sorted(found, key=lambda broken: broken.witness[:1])


def _listeners() -> dict[type[Event], list[tuple[int, Callable[[Topic, Any], None]]]]:
    """Gives, by event class, the places of the topics that listen to it, with what listens."""
    found: dict[type[Event], list[tuple[int, Callable[[Topic, Any], None]]]] = {}
    for place, topic in enumerate(_TOPICS):
        for cls, listener in topic([], cut=False).listeners().items():
            found.setdefault(cls, []).append((place, listener.__func__))  # type: ignore[attr-defined]  # a bound method
    return found


_LISTENERS = _listeners()
"""Made once: a journal is read in microseconds."""


def _is_cut(events: Sequence[Event]) -> bool:
    last = events[-1] if events else None
    return not isinstance(last, RunEnd) or last.how not in ("completed", "left")


def _numbers(events: Sequence[Event], found: list[BrokenGrammar]) -> None:
    if not events or type(events[0]) is not Header:
        found.append(BrokenGrammar(text="the journal does not begin with a header", witness=(1,) if events else ()))
    ends = not events or not isinstance(events[0], Header) or events[0].sees(RunEnd)
    if events and ends and type(events[-1]) is not RunEnd:
        found.append(BrokenGrammar(text="the run has no end: the journal was cut off", witness=(len(events),)))
    for position, event in enumerate(events, 1):
        if event.n != position:
            found.append(BrokenGrammar(text=f"event {position} has the number {event.n}", witness=(position,)))
