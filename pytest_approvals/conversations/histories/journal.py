"""The tools that a stored conversation speaks of.

The journal of a stored conversation: what the harness would have recorded, as far as the conversation tells.

Runs are inferred: a result that nobody refused stands for an execution. What a model was sent is what the conversation
held by then. Calls are labelled `c1`, `c2`, ... in the order in which they were made.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from pytest_approvals.agent_side.contract.types import MAIN
from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    DecisionEntry,
    RequestEntry,
    ResultEntry,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.journal import events as ev
from pytest_approvals.journal.arguments import arguments_match, parse_arguments
from pytest_approvals.protocols.text import to_json


def collect_tools(conversation: StoredConversation, gated: Collection[str] = ()) -> dict[str, Any]:
    """
    Gives the tools that a conversation speaks of, as the header of a journal declares them: parameters and their types
    are those of the arguments that were seen.
    """
    asked = {entry.tool for entry in conversation.of(RequestEntry) if entry.asks}.union(gated)
    declared: dict[str, Any] = {}
    for entry in conversation.entries:
        if not isinstance(entry, CallEntry | RequestEntry):
            continue
        tool = declared.setdefault(entry.tool, {"approval": "always" if entry.tool in asked else "never"})
        tool["kind"] = entry.kind
        if entry.server:
            tool["server"] = entry.server
        arguments = parse_arguments(entry.arguments)
        known = tool.setdefault("parameters", {})
        for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
            known.setdefault(name, {"type": schema_type(value)})
    return declared


def schema_type(value: Any) -> str:
    """Gives the JSON Schema type of a value; a null may be anything, and is declared a string."""
    names = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "string")


OBSERVED = (
    "header",
    "agent.start",
    "run.end",
    "turn.start",
    "turn.end",
    "caller.decide",
    "model.request",
    "model.answer",
    "tool.start",
    "tool.end",
)
"""The kinds of events that a stored conversation can tell of."""


def build_journal(conversation: StoredConversation, *, gated: Collection[str] = ()) -> list[ev.Event]:
    """
    Gives the events of a conversation.

    Arguments:
        gated: Tools whose calls need approval, beside those about which there are requests.
    """
    return _JournalBuilder(conversation, gated).told()


@dataclass(slots=True)
class _JournalCall:
    """A call and what became of it."""

    label: str
    id: str | None
    tool: str
    arguments: Any
    kind: str
    server: str | None
    q: str | None = None
    request_id: str | None = None
    decision: DecisionEntry | None = None
    reported_as: str | None = None
    settled: bool = False

    @property
    def waits(self) -> bool:
        """Whether somebody was asked about it and nobody has answered."""
        return self.request_id is not None and self.decision is None and not self.settled

    def has_id(self, call_id: str | None) -> bool:
        """Says whether a result is for this call."""
        return call_id in (self.id, self.reported_as) if call_id is not None else self.id is None

    def reported_by(self, entry: CallEntry) -> bool:
        """Says whether the provider's report of a call is about this one."""
        if self.reported_as is not None or (self.tool, self.server) != (entry.tool, entry.server):
            return False
        return arguments_match(self.arguments, entry.arguments)

    @property
    def facts(self) -> dict[str, Any]:
        """What the model's answer says of it."""
        arguments = parse_arguments(self.arguments)
        written = {"label": self.label, "id": self.id, "tool": self.tool, "arguments": arguments, "kind": self.kind}
        return written | ({"server": self.server} if self.server else {})

    @property
    def listing(self) -> dict[str, Any]:
        """What the end of a turn says of its request."""
        return self.facts | {"q": self.q, "id": self.request_id, "call_id": self.id, "agent": MAIN}


@dataclass(slots=True)
class _OpenTurn:
    """A turn that is being told: what goes in, and what the model has said since it was asked last."""

    text: str | None = None
    decisions: list[int] = field(default_factory=list)
    said: list[str] = field(default_factory=list)
    hosted: list[dict[str, Any]] = field(default_factory=list)
    calls: list[_JournalCall] = field(default_factory=list)
    started: bool = False


