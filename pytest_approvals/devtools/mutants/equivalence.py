"""
Which mutants tell the same story as the journal that they were made from.

No verdict is looked at. Two journals are equivalent if they are equal up to what nobody can observe, or nobody has to
care about:

- the order of events that happen at the same time: executions and policies of different calls between two questions of
  their model, what a stream shows beside them and beside the reply that it shows, decisions about different requests in
  one submission;
- in which order a stream shows calls, and text beside calls, and into which pieces it cuts text: providers interleave;
- a policy that was asked the same twice;
- whether a stream shows requests, results and its end besides: whoever consumes it finds the requests in its outcome;
- the size of what was saved.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pytest_approvals.devtools.mutants.edits import SerializedEvent, renumber
from pytest_approvals.journal.events import Event, StreamShown

_CONCURRENT_EVENTS = ("tool.start", "tool.end", "tool.gate")
_OPTIONAL_STREAM_PARTS = ("request", "result", "end")
_STANDING_VERDICTS = ("always", "never")


def is_equivalent(journal: Sequence[Event], mutant: Sequence[Event]) -> bool:
    """Says whether a mutant tells the same story as the journal that it was made from."""
    return _normalize_journal(journal) == _normalize_journal(mutant)


def _normalize_journal(events: Sequence[Event]) -> list[str]:
    told = _join_stream_text(_sort_commuting([_serialize(event) for event in events if not _is_optional(event)]))
    return [json.dumps(_sort_decisions(event), sort_keys=True) for event in renumber(told)]


def _is_optional(event: Event) -> bool:
    return isinstance(event, StreamShown) and event.what in _OPTIONAL_STREAM_PARTS


def _serialize(event: Event) -> SerializedEvent:
    written = event.to_dict()
    written.pop("size", None)
    return written


def _sort_decisions(event: SerializedEvent) -> SerializedEvent:
    """Leaves the order of decisions to the events that make them."""
    return event | {"decisions": sorted(event["decisions"])} if "decisions" in event else event


def _sort_commuting(events: Sequence[SerializedEvent]) -> list[SerializedEvent]:
    """Puts events that commute into one order."""
    ordered = list(events)
    for end in range(1, len(ordered)):
        at = end
        while at and _can_commute(ordered[at - 1], ordered[at]) and _sort_key(ordered[at]) < _sort_key(ordered[at - 1]):
            ordered[at - 1], ordered[at] = ordered[at], ordered[at - 1]
            at -= 1
    return ordered


def _can_commute(one: SerializedEvent, other: SerializedEvent) -> bool:
    if one.get("session") != other.get("session"):
        return False
    kinds: set[str] = {one["event"], other["event"]}
    if kinds == {"caller.decide"}:
        lasting = one["verdict"] in _STANDING_VERDICTS or other["verdict"] in _STANDING_VERDICTS
        return not lasting and one.get("q", "") != str(other.get("q", ""))
    if kinds == {"caller.shown"}:
        return not (_is_text(one) and _is_text(other))
    if "caller.shown" in kinds:
        return not kinds.isdisjoint((*_CONCURRENT_EVENTS, "model.answer"))
    return kinds <= {*_CONCURRENT_EVENTS} and _execution_key(one) != _execution_key(other)


def _execution_key(event: SerializedEvent) -> str:
    if event["event"] == "tool.gate":
        return f"{event['tool']} {event.get('call_id')}"
    return f"x {event['x']}"


def _sort_key(event: SerializedEvent) -> tuple[int, str]:
    if event["event"] == "caller.shown":
        return 0, "" if _is_text(event) else str(event.get("id"))
    return 1, json.dumps({name: held for name, held in event.items() if name not in ("n", "x")}, sort_keys=True)


def _join_stream_text(events: Sequence[SerializedEvent]) -> list[SerializedEvent]:
    """Joins pieces of text that a stream shows after each other, and asks a policy the same only once."""
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
    return {name: held for name, held in event.items() if name != "n"}
