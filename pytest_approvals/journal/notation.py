"""
Journals in short lines, for examples and tests.

    send Pay 5
    model c1 pay(amount=5)
    pause c1
    approve c1
    go
    run c1 -> paid 5
    done

stands for the whole journal of that story: numbers, inputs of the model, requests and the end are filled in. Where no
tool is declared there are `pay(amount: integer)`, which is always gated, and `read(path)`, which never is. A line is an
event, or a few that belong together:

    tool NAME(PARAMETER: TYPE, ...) APPROVAL    declares a tool; `always`, `never`, `when ARGUMENT > NUMBER`, then
                                                `hosted SERVER`, `mcp SERVER`, `of AGENT`, `runs AGENT`
    rules, reaches, expect, fresh, streaming    what the header says
    send TEXT, go                               a turn begins, with the decisions made since
    pause CALLS, finish TEXT, fail TYPE: TEXT   it ends; `2: finish` ends turn 2 of several that are open; `done` is
                                                `model Done.` and `finish Done.`; `shows CALL` is a pause with a
                                                request that nobody could match with a call
    model [@o1/helper] [TEXT] [CALL; CALL]      the model is asked and answers
    down STATUS, refusal RULE, exhausted        it is asked and does not
    hosted CALL -> TEXT                         its next answer reports a hosted call
    run CALL -> TEXT | !! ERROR | ??            a tool runs and returns, raises, or asks again
    start CALL, returns c1 TEXT, raises c1 ERROR    the same in two parts
    gate c1 yes|no|raises                       the policy is asked
    approve, reject, edit, always, never, raw   a decision about a call, or about an unknown request `?ID`
    stage, cancel, trim N, leave                what else the caller does; `show WHAT c1|TEXT` what a stream shows
    save NAME, restore NAME [: CALLS]           the store; `digest TEXT` after a save, `again TEXT` after a restore
    tell c1 TEXT, untell c1, forget c1, change c1 NAME=VALUE, say TEXT, user TEXT, drop say|user TEXT,
    respond c1 yes|no                           changes what the model's next input holds
    session NAME, lost WHAT, skip WHY, stuck, end HOW [: CALLS]

A CALL is `LABEL TOOL(NAME=VALUE, ...)`, or the label alone for the call as the model made it; its id is the last part of its label, or given as `LABEL@ID`, `LABEL@-` for
none.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.errors import JournalError, nearest

from . import events as ev

_CALL = re.compile(r"\s*(?P<label>[^\s@()]+)(?:@(?P<id>\S+))?\s+(?P<tool>\w+)\((?P<arguments>.*)\)\s*$")
_TOOL = re.compile(r"(?P<name>\w+)\((?P<parameters>[^)]*)\)\s*(?P<rest>.*)$")
_WHEN = re.compile(r"when (?P<argument>\w+) > (?P<number>\S+)")


def journal(text: str) -> list[ev.Event]:
    """
    Gives the events of a journal in short lines.

    Errors:
        JournalError: A line is none of those above.
    """
    scribe = _Scribe()
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#", 1)[0].strip() if " #" in line or line.startswith("#") else line.strip()
        if words:
            _write(scribe, number, words)
    return scribe.finished()


def _write(scribe: _Scribe, number: int, line: str) -> None:
    turn, colon, rest = line.partition(": ")
    if colon and turn.isdigit():
        scribe.ending, line = int(turn), rest
    verb, _, rest = line.partition(" ")
    write = getattr(scribe, f"on_{verb}", None)
    if write is None:
        verbs = [name[3:] for name in dir(scribe) if name.startswith("on_")]
        raise JournalError("notation", number, f"no line begins with {verb!r}{nearest(verb, verbs)}")
    try:
        write(rest.strip())
    except (KeyError, ValueError, AttributeError, IndexError) as error:
        raise JournalError("notation", number, f"cannot read {line!r}: {error!r}") from error


@dataclass(slots=True)
class _Call:
    label: str
    id: str | None
    tool: str
    arguments: Any

    @property
    def written(self) -> dict[str, Any]:
        return {"label": self.label, "id": self.id, "tool": self.tool, "arguments": self.arguments}


@dataclass(slots=True)
class _State:
    """What is known of one session between two turns; saved and restored."""

    items: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    calls: dict[str, _Call] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    message: int = 0


class _Scribe:
    """Writes events line by line."""

    def __init__(self) -> None:
        self.header = ev.Header(scenario="example", agent="example", wire_rules="chat")
        self.events: list[ev.Event] = []
        self.session = ""
        self.states: dict[str, _State] = {}
        self.saves: dict[str, _State] = {}
        self.turns: list[int] = []
        self.ending: int | None = None
        self.counts = {"turn": 0, "m": 0, "x": 0, "q": 0, "save": 0}
        self.running: dict[str, int] = {}
        self.requests: dict[tuple[str, str], str] = {}
        self.deciding: list[int] = []
        self.reported: list[dict[str, Any]] = []
        self.stream = False
        self.how = "restored"
        self.ended = False
        self.begun: list[str] = []

    @property
    def state(self) -> _State:
        return self.states.setdefault(self.session, _State())

    def add(self, event: ev.Event) -> ev.Event:
        if not self.events:
            if not self.header.tools:
                self.on_tool("pay(amount: integer) always")
                self.on_tool("read(path) never")
            self.events.append(self.header)
            self.header.n = 1
        if self.session not in self.begun:
            self.begun.append(self.session)
            self.add(ev.AgentStart(tools=list(self.header.tools), how="session" if self.begun[1:] else "built"))
        event.session = self.session
        event.n = len(self.events) + 1
        self.events.append(event)
        return event

    def count(self, what: str) -> int:
        self.counts[what] += 1
        return self.counts[what]

    def finished(self) -> list[ev.Event]:
        if not self.ended:
            self.on_end("completed")
        return self.events

    # --- the header ---

    def on_tool(self, rest: str) -> None:
        found = _TOOL.match(rest)
        assert found is not None, rest
        pairs = [pair.partition(":") for pair in found["parameters"].split(",") if pair.strip()]
        tool: dict[str, Any] = {
            "approval": "never",
            "parameters": {name.strip(): _parameter(kind.strip()) for name, _, kind in pairs},
            "kind": "function",
        }
        words = found["rest"]
        condition = _WHEN.search(words)
        if condition is not None:
            tool["approval"] = {"argument": condition["argument"], "greater_than": float(condition["number"])}
            words = _WHEN.sub("", words)
        _declare(tool, words.split())
        self.header.tools[found["name"]] = tool

    def on_rules(self, rest: str) -> None:
        self.header.wire_rules = rest

    def on_reaches(self, rest: str) -> None:
        self.header.reaches = {name: int(value) for name, value in (one.split("=") for one in rest.split(", "))}

    def on_expect(self, rest: str) -> None:
        what, _, value = rest.partition(" ")
        self.header.expect[what] = value.split(", ") if what == "runs" else value

    def on_streaming(self, rest: str) -> None:
        self.stream = True

    def on_fresh(self, rest: str) -> None:
        self.how = "fresh"

    # --- turns ---

    def on_send(self, rest: str) -> None:
        self.state.message += 1
        self._item("main", {"kind": "user", "text": rest})
        self._turn(rest)

    def on_go(self, rest: str) -> None:
        self._turn(None)

    def _turn(self, text: str | None) -> None:
        number = self.count("turn")
        self.add(ev.TurnStart(turn=number, text=text, decisions=self.deciding, stream=self.stream))
        self.turns.append(number)
        self.deciding = []

    def _turn_end(self, outcome: str, **facts: Any) -> None:
        turn = self.ending if self.ending is not None else self.turns[-1]
        self.ending = None
        self.turns.remove(turn)
        self.add(ev.TurnEnd(turn=turn, outcome=outcome, **facts))

    def on_pause(self, rest: str) -> None:
        self._turn_end("paused", requests=self._requests(rest))

    def on_shows(self, rest: str) -> None:
        entry = self._request(rest)
        del entry["label"]
        self._turn_end("paused", requests=[entry])

    def on_finish(self, rest: str) -> None:
        self.state.open = []
        self._turn_end("finished", output=rest)

    def on_done(self, rest: str) -> None:
        self.on_model("Done.")
        self.on_finish("Done.")

    def on_fail(self, rest: str) -> None:
        self._turn_end("failed", error=rest.split(": ", 1))

    def on_timeout(self, rest: str) -> None:
        self._turn_end("timeout", error=["TimeoutError", ""])

    def _requests(self, rest: str) -> list[dict[str, Any]]:
        entries = [self._request(part.strip()) for part in re.split(r",\s+(?![^(]*\))", rest) if part.strip()]
        self.state.open = [entry["label"] for entry in entries]
        return entries

    def _request(self, part: str) -> dict[str, Any]:
        shown = self._call(part)
        fresh = shown.label not in self.state.open
        if fresh or (self.session, shown.label) not in self.requests:
            self.requests[self.session, shown.label] = f"q{self.count('q')}"
        written = shown.written | {"call_id": shown.id, "q": self.requests[self.session, shown.label]}
        tool = self.header.tools.get(shown.tool, {})
        return written | {"kind": tool.get("kind", "function"), "agent": tool.get("agent", "main")}

    # --- the model ---

    def on_model(self, rest: str) -> None:
        conversation = "main"
        if rest.startswith("@"):
            conversation, _, rest = rest[1:].partition(" ")
        m = self._question(conversation)
        texts, calls = [], []
        for part in re.split(r";\s*", rest):
            if _CALL.match(part):
                calls.append(self._call(part, conversation=conversation))
            elif part:
                texts.append(part)
        say = "; ".join(texts) or None
        hosted, self.reported = self.reported, []
        written = [call.written | self._kind(call.tool) for call in calls]
        self.add(ev.ModelAnswer(m=m, conversation=conversation, say=say, calls=written, hosted=hosted))
        self.state.message += 1
        if say is not None:
            self._item(conversation, {"kind": "say", "text": say})
        for call in calls:
            kind = "approval_request" if self._kind(call.tool)["kind"] == "hosted_mcp" else "call"
            item = {"kind": kind, "id": call.id, "tool": call.tool, "arguments": call.arguments}
            self._item(conversation, item)

    def _kind(self, tool: str) -> dict[str, Any]:
        declared = self.header.tools.get(tool, {})
        server = {"server": declared["server"]} if declared.get("server") else {}
        return {"kind": declared.get("kind", "function"), **server}

    def _question(self, conversation: str) -> int:
        m, agent = self.count("m"), conversation.rpartition("/")[2]
        if conversation not in self.state.items and "/" in conversation:
            outer = self.state.calls[conversation.rpartition("/")[0]]
            self._item(conversation, {"kind": "user", "text": outer.arguments["input"]})
        items = copy.deepcopy(self.state.items.get(conversation, []))
        tools = list(self.header.tools)
        self.add(ev.ModelRequest(m=m, conversation=conversation, agent=agent, items=items, tools=tools))
        return m

    def _item(self, conversation: str, item: dict[str, Any]) -> None:
        items = self.state.items.setdefault(conversation, [])
        items.append(
            {name: value for name, value in item.items() if value is not None} | {"message": self.state.message}
        )

    def on_down(self, rest: str) -> None:
        m = self._question("main")
        self.add(ev.ModelFailure(m=m, conversation="main", status=int(rest)))

    def on_refusal(self, rest: str) -> None:
        m = self._question("main")
        self.add(ev.ModelRefusal(m=m, conversation="main", broken=[{"rule": rest, "ids": [], "text": rest}]))

    def on_exhausted(self, rest: str) -> None:
        m = self._question("main")
        self.add(ev.ModelExhausted(m=m, conversation="main", limit=int(rest) if rest else None))

    def on_hosted(self, rest: str) -> None:
        call, _, output = rest.partition(" -> ")
        seen = self._call(call)
        x = self.count("x")
        self.add(ev.ToolStart(x=x, tool=seen.tool, arguments=seen.arguments, call_id=seen.id, by="provider"))
        self.add(ev.ToolEnd(x=x, result=output))
        self.reported.append({"label": seen.label, "output": output})

    def on_respond(self, rest: str) -> None:
        label, _, approved = rest.partition(" ")
        self.state.message += 1
        item = {"kind": "approval_response", "id": self._call(label).id, "approved": approved == "yes"}
        self._item("main", item)

    def on_tell(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        call = self._call(label)
        self.state.message += 1
        self._item(self._conversation(call.label), {"kind": "result", "id": call.id, "text": text})

    def on_untell(self, rest: str) -> None:
        self._drop(rest, ("result",))

    def on_forget(self, rest: str) -> None:
        self._drop(rest, ("call", "result"))

    def _drop(self, label: str, kinds: tuple[str, ...]) -> None:
        items = self.state.items[self._conversation(label)]
        seen = self.state.calls[label].id
        items[:] = [item for item in items if not (item["kind"] in kinds and item.get("id") == seen)]

    def on_drop(self, rest: str) -> None:
        kind, _, text = rest.partition(" ")
        items = self.state.items["main"]
        items[:] = [item for item in items if (item["kind"], item.get("text")) != (kind, text)]

    def on_change(self, rest: str) -> None:
        label, _, arguments = rest.partition(" ")
        for item in self.state.items[self._conversation(label)]:
            if item["kind"] == "call" and item.get("id") == self.state.calls[label].id:
                item["arguments"] = _arguments(arguments)

    def on_user(self, rest: str) -> None:
        self.state.message += 1
        self._item("main", {"kind": "user", "text": rest})

    def on_say(self, rest: str) -> None:
        self.state.message += 1
        self._item("main", {"kind": "say", "text": rest})

    # --- tools ---

    def on_run(self, rest: str) -> None:
        if rest.endswith("??"):
            self._end_tool(self.on_start(rest[:-2]), how="asked")
            self.state.open = [label for label in self.state.open if label != rest.split(" ")[0]]
        elif " !! " in rest:
            call, _, text = rest.partition(" !! ")
            self._end_tool(self.on_start(call), how="raised", error=["ToolRaised", text])
        else:
            call, _, text = rest.partition(" -> ")
            self.on_returns(f"{self.on_start(call)} {text}")

    def on_start(self, rest: str) -> str:
        call = self._call(rest)
        self.running[call.label] = x = self.count("x")
        agent = self.header.tools.get(call.tool, {}).get("agent", "main")
        self.add(ev.ToolStart(x=x, tool=call.tool, arguments=call.arguments, call_id=call.id, agent=agent))
        return call.label

    def on_returns(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        self._end_tool(label, result=text)
        if label in self.state.calls:
            self.on_tell(f"{label} {text}")

    def on_raises(self, rest: str) -> None:
        label, _, text = rest.partition(" ")
        self._end_tool(label, how="raised", error=["ToolRaised", text])

    def _end_tool(self, label: str, **facts: Any) -> None:
        self.add(ev.ToolEnd(x=self.running.pop(label), **facts))

    def on_gate(self, rest: str) -> None:
        label, _, said = rest.partition(" ")
        call = self._call(label)
        facts: dict[str, Any] = {"raised": "no"} if said == "raises" else {"answer": said == "yes"}
        self.add(ev.Gate(tool=call.tool, arguments=call.arguments, call_id=call.id, **facts))

    # --- the caller ---

    def _decide(self, verdict: str, rest: str) -> None:
        label, _, more = rest.partition(" ")
        facts: dict[str, Any] = {}
        if verdict == "edit":
            tool, _, arguments = more.rstrip(")").partition("(")
            facts = {"arguments": _arguments(arguments), "tool": tool or None}
        elif verdict == "raw":
            facts = {"raw": {"verdict": _value(more)}}
        elif more:
            facts = {"reason": more}
        if label.startswith("?"):
            decide = ev.Decide(verdict=verdict, id=label[1:], **facts)
        else:
            q = self.requests.get((self.session, label))
            decide = ev.Decide(verdict=verdict, q=q, id=self._call(label).id, label=label, **facts)
        self.deciding.append(self.add(decide).n)

    def on_approve(self, rest: str) -> None:
        self._decide("approve", rest)

    def on_reject(self, rest: str) -> None:
        self._decide("reject", rest)

    def on_edit(self, rest: str) -> None:
        self._decide("edit", rest)

    def on_always(self, rest: str) -> None:
        self._decide("always", rest)

    def on_never(self, rest: str) -> None:
        self._decide("never", rest)

    def on_raw(self, rest: str) -> None:
        self._decide("raw", rest)

    def on_stage(self, rest: str) -> None:
        self.add(ev.Staged(decisions=self.deciding, error=rest.split(": ", 1) if rest else None))
        self.deciding = []

    def on_cancel(self, rest: str) -> None:
        self.add(ev.Cancelled(error=rest.split(": ", 1) if rest else None))
        if not rest:
            self.state.open = []

    def on_show(self, rest: str) -> None:
        what, _, more = rest.partition(" ")
        known = self.state.calls.get(more)
        facts = {"text": more} if what == "text" else {"id": known.id if known else more or None}
        self.add(ev.Shown(turn=self.turns[-1], what=what, **facts))

    def on_skip(self, rest: str) -> None:
        self.add(ev.Skipped(step="decide", why=rest))

    def on_stuck(self, rest: str) -> None:
        self.add(ev.Stuck(rounds=3, requests=[self.requests[self.session, label] for label in self.state.open]))

    # --- the store and the frame ---

    def on_save(self, rest: str) -> None:
        name = rest or f"save-{self.count('save')}"
        self.saves[name] = copy.deepcopy(self.state)
        self.add(ev.Saved(name=name, mode=self._mode()))

    def on_restore(self, rest: str) -> None:
        name, colon, pending = rest.partition(":")
        name = name.strip() or list(self.saves)[-1]
        self.states[self.session] = copy.deepcopy(self.saves[name])
        labels = pending if colon else ", ".join(self.state.open)
        self.add(ev.AgentStart(tools=list(self.header.tools), how=self.how))
        self.add(ev.Restored(name=name, mode=self._mode(), pending=self._requests(labels)))

    def on_digest(self, rest: str) -> None:
        saved = self.events[-1]
        assert isinstance(saved, ev.Saved)
        saved.digest = rest

    def on_again(self, rest: str) -> None:
        restored = self.events[-1]
        assert isinstance(restored, ev.Restored)
        restored.again = rest

    def on_mode(self, rest: str) -> None:
        self.header.variant["serialize"] = rest

    def _mode(self) -> str:
        return str(self.header.variant.setdefault("serialize", "json"))

    def on_without(self, rest: str) -> None:
        self.header.tools.pop(rest)

    def on_trim(self, rest: str) -> None:
        for items in self.state.items.values():
            del items[: -int(rest)]
        self.add(ev.Trimmed(keep=int(rest)))

    def on_session(self, rest: str) -> None:
        self.session = rest

    def on_lost(self, rest: str) -> None:
        self.add(ev.AgentLost(what=rest))

    def on_end(self, rest: str) -> None:
        how, _, pending = rest.partition(":")
        self.session = ""
        labels = pending if pending.strip() else ", ".join(self.state.open)
        self.add(ev.RunEnd(how=how.strip() or "completed", pending=self._requests(labels)))
        self.ended = True

    # --- calls ---

    def _conversation(self, label: str) -> str:
        outer = label.rpartition("/")[0]
        names = (name for name in self.state.items if outer and name.startswith(f"{outer}/"))
        return next(names, "main")

    def _call(self, written: str, conversation: str | None = None) -> _Call:
        """Reads a call; a label alone stands for the call as the model made it."""
        found = _CALL.match(written)
        if found is None:
            return self.state.calls[written.strip()]
        label, seen = found["label"], found["id"]
        known = self.state.calls.get(label)
        given = label.rpartition("/")[2].partition("#")[0] if known is None else known.id
        call_id = None if seen == "-" else (seen or given)
        call = _Call(label, call_id, found["tool"], _arguments(found["arguments"]))
        if conversation is not None:
            self.state.calls[label] = call
        return call


def _declare(tool: dict[str, Any], words: list[str]) -> None:
    while words:
        word = words.pop(0)
        if word in ("always", "never"):
            tool["approval"] = word
        elif word == "raises":
            tool["approval"] = {"raises": "no"}
        elif word in ("hosted", "mcp"):
            tool["kind"], tool["server"] = ("hosted_mcp" if word == "hosted" else "mcp"), words.pop(0)
        else:
            tool[{"of": "agent", "runs": "runs"}[word]] = words.pop(0)


def _parameter(kind: str) -> dict[str, Any]:
    name, _, default = kind.partition(" = ")
    written: dict[str, Any] = {"type": name or "string", "required": not default}
    return written | ({"default": _value(default)} if default else {})


def _arguments(written: str) -> Any:
    """Reads `a=1, b=text`; anything without `=` stays raw text."""
    if not written.strip():
        return {}
    pairs = [pair.partition("=") for pair in re.split(r",\s+", written)]
    if not all(equals for _, equals, _ in pairs):
        return written
    return {name: _value(value) for name, _, value in pairs}


def _value(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError:
        return written
