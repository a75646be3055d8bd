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

from pytest_approvals.journal.events import Event, Shown

from .edits import Written
from .numbers import renumbered

_BESIDE = ("tool.start", "tool.end", "tool.gate")
_BESIDES = ("request", "result", "end")
_LASTING = ("always", "never")


def equivalent(journal: Sequence[Event], mutant: Sequence[Event]) -> bool:
    """Says whether a mutant tells the same story as the journal that it was made from."""
    return _story(journal) == _story(mutant)


def _story(events: Sequence[Event]) -> list[str]:
    told = _gathered(_ordered([_plain(event) for event in events if not _is_besides(event)]))
    return [json.dumps(_sorted(event), sort_keys=True) for event in renumbered(told)]


def _is_besides(event: Event) -> bool:
    return isinstance(event, Shown) and event.what in _BESIDES


def _plain(event: Event) -> Written:
    written = event.to_dict()
    written.pop("size", None)
    return written


def _sorted(event: Written) -> Written:
    """Leaves the order of decisions to the events that make them."""
    return event | {"decisions": sorted(event["decisions"])} if "decisions" in event else event


def _ordered(events: Sequence[Written]) -> list[Written]:
    """Puts events that commute into one order."""
    ordered = list(events)
    for end in range(1, len(ordered)):
        at = end
        while at and _commute(ordered[at - 1], ordered[at]) and _key(ordered[at]) < _key(ordered[at - 1]):
            ordered[at - 1], ordered[at] = ordered[at], ordered[at - 1]
            at -= 1
    return ordered


def _commute(one: Written, other: Written) -> bool:
    if one.get("session") != other.get("session"):
        return False
    kinds: set[str] = {one["event"], other["event"]}
    if kinds == {"caller.decide"}:
        lasting = one["verdict"] in _LASTING or other["verdict"] in _LASTING
        return not lasting and one.get("q", "") != str(other.get("q", ""))
    if kinds == {"caller.shown"}:
        return not (_is_text(one) and _is_text(other))
    if "caller.shown" in kinds:
        return not kinds.isdisjoint((*_BESIDE, "model.answer"))
    return kinds <= {*_BESIDE} and _execution(one) != _execution(other)


def _execution(event: Written) -> str:
    if event["event"] == "tool.gate":
        return f"{event['tool']} {event.get('call_id')}"
    return f"x {event['x']}"


def _key(event: Written) -> tuple[int, str]:
    if event["event"] == "caller.shown":
        return 0, "" if _is_text(event) else str(event.get("id"))
    return 1, json.dumps({name: held for name, held in event.items() if name not in ("n", "x")}, sort_keys=True)


def _gathered(events: Sequence[Written]) -> list[Written]:
    """Joins pieces of text that a stream shows after each other, and asks a policy the same only once."""
    gathered: list[Written] = []
    for event in events:
        last = gathered[-1] if gathered else {"event": ""}
        if _is_text(event) and _is_text(last):
            gathered[-1] = last | {"text": last.get("text", "") + event.get("text", "")}
        elif event["event"] != "tool.gate" or _question(event) != _question(last):
            gathered.append(event)
    return gathered


def _is_text(event: Written) -> bool:
    return (event["event"], event.get("what")) == ("caller.shown", "text")


def _question(event: Written) -> Written:
    return {name: held for name, held in event.items() if name != "n"}
