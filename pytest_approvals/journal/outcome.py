"""Outcome of a run, without what may differ between the variants of a scenario.

Left out are numbers of events, executions and requests, how the state was kept, what a stream showed, how often the
policy was asked, the words of errors, and times in texts. Arguments are parsed, keys of JSON objects in texts are in
one order, since a store may keep them in another one, and ids that are not the model's own are numbered as they come.
Agents that run at the same time, the calls of one reply, and the ends of turns that run at the same time are put in one
order, whichever of them came first; so are the sessions whose turns run at the same time.
"""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.journal.events import (
    AgentStart,
    Event,
    Header,
    HistoryTrimmed,
    ModelAnswer,
    ModelRequest,
    PolicyAsked,
    StateRestored,
    StateSaved,
    StreamShown,
    ToolStart,
    TurnEnd,
    TurnStart,
)

OutcomeEntry = tuple[int, dict[str, Any]]
"""The position of an event, and what of it counts."""

_IGNORED_EVENTS: frozenset[type[Event]] = frozenset(
    {AgentStart, PolicyAsked, Header, StateRestored, StateSaved, StreamShown, HistoryTrimmed}
)
_IGNORED_FIELDS = frozenset(
    {"n", "x", "m", "q", "stream", "decisions", "source", "message", "digest", "places", "process", "shown", "kind"}
)
_WORK_EVENTS = frozenset({"tool.start", "tool.end", "tool.elicit", "caller.elicited", "tool.elicited", "caller.signal"})
_ERROR_FIELDS = frozenset({"error"})
_ID_FIELDS = frozenset({"id", "call_id"})
_TEXT_FIELDS = frozenset({"text", "output"})
_QUOTING_FIELDS = _TEXT_FIELDS | {"arguments"}
_DECODER = json.JSONDecoder()
_TIME = re.compile(
    r"""
    (?<!\d) \d{4}-\d\d-\d\d [T ] \d\d:\d\d (?: :\d\d (?:[.,]\d+)? )? (?: Z | [+-]\d\d:?\d\d )? (?!\d)
    | (?<![\w.]) \d+ (?:\.\d+)? \ ? (?: [nµu]?s | ms | secs? | (?:milli|micro)?seconds? ) \b
    | (?<= " ) (?: duration | elapsed | took ) \w* " \s* : \s* \d+ (?:\.\d+)?
    """,
    re.VERBOSE,
)
"""When a call ran, as ISO 8601 and RFC 3339 write it, or how long: with a unit, or as a field of a JSON object."""


def extract_outcome(events: Iterable[Event], *, with_ids: bool = True) -> list[OutcomeEntry]:
    """Return the events that count, each with its position, in a form that is equal for equal outcomes.

    Args:
        events: The events of a run.
        with_ids: Whether ids count, also where texts and arguments quote those of calls; labels do in any case.
    """
    events = list(events)
    quoted = None if with_ids else _match_call_ids(events)
    ignored = _IGNORED_FIELDS if with_ids else _IGNORED_FIELDS | _ID_FIELDS
    ids: dict[str, str] = {}
    entries: list[OutcomeEntry] = []
    for event in _order_sessions(events):
        if isinstance(event, ModelAnswer):
            ids.update((str(call["id"]), str(call["id"])) for call in event.calls if call.get("id") is not None)
        # When a call ends that is cancelled, before its turn or behind it, is chance.
        if type(event) not in _IGNORED_EVENTS and getattr(event, "how", None) != "cancelled":
            entry = _normalize(_serialize(event), ids, ignored)
            entries.append((event.n, entry if quoted is None else _hide_ids(entry, quoted)))
    return [*_order_concurrent(entries)]


def _match_call_ids(events: Iterable[Event]) -> re.Pattern[str] | None:
    """Return a pattern of the ids that calls have anywhere in a run, as whole words; None if they have none.

    Of a call that nothing shows by another id, a text may quote one that its stream has made of it with a number.
    """
    found: set[Any] = set()
    for event in events:
        if isinstance(event, ModelAnswer):
            found.update(call.get("id") for call in event.calls)
        elif isinstance(event, ModelRequest):
            found.update(item.get("id") for item in event.items if item["kind"] in ("call", "result"))
        elif isinstance(event, TurnEnd):
            found.update(entry.get("call_id") for entry in event.requests)
        elif isinstance(event, ToolStart):
            found.add(event.call_id)
    ids = sorted((each for each in found if each and isinstance(each, str)), key=lambda each: (-len(each), each))
    numbered = {name for name, hyphen, number in (each.rpartition("-") for each in ids) if hyphen and number.isdigit()}
    quoted = [re.escape(each) + ("" if each in numbered else r"(?:-\d+)?") for each in ids]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(quoted)})(?![\w-])") if ids else None


