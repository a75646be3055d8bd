"""Journal of a stored conversation: what the runner would have recorded.

Tool executions are inferred unless a trace shows them: a result that nobody refused means that the tool was executed.
The input of the model is what the conversation held by then. Calls are labelled `c1`, `c2`, ... in the order in which
they were made.
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
    ExecutionEntry,
    RequestEntry,
    ResultEntry,
    ResultOutcome,
    StoredConversation,
    TextEntry,
)
from pytest_approvals.journal import events as ev
from pytest_approvals.journal.arguments import arguments_match, parse_arguments
from pytest_approvals.journal.conversation import PositionalSettlement
from pytest_approvals.protocols.text import to_json


def collect_tools(conversation: StoredConversation, gated: Collection[str] = ()) -> dict[str, Any]:
    """Return the tools of a conversation as the header of a journal declares them.

    Parameters and their types are those of the arguments that occur.
    """
    gated_tools = {entry.tool for entry in conversation.of(RequestEntry) if entry.needs_decision}.union(gated)
    tools: dict[str, Any] = {}
    for entry in conversation.entries:
        if not isinstance(entry, CallEntry | RequestEntry):
            continue
        tool = tools.setdefault(entry.tool, {"approval": "always" if entry.tool in gated_tools else "never"})
        tool["kind"] = entry.kind
        if entry.server:
            tool["server"] = entry.server
        arguments = parse_arguments(entry.arguments)
        parameters = tool.setdefault("parameters", {})
        for name, value in arguments.items() if isinstance(arguments, Mapping) else ():
            parameters.setdefault(name, {"type": schema_type(value)})
    return tools


def schema_type(value: Any) -> str:
    """Return the JSON Schema type of a value; null, which may be anything, is declared a string."""
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
"""The kinds of events that a stored conversation shows."""


def build_journal(conversation: StoredConversation, *, gated: Collection[str] = ()) -> list[ev.Event]:
    """Return the events of a conversation.

    Args:
        conversation: The conversation.
        gated: Tools whose calls need approval, in addition to those with requests.
    """
    return _JournalBuilder(conversation, gated).build()


@dataclass(slots=True)
class _JournalCall:
    """A call with its request, decision and result so far."""

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
    is_settled: bool = False

    @property
    def is_pending(self) -> bool:
        """Whether its request waits for a decision."""
        return self.request_id is not None and self.decision is None and not self.is_settled

    def is_reported_by(self, entry: CallEntry) -> bool:
        """Return whether the provider's report of a call is about this one."""
        if self.reported_as is not None or (self.tool, self.server) != (entry.tool, entry.server):
            return False
        return arguments_match(self.arguments, entry.arguments)

    @property
    def facts(self) -> dict[str, Any]:
        """The call in the model's answer."""
        arguments = parse_arguments(self.arguments)
        facts = {"label": self.label, "id": self.id, "tool": self.tool, "arguments": arguments, "kind": self.kind}
        return facts | ({"server": self.server} if self.server else {})

    @property
    def listing(self) -> dict[str, Any]:
        """The request in the end of a turn."""
        return self.facts | {"q": self.q, "id": self.request_id, "call_id": self.id, "agent": MAIN}


def _describe_shown(call: _JournalCall | None, decision: DecisionEntry) -> dict[str, Any] | None:
    """Return what the decision's own copy of the call says in place of the truth, as `DecisionMade.shows`."""
    if decision.verdict == "edit" or decision.arguments is None:
        return None
    shown: dict[str, Any] = {}
    if decision.tool is not None and (call is None or decision.tool != call.tool):
        shown["tool"] = decision.tool
    if call is None or not arguments_match(call.arguments, decision.arguments):
        shown["arguments"] = parse_arguments(decision.arguments)
    return shown or None


@dataclass(slots=True)
class _OpenTurn:
    """The current turn: its input, and what the model has sent since its latest request."""

    text: str | None = None
    decisions: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    hosted: list[dict[str, Any]] = field(default_factory=list)
    calls: list[_JournalCall] = field(default_factory=list)
    is_started: bool = False


