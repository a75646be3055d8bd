"""The operator that changes what was said, handed over and given back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .edits import Edit, Written, changed, changed_element, each, listed, other

_VERDICTS = {"approve": "reject", "edit": "reject", "always": "never", "reject": "approve", "never": "always"}
_ENDS = {"returned": "cancelled", "raised": "cancelled", "asked": "cancelled", "cancelled": "raised"}


def rewritten(events: Sequence[Written]) -> Iterator[Edit]:
    """Gives an edit for each thing that could have been another."""
    yield from _tools(events)
    yield from _requests(events)
    yield from _decisions(events)
    yield from _messages(events)
    yield from _turns(events)
    yield from _inputs(events)
    yield from _state(events)


def _tools(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "tool.start"):
        yield changed(events, index, "arguments", other(event.get("arguments")))
        yield changed(events, index, "tool", "elsewhere")
    for index, event in each(events, "tool.end"):
        if event["how"] == "returned":
            yield changed(events, index, "result", other(event.get("result")))
        yield changed(events, index, "how", _ENDS[event["how"]])
    for index, event in each(events, "tool.gate"):
        if "answer" in event:
            yield changed(events, index, "answer", not event["answer"])


def _requests(events: Sequence[Written]) -> Iterator[Edit]:
    for index, field, at, request in listed(events):
        shown = other(request.get("arguments"))
        yield changed_element(events, index, field, at, {"arguments": shown}, f"{field}: arguments")
        yield changed_element(events, index, field, at, {"tool": "elsewhere"}, f"{field}: tool")
        left = [one for place, one in enumerate(events[index][field]) if place != at]
        yield changed(events, index, field, left, f"{field}: one less")


def _decisions(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "caller.decide"):
        if event["verdict"] in _VERDICTS:
            plain = {name: held for name, held in event.items() if name not in ("arguments", "tool", "reason")}
            moved = [*events[:index], plain | {"verdict": _VERDICTS[event["verdict"]]}, *events[index + 1 :]]
            yield Edit(what="caller.decide verdict", n=event["n"], events=moved)
        if "reason" in event:
            yield changed(events, index, "reason", "for another reason")
        if "arguments" in event:
            yield changed(events, index, "arguments", other(event["arguments"]))


def _messages(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "turn.start"):
        if "text" in event:
            yield changed(events, index, "text", other(event["text"]))
    for index, event in each(events, "model.answer"):
        if "say" in event:
            yield changed(events, index, "say", other(event["say"]))
        for at, call in enumerate(event.get("calls", ())):
            asked = other(call.get("arguments"))
            yield changed_element(events, index, "calls", at, {"arguments": asked}, "calls: arguments")
        for at, one in enumerate(event.get("hosted", ())):
            if one.get("output") is not None:
                reported = other(one["output"])
                yield changed_element(events, index, "hosted", at, {"output": reported}, "hosted: output")
    for index, event in each(events, "caller.shown"):
        if "text" in event:
            yield changed(events, index, "text", other(event["text"]), f"{event['what']}: text")


def _turns(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "turn.end"):
        kept = {name: held for name, held in event.items() if name not in ("requests", "output", "text", "error")}
        if event["outcome"] != "failed":
            failed = kept | {"outcome": "failed", "error": ["RuntimeError", "no"]}
            yield Edit(what="turn.end failed", n=event["n"], events=[*events[:index], failed, *events[index + 1 :]])
        if event["outcome"] != "finished":
            finished = kept | {"outcome": "finished", "output": "All done."}
            yield Edit(what="turn.end finished", n=event["n"], events=[*events[:index], finished, *events[index + 1 :]])
        if event["outcome"] == "finished":
            yield changed(events, index, "output", other(event.get("output")))
        if event.get("text"):
            yield changed(events, index, "text", other(event["text"]))


def _inputs(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "model.request"):
        for at, item in enumerate(event["items"]):
            kind = item["kind"]
            left = [one for place, one in enumerate(event["items"]) if place != at]
            yield changed(events, index, "items", left, f"items: one {kind} less")
            if "text" in item:
                told = {"text": other(item["text"])}
                yield changed_element(events, index, "items", at, told, f"items: {kind} text")
            if "arguments" in item:
                asked = {"arguments": other(item["arguments"])}
                yield changed_element(events, index, "items", at, asked, f"items: {kind} arguments")
            if "approved" in item:
                sent = {"approved": not item["approved"]}
                yield changed_element(events, index, "items", at, sent, "items: approval turned around")


def _state(events: Sequence[Written]) -> Iterator[Edit]:
    for index, event in each(events, "store.restore"):
        if "again" in event:
            yield changed(events, index, "again", other(event["again"]))
        if "error" not in event:
            failed = {name: held for name, held in event.items() if name not in ("pending", "again")}
            moved = [*events[:index], failed | {"error": ["ValueError", "no"]}, *events[index + 1 :]]
            yield Edit(what="store.restore failed", n=event["n"], events=moved)
    for index, event in each(events, "agent.start"):
        if event["tools"]:
            yield changed(events, index, "tools", event["tools"][1:], "tools: one less")
