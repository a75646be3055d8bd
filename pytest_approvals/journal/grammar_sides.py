"""The grammar of what is said to and by models, tools and the caller: questions, executions, requests, decisions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .events import (
    AgentStart,
    Decide,
    Event,
    Header,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    ModelRefusal,
    ModelRequest,
    Restored,
    RunEnd,
    Staged,
    ToolEnd,
    ToolStart,
    TurnEnd,
    TurnStart,
)
from .grammar_topic import BrokenGrammar, Listener, Topic

_ENDS_OF_TOOLS = ("returned", "raised", "asked", "cancelled")
_VERDICTS = ("approve", "reject", "edit", "always", "never", "raw")
_SOURCES = ("held", "restored", "rebuilt")


class Models(Topic):
    """
    Each question to a model has exactly one answer, in its conversation; a nested conversation names a call. A model is
    offered no declared tool that its agent has not got.
    """

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.count = 0
        self.open: dict[int, ModelRequest] = {}
        self.labels: set[tuple[str, str]] = set()
        self.declared: set[str] = set()
        self.heirs: set[str] = set()
        self.tools: dict[str, set[str]] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        closing: dict[type[Event], Listener] = dict.fromkeys((ModelFailure, ModelRefusal, ModelExhausted), self.closes)
        frame: dict[type[Event], Listener] = {Header: self.declares, AgentStart: self.starts}
        return {**frame, ModelRequest: self.asks, ModelAnswer: self.answers, TurnEnd: self.lists, **closing}

    def declares(self, event: Header) -> None:
        self.declared = {name.rpartition("/")[2] for name in event.tools}
        self.heirs = {written["hands_over_to"] for written in event.tools.values() if written.get("hands_over_to")}

    def starts(self, event: AgentStart) -> None:
        self.tools[event.session] = {*event.tools}

    def asks(self, event: ModelRequest) -> None:
        self.count += 1
        self.next_number(event, "question", event.m, self.count)
        self.open[event.m] = event
        caller, _, agent = event.conversation.rpartition("/")
        if agent != event.agent and self.declared and event.agent not in self.heirs:
            self.broken(f"the model of {event.agent!r} is asked in the conversation of {agent!r}", event.n)
        if caller and (event.session, caller) not in self.labels:
            self.broken(f"a conversation begins in call {caller}, which no model made", event.n)
        missing = (self.declared & {*event.tools}) - self.tools.get(event.session, self.declared)
        if missing:
            self.broken(f"the model is offered the tool {min(missing)}, which its agent has not got", event.n)

    def answers(self, event: ModelAnswer) -> None:
        self.closes(event)
        labels = [call["label"] for call in event.calls if call.get("label")]
        if len(labels) != len(event.calls) or len({*labels}) != len(labels):
            self.broken("calls of one answer have no label, or share it", event.n)
        self.labels.update((event.session, label) for label in labels)

    def closes(self, event: ModelAnswer | ModelFailure | ModelRefusal | ModelExhausted) -> None:
        asked = self.open.pop(event.m, None)
        if asked is None:
            self.broken(f"question {event.m} is answered, and was not open", event.n)
        elif (asked.session, asked.conversation) != (event.session, event.conversation):
            self.broken(f"question {event.m} is answered in another conversation", asked.n, event.n)

    def lists(self, event: TurnEnd) -> None:
        for request in event.requests:
            label = request.get("label")
            if label and (event.session, label) not in self.labels:
                self.broken(f"a request is about call {label}, which no model made", event.n)

    def end(self) -> None:
        for asked in self.open.values():
            if not self.cut:
                self.broken(f"question {asked.m} has no answer", asked.n)


class Tools(Topic):
    """Executions are numbered as they begin; each ends once, in its session."""

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.count = 0
        self.open: dict[int, ToolStart] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        return {ToolStart: self.starts, ToolEnd: self.ends}

    def starts(self, event: ToolStart) -> None:
        self.count += 1
        self.next_number(event, "execution", event.x, self.count)
        self.open[event.x] = event

    def ends(self, event: ToolEnd) -> None:
        start = self.open.pop(event.x, None)
        if start is None or start.session != event.session:
            self.broken(f"execution {event.x} ends, and was not running in this session", event.n)
        self.word(event, event.how, _ENDS_OF_TOOLS)
        if event.how == "returned" and event.error is not None:
            self.broken("an execution returns, and has an error", event.n)
        if event.how != "returned" and event.result is not None:
            self.broken("an execution does not return, and has a result", event.n)
        if event.how == "raised" and event.error is None:
            self.broken("an execution raises without an error", event.n)

    def end(self) -> None:
        for start in self.open.values():
            if not self.cut:
                self.broken(f"execution {start.x} does not end", start.n)


class Decisions(Topic):
    """
    Requests are numbered as they surface; a decision is about one that surfaced in its session, as it surfaced, and is
    handed in once.
    """

    def __init__(self, found: list[BrokenGrammar], *, cut: bool) -> None:
        super().__init__(found, cut=cut)
        self.labels: dict[str, tuple[str, str | None]] = {}
        self.ids: dict[str, set[str]] = {}
        self.listed: dict[str, list[str]] = {}
        self.waiting: dict[int, Decide] = {}
        self.running: dict[str, set[int]] = {}
        self.made_in: dict[int, frozenset[int]] = {}

    def listeners(self) -> Mapping[type[Event], Listener]:
        listing: dict[type[Event], Listener] = {TurnEnd: self.turn_ends, Restored: self.restored, RunEnd: self.run_ends}
        return {Decide: self.decides, TurnStart: self.turn_starts, Staged: self.handed_in, **listing}

    def turn_starts(self, event: TurnStart) -> None:
        self.handed_in(event)
        self.running.setdefault(event.session, set()).add(event.turn)

    def turn_ends(self, event: TurnEnd) -> None:
        self.running.get(event.session, set()).discard(event.turn)
        # A turn that failed shows nobody anything: what was pending before it may still be.
        if event.outcome != "failed":
            self.lists(event, event.requests)

    def restored(self, event: Restored) -> None:
        self.lists(event, event.pending)

    def run_ends(self, event: RunEnd) -> None:
        for request in event.pending:
            self.surfaces(event, request, session=None)

    def lists(self, event: Event, requests: Sequence[Mapping[str, Any]]) -> None:
        numbers = [request["q"] for request in requests]
        labels = [request["label"] for request in requests if request.get("label")]
        if len({*numbers}) != len(numbers) or len({*labels}) != len(labels):
            self.broken("a request is listed twice at once", event.n)
        self.listed[event.session] = numbers
        for request in requests:
            self.surfaces(event, request, session=event.session)

    def surfaces(self, event: Event, request: Mapping[str, Any], *, session: str | None) -> None:
        q, label = request["q"], request.get("label")
        known = self.labels.get(q)
        if known is None:
            if q != f"q{len(self.labels) + 1}":
                self.broken(f"request {q} surfaces where q{len(self.labels) + 1} is next", event.n)
            self.labels[q] = (session or "", label)
        elif known[1] != label or session not in (None, known[0]):
            self.broken(f"request {q} is about another call, or of another session, than where it surfaced", event.n)
        self.ids.setdefault(q, set()).add(request["id"])

    def decides(self, event: Decide) -> None:
        self.waiting[event.n] = event
        self.made_in[event.n] = frozenset(self.running.get(event.session, ()))
        self.word(event, event.verdict, _VERDICTS)
        self.word(event, event.source, _SOURCES)
        if event.verdict != "edit" and (event.arguments is not None or event.tool is not None):
            self.broken(f"a decision to {event.verdict} brings arguments or a tool of its own", event.n)
        if event.q is not None:
            self.addresses(event, event.q)
        elif any(label == event.label for _, label in self.labels.values() if label is not None):
            self.broken(f"a decision about call {event.label} does not name the request about it", event.n)

    def addresses(self, event: Decide, q: str) -> None:
        session, label = self.labels.get(q, (None, None))
        if session != event.session:
            self.broken(f"a decision is about request {q}, which has not surfaced in its session", event.n)
        elif event.label != label or event.id not in self.ids[q]:
            self.broken(f"a decision about request {q} hands over the id or the label of another one", event.n)
        elif event.oracle != "script" and q not in self.listed.get(event.session, ()):
            self.broken(f"the oracle decides about request {q}, which is not pending", event.n)

    def handed_in(self, event: TurnStart | Staged) -> None:
        deciders: dict[str, Decide] = {}
        for position in event.decisions:
            decision = self.waiting.pop(position, None)
            if decision is None or decision.session != event.session:
                text = f"what is handed in at {position} is no decision of this session, or was handed in before"
                self.broken(text, position, event.n)
            elif not self.made_in[position] <= self.running.get(event.session, set()):
                self.broken("a decision was made in a turn that ended before it is handed in", position, event.n)
            elif decision.q is not None and decision.oracle != "script":
                if decision.q in deciders:
                    self.broken("the oracle decides twice at once", deciders[decision.q].n, position)
                deciders[decision.q] = decision

    def end(self) -> None:
        for decision in self.waiting.values():
            if not self.cut:
                self.broken("a decision is never handed in", decision.n)
