"""What writes the events of a notation: the frame, and what every line needs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_approvals.journal import events as ev

from .words import CALL, WrittenCall, arguments_of, tool_of


@dataclass(slots=True)
class State:
    """What is known of one session between two turns; saved and restored."""

    items: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    calls: dict[str, WrittenCall] = field(default_factory=dict)
    open: list[str] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    message: int = 0


class Scribe:
    """Writes events line by line."""

    def __init__(self) -> None:
        self.header = ev.Header(scenario="example", agent="example", wire_rules="chat")
        self.events: list[ev.Event] = []
        self.session = ""
        self.states: dict[str, State] = {}
        self.saves: dict[str, State] = {}
        self.turns: list[int] = []
        self.ending: int | None = None
        self.counts = {"turn": 0, "m": 0, "x": 0, "q": 0, "save": 0}
        self.running: dict[str, list[int]] = {}
        self.requests: dict[tuple[str, str], str] = {}
        self.deciding: list[int] = []
        self.reported: list[dict[str, Any]] = []
        self.stream = False
        self.how = "restored"
        self.ended = False
        self.begun: list[str] = []
        self.available: list[str] = []
        self.parameters: dict[str, Any] = {}

    @property
    def state(self) -> State:
        return self.states.setdefault(self.session, State())

    def add(self, event: ev.Event) -> ev.Event:
        if not self.events:
            if not self.header.tools:
                self.on_tool("pay(amount: integer) always")
                self.on_tool("read(path) never")
            self.available = list(self.header.tools)
            self.events.append(self.header)
            self.header.n = 1
        if self.session not in self.begun:
            self.begun.append(self.session)
            self.add(ev.AgentStart(tools=list(self.available), how="session" if self.begun[1:] else "built"))
        event.session = self.session
        event.n = len(self.events) + 1
        self.events.append(event)
        return event

    def count(self, what: str) -> int:
        self.counts[what] += 1
        return self.counts[what]

    def item(self, conversation: str, item: dict[str, Any]) -> None:
        """Adds an item to what the next input of a model holds."""
        items = self.state.items.setdefault(conversation, [])
        given = {name: value for name, value in item.items() if value is not None}
        items.append(given | {"message": self.state.message})

    # --- the header ---

    def on_tool(self, rest: str) -> None:
        name, declared = tool_of(rest)
        self.header.tools[name] = declared

    def on_wants(self, rest: str) -> None:
        self.header.answer = tool_of(f"answer({rest})")[1]["parameters"]

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

    # --- calls and requests ---

    def _conversation(self, label: str) -> str:
        outer = label.rpartition("/")[0]
        names = (name for name in self.state.items if outer and name.startswith(f"{outer}/"))
        return next(names, "main")

    def _call(self, written: str, conversation: str | None = None) -> WrittenCall:
        """Reads a call; a label alone stands for the call as the model made it, with the id that the agent gave it."""
        found = CALL.match(written)
        if found is None:
            known = self.state.calls[written.strip()]
            return replace(known, id=self.state.names.get(known.label, known.id))
        label, seen = found["label"], found["id"]
        call_id = None if seen == "-" else (seen or self._id(label))
        call = WrittenCall(label, call_id, found["tool"], arguments_of(found["arguments"]))
        if conversation is not None:
            self.state.calls[label] = call
        return call

    def _id(self, label: str) -> str | None:
        known = self.state.calls.get(label)
        if known is None:
            return label.rpartition("/")[2].partition("#")[0]
        return self.state.names.get(label, known.id)

    def _requests(self, rest: str) -> list[dict[str, Any]]:
        entries = [self._request(part.strip()) for part in re.split(r",\s+(?![^(]*\))", rest) if part.strip()]
        self.state.open = [entry["label"] for entry in entries]
        return entries

    def _request(self, part: str) -> dict[str, Any]:
        shown = self._call(part)
        fresh = shown.label not in self.state.open
        if fresh or (self.session, shown.label) not in self.requests:
            self.requests[self.session, shown.label] = f"q{self.count('q')}"
        written = shown.facts | {"call_id": shown.id, "q": self.requests[self.session, shown.label]}
        tool = self.header.tools.get(shown.tool, {})
        server = {"server": tool["server"]} if tool.get("server") else {}
        return written | {"kind": tool.get("kind", "function"), "agent": tool.get("agent", "main"), **server}