class _JournalBuilder:
    """Builder of the journal of one conversation."""

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
        self.settlement: PositionalSettlement[_JournalCall] = PositionalSettlement()
        self.items: list[dict[str, Any]] = []
        self.turn = _OpenTurn()
        self.turns = self.model_requests = self.executions = self.listed_requests = 0

    def build(self) -> list[ev.Event]:
        self._add(self.header)
        self._add(ev.AgentStart(tools=list(self.header.tools)))
        for entry in self.conversation.entries:
            self._read_entry(entry)
        self._end_turn()
        pending = self._list_requests()
        self._add(ev.RunEnd(how="left" if pending else "completed", pending=pending))
        return self.events

    def _add(self, event: ev.Event) -> None:
        event.n = len(self.events) + 1
        self.events.append(event)

    def _read_entry(self, entry: ConversationEntry) -> None:
        match entry:
            case TextEntry(role="user"):
                self._read_user_text(entry.text, entry.message)
            case TextEntry(role="assistant") if entry.text:
                self._start_turn()
                self.turn.texts.append(entry.text)
            case CallEntry():
                self._read_call(entry)
            case RequestEntry():
                self._read_request(entry)
            case DecisionEntry():
                self._read_decision(entry)
            case ExecutionEntry():
                self._read_execution(entry)
            case ResultEntry():
                self._read_result(entry)

    # --- the caller ---

    def _read_user_text(self, text: str, message: int) -> None:
        if self.turn.is_started:
            self._end_turn()
        # Messages of the user in a row are the input of one turn.
        self.turn.text = text if self.turn.text is None else f"{self.turn.text}\n{text}"
        self.items.append({"kind": "user", "text": text, "message": message})

    def _read_decision(self, entry: DecisionEntry) -> None:
        # A decision is input of the next turn.
        if self.turn.is_started:
            self._end_turn()
        call = self._find_by_request(entry.id)
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
                shows=_describe_shown(call, entry),
            )
        )
        self.turn.decisions.append(len(self.events))
        if call is not None and not call.is_settled:
            call.decision = entry
            if call.kind == "hosted_mcp":
                approved = entry.verdict != "reject"
                item = {"kind": "approval_response", "id": entry.id, "approved": approved}
                self.items.append(item | {"message": entry.message})

    def _start_turn(self) -> None:
        if not self.turn.is_started:
            self.turns += 1
            self.turn.is_started = True
            self._add(ev.TurnStart(turn=self.turns, text=self.turn.text, decisions=self.turn.decisions))

    def _end_turn(self) -> None:
        if self.turn.decisions or self.turn.text is not None:
            self._start_turn()
        if not self.turn.is_started:
            return
        text = self._end_exchange()
        waiting = self._list_requests()
        outcome = "paused" if waiting else "finished"
        self._add(ev.TurnEnd(turn=self.turns, outcome=outcome, requests=waiting, output=None if waiting else text))
        self.turn = _OpenTurn()

    # --- the model ---

    def _read_call(self, entry: CallEntry) -> None:
        if self._is_known(entry):
            return
        self._start_turn()
        self._add_call(entry.id, entry)

    def _is_known(self, entry: CallEntry) -> bool:
        """Return whether it is the call of a request that was stored in its place until the decision.

        The provider's report of a hosted call has an id of its own, and belongs to the first approved request for the
        same call.
        """
        for call in self.calls:
            if call.request_id is None or call.decision is None or call.is_settled:
                continue
            if call.id == entry.id and call.id is not None:
                return True
            if call.kind == "hosted_mcp" and call.is_reported_by(entry):
                call.reported_as = entry.id
                self.settlement.begin(entry.id, call)
                return True
        return False

    def _add_call(self, call_id: str | None, entry: CallEntry | RequestEntry) -> _JournalCall:
        label = f"c{len(self.calls) + 1}"
        call = _JournalCall(label, call_id, entry.tool, entry.arguments, entry.kind, entry.server)
        self.calls.append(call)
        self.settlement.begin(call_id, call)
        self.turn.calls.append(call)
        return call

    def _read_request(self, entry: RequestEntry) -> None:
        known = self._find_by_request(entry.id)
        if known is not None and not known.is_settled and known.decision is None:
            return
        self._start_turn()
        call_id = entry.call_id if entry.call_id is not None else entry.id
        waiting = [
            call for call in self.calls if call.id == call_id and call.request_id is None and not call.is_settled
        ]
        call = waiting[-1] if waiting else self._add_call(call_id, entry)
        call.request_id = entry.id

    def _end_exchange(self) -> str | None:
        """Record the model's request and answer since the latest request; return the text of the answer."""
        turn, text = self.turn, "\n".join(self.turn.texts) or None
        if not turn.texts and not turn.calls and not turn.hosted:
            return None
        self.model_requests += 1
        request = ev.ModelRequest(m=self.model_requests, conversation=MAIN, agent=MAIN, items=list(self.items))
        request.tools = list(self.header.tools)
        self._add(request)
        calls = [call.facts for call in turn.calls]
        self._add(ev.ModelAnswer(m=self.model_requests, conversation=MAIN, say=text, calls=calls, hosted=turn.hosted))
        if text is not None:
            self.items.append({"kind": "say", "text": text, "message": self._next_message})
        for call in turn.calls:
            kind = "approval_request" if call.kind == "hosted_mcp" else "call"
            item = {"kind": kind, "id": call.id, "tool": call.tool, "arguments": parse_arguments(call.arguments)}
            self.items.append(item | {"message": self._next_message})
        turn.texts, turn.calls, turn.hosted = [], [], []
        return text

    @property
    def _next_message(self) -> int:
        return 1 + max((item["message"] for item in self.items), default=-1)

    # --- tools ---

    def _read_result(self, entry: ResultEntry) -> None:
        self._start_turn()
        call = self.settlement.settle(entry.call_id)
        while call is not None and call.is_settled:  # under its other id
            call = self.settlement.settle(entry.call_id)
        text = entry.value if isinstance(entry.value, str) else to_json(entry.value)
        if call is not None and call.kind == "hosted_mcp":
            self._add_execution(call, entry, text)
            self.turn.hosted.append({"label": call.label, "error" if entry.outcome == "failed" else "output": text})
        else:
            self._end_exchange()
            if call is not None:
                self._add_execution(call, entry, text)
            self.items.append({"kind": "result", "id": entry.call_id, "text": text, "message": self._next_message})
        if call is not None:
            call.is_settled = True

    def _read_execution(self, entry: ExecutionEntry) -> None:
        self._start_turn()
        self._end_exchange()
        # Whether the tool was reached is not known of all.
        if entry.outcome in ("returned", "failed"):
            value = "" if entry.value is None else entry.value
            text = value if isinstance(value, str) else to_json(value)
            call = next((call for call in reversed(self.calls) if call.id == entry.call_id), None)
            arguments = entry.arguments if entry.arguments is not None or call is None else call.arguments
            self._add_tool_events(entry.tool, parse_arguments(arguments), entry.call_id, "agent", entry.outcome, text)

    def _add_execution(self, call: _JournalCall, entry: ResultEntry, text: str) -> None:
        """Add the execution that a result implies, unless the call was refused."""
        if self.conversation.shows_executions:
            return
        # In many formats a refusal is a result like any other, so its outcome is unknown.
        refused = call.decision is not None and call.decision.verdict in ("reject", "never")
        if entry.outcome in ("denied", "interrupted") or (refused and entry.outcome == "unknown"):
            return
        edited = call.decision.arguments if call.decision is not None else None
        by = "provider" if call.kind == "hosted_mcp" else "agent"
        arguments = parse_arguments(edited if edited is not None else call.arguments)
        self._add_tool_events(call.tool, arguments, call.id, by, entry.outcome, text)

    def _add_tool_events(
        self, tool: str, arguments: Any, call_id: str | None, by: str, outcome: ResultOutcome, text: str
    ) -> None:
        self.executions += 1
        self._add(ev.ToolStart(x=self.executions, tool=tool, arguments=arguments, call_id=call_id, by=by))
        if outcome == "failed":
            self._add(ev.ToolEnd(x=self.executions, how="raised", error=["ToolRaised", text]))
        else:
            self._add(ev.ToolEnd(x=self.executions, result=text))

    # --- requests ---

    def _list_requests(self) -> list[dict[str, Any]]:
        """List the open requests; a request gets its number when it is first listed."""
        waiting = [call for call in self.calls if call.is_pending]
        for call in waiting:
            if call.q is None:
                self.listed_requests += 1
                call.q = f"q{self.listed_requests}"
        return [call.listing for call in waiting]

    def _find_by_request(self, request_id: str) -> _JournalCall | None:
        calls = [call for call in self.calls if call.request_id == request_id]
        # An id may be used again after its request is settled.
        unsettled = [call for call in calls if not call.is_settled]
        return (unsettled or calls)[-1] if calls else None