def _hide_ids(value: Any, ids: re.Pattern[str], *, is_quoting: bool = False) -> Any:
    """Return a value with the ids that its texts and arguments quote all alike."""
    if isinstance(value, str):
        return ids.sub("ID", value) if is_quoting else value
    if isinstance(value, Mapping):
        return {
            name: _hide_ids(each, ids, is_quoting=is_quoting or name in _QUOTING_FIELDS) for name, each in value.items()
        }
    return [_hide_ids(each, ids, is_quoting=is_quoting) for each in value] if isinstance(value, list) else value


def _order_sessions(events: Iterable[Event]) -> Iterator[Event]:
    """Put the events of sessions whose turns overlap one session after the other: how they interleave is chance."""
    overlapping: list[Event] = []
    running = 0
    for event in events:
        running += isinstance(event, TurnStart) - isinstance(event, TurnEnd)
        overlapping.append(event)
        if not running:
            yield from sorted(overlapping, key=lambda each: each.session)
            overlapping = []
    yield from sorted(overlapping, key=lambda each: each.session)


def _order_concurrent(outcome: Sequence[OutcomeEntry]) -> Iterator[OutcomeEntry]:
    """Sort what happened at the same time: which of several agents, calls or turns comes first is chance."""
    for group_name, group in groupby(outcome, lambda entry: _concurrency_group(entry[1])):
        entries = [*group]
        yield from _sort_group(entries) if group_name else entries


def _concurrency_group(written: Mapping[str, Any]) -> str:
    """Return with what kind of events an event may change places; empty: with none.

    A signal is sent as soon as one call waits for it, while others may be about to start.
    """
    if written["event"] == "turn.end":
        return "ends"
    inside = "/" in written.get("conversation", "") or written["event"] in _WORK_EVENTS
    return "work" if inside else ""


def _sort_group(entries: Sequence[OutcomeEntry]) -> Sequence[OutcomeEntry]:
    agents = {written["conversation"] for _, written in entries if "conversation" in written}
    if len(agents) == 1:
        # What one agent is asked and replies has its order; what its calls do in between has none.
        parts = groupby(entries, lambda entry: "conversation" in entry[1])
        return [entry for talks, part in parts for entry in (part if talks else _sort_group([*part]))]
    apart = [written for _, written in entries if written["event"] in ("tool.start", "turn.end")]
    if not agents and len(apart) < 2:
        return entries
    return sorted(entries, key=lambda entry: json.dumps(entry[1], sort_keys=True, default=repr))


def _serialize(event: Event) -> Mapping[str, Any]:
    written = event.to_dict()
    if written["event"] == "turn.end":
        written.pop("text", None)
    if written["event"] == "caller.decide" and "q" in written:
        # A request that is listed again may have another id.
        written.pop("id", None)
    return written


def _normalize(written: Mapping[str, Any], ids: dict[str, str], ignored: Container[str]) -> dict[str, Any]:
    return {name: _normalize_value(name, value, ids, ignored) for name, value in written.items() if name not in ignored}


def _normalize_value(name: str, value: Any, ids: dict[str, str], ignored: Container[str]) -> Any:
    if name in _ERROR_FIELDS and isinstance(value, list):
        return value[:1]
    if name == "arguments":
        return parse_arguments(value)
    if name in _TEXT_FIELDS and isinstance(value, str):
        return _TIME.sub("TIME", _sort_keys(value))
    if name in _ID_FIELDS and isinstance(value, str):
        return ids.setdefault(value, f"id {len(ids) + 1}")
    if name in ("requests", "pending") and isinstance(value, list):
        # A request that is listed again may have another id; it is known by its call.
        value = [_without_request_id(entry) for entry in value]
    if name in ("requests", "items", "calls", "hosted", "pending", "broken"):
        return [_normalize(entry, ids, ignored) if isinstance(entry, Mapping) else entry for entry in value]
    return sorted(value) if name == "tools" else value


def _sort_keys(text: str) -> str:
    """Return a text with the keys of each JSON object in it in alphabetical order.

    >>> _sort_keys('changed to pay({"to": "Ann", "amount": 5}) {so}')
    'changed to pay({"amount": 5, "to": "Ann"}) {so}'
    """
    parts: list[str] = []
    end = 0
    while (start := text.find("{", end)) >= 0:
        parts.append(text[end:start])
        try:
            value, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            parts.append("{")
            end = start + 1
        else:
            parts.append(json.dumps(value, ensure_ascii=False, sort_keys=True))
    return "".join((*parts, text[end:])) if parts else text


def _without_request_id(entry: Any) -> Any:
    if not isinstance(entry, Mapping) or "label" not in entry:
        return entry
    return {name: value for name, value in entry.items() if name != "id"}
