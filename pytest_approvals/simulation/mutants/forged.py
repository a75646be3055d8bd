"""The operator that lets a journal tell of things that did not happen."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence

from .edits import Edit, Written, calls, changed, each, inserted

_FORGED = 1_000
"""A number that no journal gives; everything is numbered anew afterwards."""


def forged(events: Sequence[Written]) -> Iterator[Edit]:
    """Gives an edit for each thing that could have happened besides."""
    yield from _executions(events)
    yield from _requests(events)
    yield from _inputs(events)
    yield from _decisions(events)
    yield from _answers(events)
    yield from _shown(events)


def _executions(events: Sequence[Written]) -> Iterator[Edit]:
    """Each call runs when it was made, and once more after it ran; and something runs that nobody asked for."""
    for index, event in each(events, "model.answer"):
        for call in event.get("calls", ()):
            run = _run(event, call["tool"], call.get("arguments"), call.get("id"))
            yield inserted(events, index + 1, run, "an execution right after the call")
        yield inserted(events, index + 1, _run(event, "elsewhere", {}, "nobody"), "an execution of nothing")
    for index, event in each(events, "tool.end"):
        start = next((one for _, one in each(events, "tool.start") if one["x"] == event["x"]), None)
        if start is not None:
            again = _run(start, start["tool"], start.get("arguments"), start.get("call_id"))
            yield inserted(events, index + 1, again, "an execution right after another")


def _run(beside: Written, tool: str, arguments: object, call_id: str | None) -> list[Written]:
    session = {"session": beside["session"]} if "session" in beside else {}
    agent = beside.get("agent") or str(beside.get("conversation", "main")).rpartition("/")[2]
    given = arguments if isinstance(arguments, dict) else {}
    start = {"event": "tool.start", "n": _FORGED, "x": _FORGED, "tool": tool, "arguments": given, "agent": agent}
    start |= session | ({"call_id": call_id} if call_id is not None else {})
    return [start, {"event": "tool.end", "n": _FORGED + 1, "x": _FORGED, "how": "returned", "result": "x"} | session]


def _requests(events: Sequence[Written]) -> Iterator[Edit]:
    """Something is asked about that no model called, or that was asked about already."""
    for index, event in each(events, "turn.end"):
        if event.get("requests"):
            more = {"q": "forged", "id": "forged", "call_id": "forged", "tool": "elsewhere", "arguments": {}}
            yield changed(events, index, "requests", [*event["requests"], more], "requests: about nothing")
            again = event["requests"][0] | {"q": "forged", "id": "forged"}
            yield changed(events, index, "requests", [*event["requests"], again], "requests: one asked twice")


def _inputs(events: Sequence[Written]) -> Iterator[Edit]:
    """The model is sent something more: a message, a result, a result a second time, a call that it did not make."""
    for index, event in each(events, "model.request"):
        items = event["items"]
        last = items[-1]["message"] if items and "message" in items[-1] else 0
        more: dict[str, Written] = {
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
        for what, item in more.items():
            yield changed(events, index, "items", [*items, item], f"items: {what}")


def _decisions(events: Sequence[Written]) -> Iterator[Edit]:
    """A turn brings a decision more: the opposite one, or one about nothing."""
    for index, event in each(events, "turn.start"):
        for n in event.get("decisions", ())[:1]:
            given = next((one for _, one in each(events, "caller.decide") if one["n"] == n), None)
            if given is not None and given["verdict"] in ("approve", "reject") and "q" in given:
                verdict = "reject" if given["verdict"] == "approve" else "approve"
                yield _decided(
                    events, index, given | {"n": _FORGED, "verdict": verdict, "oracle": "script"}, "opposite"
                )
        session = {"session": event["session"]} if "session" in event else {}
        nothing = {"event": "caller.decide", "n": _FORGED, "verdict": "approve", "id": "nobody"} | session
        yield _decided(events, index, nothing, "about nothing")


def _decided(events: Sequence[Written], index: int, decision: Written, what: str) -> Edit:
    turn = events[index] | {"decisions": [*events[index].get("decisions", ()), decision["n"]]}
    changed_events = [*events[:index], decision, turn, *events[index + 1 :]]
    return Edit(what=f"a decision, {what}", n=events[index]["n"], events=changed_events)


def _answers(events: Sequence[Written]) -> Iterator[Edit]:
    """The model makes a call more, which nobody cares about."""
    made = calls(events)
    for index, event in each(events, "model.answer"):
        for call in made[:1]:
            more = copy.deepcopy(call) | {"label": "forged", "id": "forged"}
            yield changed(events, index, "calls", [*event.get("calls", ()), more], "calls: one more")


def _shown(events: Sequence[Written]) -> Iterator[Edit]:
    """A stream shows a request that is none."""
    for index, event in each(events, "caller.shown"):
        if event["what"] == "end":
            yield inserted(events, index, [event | {"what": "request", "id": "nobody"}], "a shown request")
