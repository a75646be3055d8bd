"""The operator that lets something refer to another call, request, execution or save than it did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .edits import Edit, Written, calls, changed, changed_element, each, listed


def retargeted(events: Sequence[Written]) -> Iterator[Edit]:
    """Gives one edit for each reference that could have been to something else of its kind."""
    yield from _executions(events)
    yield from _decisions(events)
    yield from _requests(events)
    yield from _results(events)
    yield from _shown(events)
    yield from _saves(events)
    yield from _policies(events)


def _executions(events: Sequence[Written]) -> Iterator[Edit]:
    ids = [call["id"] for call in calls(events) if call.get("id") is not None]
    for index, event in each(events, "tool.start"):
        strange = next((seen for seen in ids if seen != event.get("call_id")), None)
        if strange is not None and "call_id" in event:
            yield changed(events, index, "call_id", strange)
    numbers = [event["x"] for _, event in each(events, "tool.start")]
    for index, event in each(events, "tool.end"):
        strange = next((x for x in numbers if x != event["x"]), None)
        if strange is not None:
            yield changed(events, index, "x", strange)


def _decisions(events: Sequence[Written]) -> Iterator[Edit]:
    known = {request["q"]: request for _, _, _, request in listed(events)}
    for index, event in each(events, "caller.decide"):
        for q, request in known.items():
            if "q" in event and q != event["q"] and request.get("label") != event.get("label"):
                taken = {name: request[name] for name in ("id", "label") if name in request}
                moved = [*events[:index], event | taken | {"q": q}, *events[index + 1 :]]
                yield Edit(what="caller.decide q", n=event["n"], events=moved)
                break
    for index, event in each(events, "turn.start", "caller.stage"):
        if event.get("decisions"):
            yield changed(events, index, "decisions", event["decisions"][1:])


def _requests(events: Sequence[Written]) -> Iterator[Edit]:
    made = calls(events)
    for index, field, at, request in listed(events):
        strange = next((call for call in made if call["label"] != request.get("label")), None)
        if strange is not None:
            taken = {"label": strange["label"], "call_id": strange.get("id")}
            yield changed_element(events, index, field, at, taken, f"{field}: call")


def _results(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "model.request"):
        ids = list(dict.fromkeys(item["id"] for item in event["items"] if item["kind"] == "call" and item.get("id")))
        for at, item in enumerate(event["items"]):
            strange = next((seen for seen in (*ids, "nobody") if seen != item.get("id")), None)
            if item["kind"] in ("result", "approval_response"):
                yield changed_element(events, index, "items", at, {"id": strange}, f"items: {item['kind']} id")
    for index, event in each(events, "model.answer"):
        for at, one in enumerate(event.get("hosted", ())):
            labels = (call["label"] for call in calls(events) if call["label"] != one["label"])
            yield changed_element(events, index, "hosted", at, {"label": next(labels, "nobody")}, "hosted: call")


def _shown(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "caller.shown"):
        if "id" in event and event["what"] in ("request", "result"):
            yield changed(events, index, "id", "nobody", f"id of a {event['what']}")


def _saves(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "store.restore"):
        names = [save["name"] for _, save in each(events[:index], "store.save") if save["name"] != event["name"]]
        if names:
            yield changed(events, index, "name", names[0])


def _policies(events: Sequence[Written]) -> Iterator[Edit]:
    ids = [call["id"] for call in calls(events) if call.get("id") is not None]
    for index, event in each(events, "tool.gate"):
        strange = next((seen for seen in ids if seen != event.get("call_id")), None)
        if strange is not None:
            yield changed(events, index, "call_id", strange)
