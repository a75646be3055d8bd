"""Mutation operators: each yields all changes of one kind that a journal allows."""

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


_REPLY_KINDS = ("model.answer", "model.failure", "model.refusal", "model.exhausted")


def drop_events(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield an edit that leaves out each event, and each unit of events that belong together."""
    for unit in _find_units(events):
        kept = [event for index, event in enumerate(events) if index not in unit]
        yield Edit(what=_describe_unit(events, unit), n=events[unit[0]]["n"], events=kept)


def duplicate_events(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield an edit that repeats each event, and each unit of events that belong together, right after it."""
    for unit in _find_units(events):
        after = unit[-1] + 1
        again = [events[index] for index in unit]
        yield Edit(
            what=_describe_unit(events, unit), n=events[unit[0]]["n"], events=[*events[:after], *again, *events[after:]]
        )


def swap_events(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield an edit that swaps each two consecutive events."""
    for index in range(len(events) - 1):
        first, second = events[index], events[index + 1]
        moved = [*events[:index], second, first, *events[index + 2 :]]
        yield Edit(what=f"{first['event']}, {second['event']}", n=first["n"], events=moved)


def truncate_run(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield edits that end the run after each event between two turns, and that cut the journal off in each turn."""
    open_turns = 0
    # Without the last two: a run that ends after its last turn is the run itself.
    for index, event in enumerate(events[:-2]):
        open_turns += {"turn.start": 1, "turn.end": -1}.get(event["event"], 0)
        if open_turns == 0 and event["event"] == "turn.end":
            yield Edit(what="after a turn", n=event["n"], events=[*events[: index + 1], events[-1]])
        elif event["event"] == "turn.start":
            yield Edit(what="in a turn", n=event["n"], events=events[: index + 1])


def _describe_unit(events: Sequence[SerializedEvent], unit: Sequence[int]) -> str:
    if events[unit[0]]["event"] == "turn.start" and len(unit) > 1:
        return "turn"
    return " + ".join(str(events[index]["event"]) for index in unit)


def _find_units(events: Sequence[SerializedEvent]) -> Iterator[list[int]]:
    """Yield each event alone, then what belongs together: an execution, an exchange, a restored agent, a turn."""
    yield from ([index] for index in range(len(events)))
    for index, event in select_events(events, "tool.start"):
        ends = (at for at, end in select_events(events, "tool.end") if end["x"] == event["x"])
        yield [index, *ends]
    for index, event in select_events(events, "model.request"):
        replies = (at for at, reply in select_events(events, *_REPLY_KINDS) if reply["m"] == event["m"])
        yield [index, *replies]
    for index, event in select_events(events, "agent.start"):
        following = events[index + 1] if index + 1 < len(events) else event
        if following["event"] == "store.restore":
            yield [index, index + 1]
    for index, event in select_events(events, "turn.start"):
        end = next((at for at, end in select_events(events, "turn.end") if end["turn"] == event["turn"]), None)
        if end is not None:
            yield [*range(index, end + 1)]


def retarget_references(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield one edit for each reference that could have been to something else of its kind."""
    yield from _retarget_executions(events)
    yield from _retarget_decisions(events)
    yield from _retarget_requests(events)
    yield from _retarget_results(events)
    yield from _retarget_stream(events)
    yield from _retarget_saves(events)
    yield from _retarget_policies(events)


def _retarget_executions(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    ids = [call["id"] for call in model_calls(events) if call.get("id") is not None]
    for index, event in select_events(events, "tool.start"):
        other = next((seen for seen in ids if seen != event.get("call_id")), None)
        if other is not None and "call_id" in event:
            yield edit_field(events, index, "call_id", other)
    numbers = [event["x"] for _, event in select_events(events, "tool.start")]
    for index, event in select_events(events, "tool.end"):
        other = next((x for x in numbers if x != event["x"]), None)
        if other is not None:
            yield edit_field(events, index, "x", other)


def _retarget_decisions(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    known = {request["q"]: request for _, _, _, request in listed_requests(events)}
    for index, event in select_events(events, "caller.decide"):
        for q, request in known.items():
            if "q" in event and q != event["q"] and request.get("label") != event.get("label"):
                # With id and label, so that only the target of the decision is wrong.
                changes = {name: request[name] for name in ("id", "label") if name in request}
                moved = [*events[:index], event | changes | {"q": q}, *events[index + 1 :]]
                yield Edit(what="caller.decide q", n=event["n"], events=moved)
                break
    for index, event in select_events(events, "turn.start", "caller.stage"):
        if event.get("decisions"):
            yield edit_field(events, index, "decisions", event["decisions"][1:])


def _retarget_requests(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    calls = model_calls(events)
    for index, field, at, request in listed_requests(events):
        other = next((call for call in calls if call["label"] != request.get("label")), None)
        if other is not None:
            changes = {"label": other["label"], "call_id": other.get("id")}
            yield edit_element(events, index, field, at, changes, f"{field}: call")


def _retarget_results(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "model.request"):
        ids = list(dict.fromkeys(item["id"] for item in event["items"] if item["kind"] == "call" and item.get("id")))
        for at, item in enumerate(event["items"]):
            other = next((seen for seen in (*ids, "nobody") if seen != item.get("id")), None)
            if item["kind"] in ("result", "approval_response"):
                yield edit_element(events, index, "items", at, {"id": other}, f"items: {item['kind']} id")
    for index, event in select_events(events, "model.answer"):
        for at, element in enumerate(event.get("hosted", ())):
            labels = (call["label"] for call in model_calls(events) if call["label"] != element["label"])
            yield edit_element(events, index, "hosted", at, {"label": next(labels, "nobody")}, "hosted: call")


def _retarget_stream(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "caller.shown"):
        if "id" in event and event["what"] in ("request", "result"):
            yield edit_field(events, index, "id", "nobody", f"id of a {event['what']}")


def _retarget_saves(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "store.restore"):
        names = [
            save["name"] for _, save in select_events(events[:index], "store.save") if save["name"] != event["name"]
        ]
        if names:
            yield edit_field(events, index, "name", names[0])


def _retarget_policies(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    ids = [call["id"] for call in model_calls(events) if call.get("id") is not None]
    for index, event in select_events(events, "tool.gate"):
        other = next((seen for seen in ids if seen != event.get("call_id")), None)
        if other is not None:
            yield edit_field(events, index, "call_id", other)


_OPPOSITE_VERDICTS = {"approve": "reject", "edit": "reject", "always": "never", "reject": "approve", "never": "always"}
_OTHER_ENDS = {"returned": "cancelled", "raised": "cancelled", "asked": "cancelled", "cancelled": "raised"}


def change_contents(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield an edit for each content that could have been different."""
    yield from _change_tools(events)
    yield from _change_requests(events)
    yield from _change_decisions(events)
    yield from _change_messages(events)
    yield from _change_turns(events)
    yield from _change_inputs(events)
    yield from _change_state(events)


def _change_tools(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "tool.start"):
        yield edit_field(events, index, "arguments", different_value(event.get("arguments")))
        yield edit_field(events, index, "tool", "elsewhere")
    for index, event in select_events(events, "tool.end"):
        if event["how"] == "returned":
            yield edit_field(events, index, "result", different_value(event.get("result")))
        yield edit_field(events, index, "how", _OTHER_ENDS[event["how"]])
    for index, event in select_events(events, "tool.gate"):
        if "answer" in event:
            yield edit_field(events, index, "answer", not event["answer"])


def _change_requests(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, field, at, request in listed_requests(events):
        shown = different_value(request.get("arguments"))
        yield edit_element(events, index, field, at, {"arguments": shown}, f"{field}: arguments")
        yield edit_element(events, index, field, at, {"tool": "elsewhere"}, f"{field}: tool")
        remaining = [element for place, element in enumerate(events[index][field]) if place != at]
        yield edit_field(events, index, field, remaining, f"{field}: one less")


def _change_decisions(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "caller.decide"):
        if event["verdict"] in _OPPOSITE_VERDICTS:
            plain = {name: value for name, value in event.items() if name not in ("arguments", "tool", "reason")}
            moved = [*events[:index], plain | {"verdict": _OPPOSITE_VERDICTS[event["verdict"]]}, *events[index + 1 :]]
            yield Edit(what="caller.decide verdict", n=event["n"], events=moved)
        if "reason" in event:
            yield edit_field(events, index, "reason", "for another reason")
        if "arguments" in event:
            yield edit_field(events, index, "arguments", different_value(event["arguments"]))


def _change_messages(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "turn.start"):
        if "text" in event:
            yield edit_field(events, index, "text", different_value(event["text"]))
    for index, event in select_events(events, "model.answer"):
        if "say" in event:
            yield edit_field(events, index, "say", different_value(event["say"]))
        for at, call in enumerate(event.get("calls", ())):
            asked = different_value(call.get("arguments"))
            yield edit_element(events, index, "calls", at, {"arguments": asked}, "calls: arguments")
        for at, element in enumerate(event.get("hosted", ())):
            if element.get("output") is not None:
                reported = different_value(element["output"])
                yield edit_element(events, index, "hosted", at, {"output": reported}, "hosted: output")
    for index, event in select_events(events, "caller.shown"):
        if "text" in event:
            yield edit_field(events, index, "text", different_value(event["text"]), f"{event['what']}: text")


def _change_turns(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "turn.end"):
        kept = {name: value for name, value in event.items() if name not in ("requests", "output", "text", "error")}
        if event["outcome"] != "failed":
            failed = kept | {"outcome": "failed", "error": ["RuntimeError", "no"]}
            yield Edit(what="turn.end failed", n=event["n"], events=[*events[:index], failed, *events[index + 1 :]])
        if event["outcome"] != "finished":
            finished = kept | {"outcome": "finished", "output": "All done."}
            yield Edit(what="turn.end finished", n=event["n"], events=[*events[:index], finished, *events[index + 1 :]])
        if event["outcome"] == "finished":
            yield edit_field(events, index, "output", different_value(event.get("output")))
        if event.get("text"):
            yield edit_field(events, index, "text", different_value(event["text"]))


def _change_inputs(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "model.request"):
        for at, item in enumerate(event["items"]):
            kind = item["kind"]
            remaining = [element for place, element in enumerate(event["items"]) if place != at]
            yield edit_field(events, index, "items", remaining, f"items: one {kind} less")
            if "text" in item:
                gathered = {"text": different_value(item["text"])}
                yield edit_element(events, index, "items", at, gathered, f"items: {kind} text")
            if "arguments" in item:
                asked = {"arguments": different_value(item["arguments"])}
                yield edit_element(events, index, "items", at, asked, f"items: {kind} arguments")
            if "approved" in item:
                sent = {"approved": not item["approved"]}
                yield edit_element(events, index, "items", at, sent, "items: approval turned around")


def _change_state(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    for index, event in select_events(events, "store.restore"):
        if "again" in event:
            yield edit_field(events, index, "again", different_value(event["again"]))
        if "error" not in event:
            failed = {name: value for name, value in event.items() if name not in ("pending", "again")}
            moved = [*events[:index], failed | {"error": ["ValueError", "no"]}, *events[index + 1 :]]
            yield Edit(what="store.restore failed", n=event["n"], events=moved)
    for index, event in select_events(events, "agent.start"):
        if event["tools"]:
            yield edit_field(events, index, "tools", event["tools"][1:], "tools: one less")


_FORGED_NUMBER = 1_000
"""A number that no journal gives; everything is numbered anew afterwards."""


def forge_events(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield an edit for each thing that could have happened in addition."""
    yield from _forge_executions(events)
    yield from _forge_requests(events)
    yield from _forge_inputs(events)
    yield from _forge_decisions(events)
    yield from _forge_answers(events)
    yield from _forge_stream(events)


def _forge_executions(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield executions right after each call, right after each execution, and of something that no model asked for."""
    for index, event in select_events(events, "model.answer"):
        for call in event.get("calls", ()):
            run = _build_execution(event, call["tool"], call.get("arguments"), call.get("id"))
            yield edit_insert(events, index + 1, run, "an execution right after the call")
        yield edit_insert(
            events, index + 1, _build_execution(event, "elsewhere", {}, "nobody"), "an execution of nothing"
        )
    for index, event in select_events(events, "tool.end"):
        start = next(
            (element for _, element in select_events(events, "tool.start") if element["x"] == event["x"]), None
        )
        if start is not None:
            again = _build_execution(start, start["tool"], start.get("arguments"), start.get("call_id"))
            yield edit_insert(events, index + 1, again, "an execution right after another")


def _build_execution(
    nearby: SerializedEvent, tool: str, arguments: object, call_id: str | None
) -> list[SerializedEvent]:
    session = {"session": nearby["session"]} if "session" in nearby else {}
    agent = nearby.get("agent") or str(nearby.get("conversation", "main")).rpartition("/")[2]
    # A tool is entered with an object, even if the model sent text.
    as_object = arguments if isinstance(arguments, dict) else {}
    start = {
        "event": "tool.start",
        "n": _FORGED_NUMBER,
        "x": _FORGED_NUMBER,
        "tool": tool,
        "arguments": as_object,
        "agent": agent,
    }
    start |= session | ({"call_id": call_id} if call_id is not None else {})
    return [
        start,
        {"event": "tool.end", "n": _FORGED_NUMBER + 1, "x": _FORGED_NUMBER, "how": "returned", "result": "x"} | session,
    ]


def _forge_requests(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield requests about something that no model called, or that was asked about already."""
    for index, event in select_events(events, "turn.end"):
        if event.get("requests"):
            more = {"q": "forged", "id": "forged", "call_id": "forged", "tool": "elsewhere", "arguments": {}}
            yield edit_field(events, index, "requests", [*event["requests"], more], "requests: about nothing")
            again = event["requests"][0] | {"q": "forged", "id": "forged"}
            yield edit_field(events, index, "requests", [*event["requests"], again], "requests: one asked twice")


def _forge_inputs(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield additional model input: a message, a result, a result a second time, a call that the model did not make."""
    for index, event in select_events(events, "model.request"):
        items = event["items"]
        last = items[-1]["message"] if items and "message" in items[-1] else 0
        more: dict[str, SerializedEvent] = {
            "a message": {"kind": "user", "text": "And then?", "message": last + 1},
            "a result of nothing": {"kind": "result", "id": "nobody", "text": "x", "message": last + 1},
            "a call of nobody": {
                "kind": "call",
                "id": "nobody",
                "tool": "elsewhere",
                "arguments": {},
                "message": last + 1,
            },
        }
        results = [item for item in items if item["kind"] == "result"]
        if results:
            more["a result twice"] = results[-1] | {"message": last + 1}
        for name, item in more.items():
            yield edit_field(events, index, "items", [*items, item], f"items: {name}")


def _forge_decisions(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield an additional decision for each turn: the opposite one, or one about nothing."""
    for index, event in select_events(events, "turn.start"):
        for n in event.get("decisions", ())[:1]:
            decision = next(
                (element for _, element in select_events(events, "caller.decide") if element["n"] == n), None
            )
            if decision is not None and decision["verdict"] in ("approve", "reject") and "q" in decision:
                verdict = "reject" if decision["verdict"] == "approve" else "approve"
                yield _insert_decision(
                    events, index, decision | {"n": _FORGED_NUMBER, "verdict": verdict, "oracle": "script"}, "opposite"
                )
        session = {"session": event["session"]} if "session" in event else {}
        nothing = {"event": "caller.decide", "n": _FORGED_NUMBER, "verdict": "approve", "id": "nobody"} | session
        yield _insert_decision(events, index, nothing, "about nothing")


def _insert_decision(events: Sequence[SerializedEvent], index: int, decision: SerializedEvent, what: str) -> Edit:
    turn = events[index] | {"decisions": [*events[index].get("decisions", ()), decision["n"]]}
    changed_events = [*events[:index], decision, turn, *events[index + 1 :]]
    return Edit(what=f"a decision, {what}", n=events[index]["n"], events=changed_events)


def _forge_answers(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield an additional call of the model, which nothing follows."""
    calls = model_calls(events)
    for index, event in select_events(events, "model.answer"):
        for call in calls[:1]:
            more = copy.deepcopy(call) | {"label": "forged", "id": "forged"}
            yield edit_field(events, index, "calls", [*event.get("calls", ()), more], "calls: one more")


def _forge_stream(events: Sequence[SerializedEvent]) -> Iterator[Edit]:
    """Yield a request in a stream that does not exist."""
    for index, event in select_events(events, "caller.shown"):
        if event["what"] == "end":
            yield edit_insert(events, index, [event | {"what": "request", "id": "nobody"}], "a shown request")
