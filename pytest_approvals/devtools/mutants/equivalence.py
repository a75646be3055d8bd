"""Equivalence of a mutant and the journal from which it was made.

No verdict is considered. Two journals are equivalent if they are equal except for what cannot be observed, or does not
matter:

- the order of events that happen at the same time: executions and policy questions of different calls between two
  requests to their model, what a stream shows among them and around the reply that it shows, decisions about different
  requests in one submission;
- the order in which a stream shows calls, and text next to calls, and how it splits text: providers interleave;
- a policy that was asked the same thing twice;
- whether a stream also shows requests, results and its end: its consumer finds the requests in its outcome;
- the size of what was saved.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_approvals.devtools.mutants.operators import SerializedEvent, renumber
from pytest_approvals.journal.events import Event, StreamShown

_CONCURRENT_EVENTS = ("tool.start", "tool.end", "tool.gate")
_OPTIONAL_STREAM_PARTS = ("request", "result", "end")
_STANDING_VERDICTS = ("always", "never")


def is_equivalent(journal: Sequence[Event], mutant: Sequence[Event]) -> bool:
    """Return whether a mutant means the same as the journal from which it was made."""
    return _normalize_journal(journal) == _normalize_journal(mutant)


def _normalize_journal(events: Sequence[Event]) -> list[str]:
    gathered = _join_stream_text(_sort_commuting([_serialize(event) for event in events if not _is_optional(event)]))
    return [json.dumps(_sort_decisions(event), sort_keys=True) for event in renumber(gathered)]


def _is_optional(event: Event) -> bool:
    return isinstance(event, StreamShown) and event.what in _OPTIONAL_STREAM_PARTS


def _serialize(event: Event) -> SerializedEvent:
    written = event.to_dict()
    written.pop("size", None)
    return written


def _sort_decisions(event: SerializedEvent) -> SerializedEvent:
    """Sort the positions of decisions: their order is that of the events that make them."""
    return event | {"decisions": sorted(event["decisions"])} if "decisions" in event else event


def _sort_commuting(events: Sequence[SerializedEvent]) -> list[SerializedEvent]:
    """Sort events that commute into one order."""
    ordered = list(events)
    # An insertion sort, because an event may pass only neighbours with which it commutes.
    for end in range(1, len(ordered)):
        at = end
        while at and _can_commute(ordered[at - 1], ordered[at]) and _sort_key(ordered[at]) < _sort_key(ordered[at - 1]):
            ordered[at - 1], ordered[at] = ordered[at], ordered[at - 1]
            at -= 1
    return ordered


def _can_commute(first: SerializedEvent, other: SerializedEvent) -> bool:
    if first.get("session") != other.get("session"):
        return False
    kinds: set[str] = {first["event"], other["event"]}
    if kinds == {"caller.decide"}:
        lasting = first["verdict"] in _STANDING_VERDICTS or other["verdict"] in _STANDING_VERDICTS
        return not lasting and first.get("q", "") != str(other.get("q", ""))
    if kinds == {"caller.shown"}:
        return not (_is_text(first) and _is_text(other))
    if "caller.shown" in kinds:
        return not kinds.isdisjoint((*_CONCURRENT_EVENTS, "model.answer"))
    return kinds <= {*_CONCURRENT_EVENTS} and _execution_key(first) != _execution_key(other)


def _execution_key(event: SerializedEvent) -> str:
    if event["event"] == "tool.gate":
        return f"{event['tool']} {event.get('call_id')}"
    return f"x {event['x']}"


def _sort_key(event: SerializedEvent) -> tuple[int, str]:
    if event["event"] == "caller.shown":
        return 0, "" if _is_text(event) else str(event.get("id"))
    return 1, json.dumps({name: value for name, value in event.items() if name not in ("n", "x")}, sort_keys=True)


def _join_stream_text(events: Sequence[SerializedEvent]) -> list[SerializedEvent]:
    """Join consecutive parts of streamed text, and drop repeated questions to a policy."""
    gathered: list[SerializedEvent] = []
    for event in events:
        last = gathered[-1] if gathered else {"event": ""}
        if _is_text(event) and _is_text(last):
            gathered[-1] = last | {"text": last.get("text", "") + event.get("text", "")}
        elif event["event"] != "tool.gate" or _without_position(event) != _without_position(last):
            gathered.append(event)
    return gathered


def _is_text(event: SerializedEvent) -> bool:
    return (event["event"], event.get("what")) == ("caller.shown", "text")


def _without_position(event: SerializedEvent) -> SerializedEvent:
    return {name: value for name, value in event.items() if name != "n"}