class _JournalBuilder:
    """Tells one conversation."""

    def __init__(self, conversation: StoredConversation, gated: Collection[str]) -> None:
        self.conversation = conversation
        self.header = ev.Header(
            scenario=conversation.name or "stored",
            agent=conversation.format,
            tools=collect_tools(conversation, gated),
            observes=list(OBSERVED),
        )
        self.events: list[ev.Event] = []
        self.calls: list[_JournalCall] = []
        self.items: list[dict[str, Any]] = []
        self.turn = _OpenTurn()
        self.turns = self.questions = self.runs = self.requests = 0

    def told(self) -> list[ev.Event]:
        self._add(self.header)
        self._add(ev.AgentStart(tools=list(self.header.tools)))
        for entry in self.conversation.entries:
            self._tell(entry)
        self._end_turn()
        pending = self._listed()
        self._add(ev.RunEnd(how="left" if pending else "completed", pending=pending))
        return self.events

    def _add(self, event: ev.Event) -> None:
        event.n = len(self.events) + 1
        self.events.append(event)

    def _tell(self, entry: ConversationEntry) -> None:
        match entry:
            case TextEntry(role="user"):
                self._send(entry.text, entry.message)
            case TextEntry(role="assistant") if entry.text:
                self._start_turn()
                self.turn.said.append(entry.text)
            case CallEntry():
                self._call(entry)
            case RequestEntry():
                self._request(entry)
            case DecisionEntry():
                self._decide(entry)
            case ResultEntry():
                self._result(entry)

    # --- the caller ---

    def _send(self, text: str, message: int) -> None:
        if self.turn.started:
            self._end_turn()
        self.turn.text = text if self.turn.text is None else f"{self.turn.text}\n{text}"
        self.items.append({"kind": "user", "text": text, "message": message})

    def _decide(self, entry: DecisionEntry) -> None:
        if self.turn.started:
            self._end_turn()
        call = self._asked_as(entry.id)
        edit = entry.verdict == "edit"
        self._add(
            ev.DecisionMade(
                verdict=entry.verdict,
                id=entry.id,
                q=call.q if call else None,
                label=call.label if call and call.q else None,
                reason=entry.reason,
                arguments=parse_arguments(entry.arguments) if edit else None,
                tool=entry.tool if edit and call and entry.tool != call.tool else None,
                raw=entry.reason if entry.verdict == "raw" else None,
            )
        )
        self.turn.decisions.append(len(self.events))
        if call is not None and not call.settled:
            call.decision = entry
            if call.kind == "hosted_mcp":
                approved = entry.verdict != "reject"
                item = {"kind": "approval_response", "id": entry.id, "approved": approved}
                self.items.append(item | {"message": entry.message})

    def _start_turn(self) -> None:
        if not self.turn.started:
            self.turns += 1
            self.turn.started = True
            self._add(ev.TurnStart(turn=self.turns, text=self.turn.text, decisions=self.turn.decisions))

    def _end_turn(self) -> None:
        if self.turn.decisions or self.turn.text is not None:
            self._start_turn()
        if not self.turn.started:
            return
        text = self._answer()
        waiting = self._listed()
        outcome = "paused" if waiting else "finished"
        self._add(ev.TurnEnd(turn=self.turns, outcome=outcome, requests=waiting, output=None if waiting else text))
        self.turn = _OpenTurn()

    # --- the model ---

    def _call(self, entry: CallEntry) -> None:
        if self._rebuilt(entry):
            return
        self._start_turn()
        self._made(entry.id, entry)

    def _rebuilt(self, entry: CallEntry) -> bool:
        """
        Says whether it is the call of a request that stood for it until it was decided. The provider's report of a
        hosted call has an id of its own, and takes up the first approved request for the same call.
        """
        for call in self.calls:
            if call.request_id is None or call.decision is None or call.settled:
                continue
            if call.id == entry.id and call.id is not None:
                return True
            if call.kind == "hosted_mcp" and call.reported_by(entry):
                call.reported_as = entry.id
                return True
        return False

    def _made(self, call_id: str | None, entry: CallEntry | RequestEntry) -> _JournalCall:
        label = f"c{len(self.calls) + 1}"
        call = _JournalCall(label, call_id, entry.tool, entry.arguments, entry.kind, entry.server)
        self.calls.append(call)
        self.turn.calls.append(call)
        return call

    def _request(self, entry: RequestEntry) -> None:
        known = self._asked_as(entry.id)
        if known is not None and not known.settled and known.decision is None:
            return
        self._start_turn()
        call_id = entry.call_id if entry.call_id is not None else entry.id
        waiting = [call for call in self.calls if call.id == call_id and call.request_id is None and not call.settled]
        call = waiting[-1] if waiting else self._made(call_id, entry)
        call.request_id = entry.id

    def _answer(self) -> str | None:
        """Tells what the model has said since it was asked last; gives its text."""
        turn, said = self.turn, "\n".join(self.turn.said) or None
        if not turn.said and not turn.calls and not turn.hosted:
            return None
        self.questions += 1
        question = ev.ModelRequest(m=self.questions, conversation=MAIN, agent=MAIN, items=list(self.items))
        question.tools = list(self.header.tools)
        self._add(question)
        calls = [call.facts for call in turn.calls]
        self._add(ev.ModelAnswer(m=self.questions, conversation=MAIN, say=said, calls=calls, hosted=turn.hosted))
        if said is not None:
            self.items.append({"kind": "say", "text": said, "message": self._message})
        for call in turn.calls:
            kind = "approval_request" if call.kind == "hosted_mcp" else "call"
            item = {"kind": kind, "id": call.id, "tool": call.tool, "arguments": parse_arguments(call.arguments)}
            self.items.append(item | {"message": self._message})
        turn.said, turn.calls, turn.hosted = [], [], []
        return said

    @property
    def _message(self) -> int:
        return 1 + max((item["message"] for item in self.items), default=-1)

    # --- tools ---

    def _result(self, entry: ResultEntry) -> None:
        self._start_turn()
        call = next((call for call in self.calls if call.has_id(entry.call_id) and not call.settled), None)
        text = entry.value if isinstance(entry.value, str) else to_json(entry.value)
        if call is not None and call.kind == "hosted_mcp":
            self._run(call, entry, text)
            self.turn.hosted.append({"label": call.label, "error" if entry.how == "failed" else "output": text})
        else:
            self._answer()
            if call is not None:
                self._run(call, entry, text)
            self.items.append({"kind": "result", "id": entry.call_id, "text": text, "message": self._message})
        if call is not None:
            call.settled = True

    def _run(self, call: _JournalCall, entry: ResultEntry, text: str) -> None:
        """Tells the execution that a result stands for, unless the call was refused."""
        refused = call.decision is not None and call.decision.verdict in ("reject", "never")
        if entry.how == "denied" or (refused and entry.how == "unknown"):
            return
        self.runs += 1
        decided = call.decision.arguments if call.decision is not None else None
        by = "provider" if call.kind == "hosted_mcp" else "agent"
        arguments = parse_arguments(decided if decided is not None else call.arguments)
        self._add(ev.ToolStart(x=self.runs, tool=call.tool, arguments=arguments, call_id=call.id, by=by))
        if entry.how == "failed":
            self._add(ev.ToolEnd(x=self.runs, how="raised", error=["ToolRaised", text]))
        else:
            self._add(ev.ToolEnd(x=self.runs, result=text))

    # --- requests ---

    def _listed(self) -> list[dict[str, Any]]:
        """Lists the open requests; one gets its number where it is listed first."""
        waiting = [call for call in self.calls if call.waits]
        for call in waiting:
            if call.q is None:
                self.requests += 1
                call.q = f"q{self.requests}"
        return [call.listing for call in waiting]

    def _asked_as(self, request_id: str) -> _JournalCall | None:
        found = [call for call in self.calls if call.request_id == request_id]
        unsettled = [call for call in found if not call.settled]
        return (unsettled or found)[-1] if found else None
