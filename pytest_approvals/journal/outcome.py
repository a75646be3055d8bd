"""
What a run came to, without what may differ between the variants of a scenario.

Left out are numbers of events, executions and requests, how the state was kept, what a stream showed, how often the
policy was asked, and the words of errors. Arguments are parsed, and ids that are not the model's own are numbered as
they come.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from .arguments import parsed
from .events import AgentStart, Event, Gate, Header, ModelAnswer, Restored, Saved, Shown, Trimmed

_NO_PART: frozenset[type[Event]] = frozenset({AgentStart, Gate, Header, Restored, Saved, Shown, Trimmed})
_DROPPED = frozenset(
    {"n", "x", "m", "q", "stream", "decisions", "source", "message", "digest", "process", "shown", "kind"}
)
_ERRORS = frozenset({"error"})
_ID_NAMES = frozenset({"id", "call_id"})


def outcome_of(events: Iterable[Event]) -> list[tuple[int, dict[str, Any]]]:
    """Gives the events that count, each with its position, in a form that is equal for equal outcomes."""
    ids: dict[str, str] = {}
    found: list[tuple[int, dict[str, Any]]] = []
    for event in events:
        if isinstance(event, ModelAnswer):
            ids.update((str(call["id"]), str(call["id"])) for call in event.calls if call.get("id") is not None)
        if type(event) not in _NO_PART:
            found.append((event.n, _normal(_written(event), ids)))
    return found


def _written(event: Event) -> Mapping[str, Any]:
    written = event.to_dict()
    if written["event"] == "turn.end":
        written.pop("text", None)
    return written


def _normal(written: Mapping[str, Any], ids: dict[str, str]) -> dict[str, Any]:
    return {name: _value(name, value, ids) for name, value in written.items() if name not in _DROPPED}


def _value(name: str, value: Any, ids: dict[str, str]) -> Any:
    if name in _ERRORS and isinstance(value, list):
        return value[:1]
    if name == "arguments":
        return parsed(value)
    if name in _ID_NAMES and isinstance(value, str):
        return ids.setdefault(value, f"id {len(ids) + 1}")
    if name in ("requests", "items", "calls", "hosted", "pending", "broken"):
        return [_normal(each, ids) if isinstance(each, Mapping) else each for each in value]
    return sorted(value) if name == "tools" else value
