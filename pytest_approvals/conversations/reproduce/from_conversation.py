"""Draft from a stored conversation, as its journal shows it.

A stored conversation may end before its failure shows. So pending requests are left to the oracle, and a few more
messages follow.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pytest_approvals.conversations.histories.conversation import (
    CallEntry,
    ConversationEntry,
    ExecutionEntry,
    ResultEntry,
    StoredConversation,
)
from pytest_approvals.conversations.histories.journal import build_journal
from pytest_approvals.conversations.reproduce.agents import infer_agents
from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftDecision,
    DraftReply,
    DraftResult,
    DraftTool,
    DraftTurn,
    DraftVerdict,
    ScenarioDraft,
)
from pytest_approvals.errors import HistoryError, UnknownName
from pytest_approvals.journal import events as ev

FOLLOW_UPS = ("And now?", "Anything else?")
"""Messages of the caller after the stored conversation."""

DEFAULT_REPLY = "Done."
"""Text of the model if the stored conversation does not show it."""

DEFAULT_MESSAGE = "Go on."
"""Message of the caller if the stored conversation does not show it."""

GENERATED_TEXTS = (DEFAULT_REPLY, DEFAULT_MESSAGE, *FOLLOW_UPS)
"""Texts that are not from the stored conversation."""

_MAX_TEXT_LENGTH = 400
_MAX_DEPTH = 80
"""The maximum depth of a value; a file of a scenario may be 100 levels deep, and values are within it."""

_INVALID_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_]+")


def build_draft(conversation: StoredConversation, gated: Collection[str] = ()) -> ScenarioDraft:
    """Build the draft of a conversation.

    Args:
        conversation: The conversation.
        gated: Tools whose calls need approval, for formats without requests; a tool with a denied call is one, too.

    Raises:
        HistoryError: The conversation has no messages, or a value in it is nested too deep for a scenario.
        UnknownName: It calls no tool of that name.
    """
    try:
        return _build_draft(conversation, gated)
    except RecursionError:
        raise _too_deep() from None


def _leave_out_copies(conversation: StoredConversation) -> StoredConversation:
    """Return a conversation without the copies of calls that a chat of the AI SDK may hold.

    There a tool part has a call with all that became of it, and a client may show it in a later message once more.
    """
    if conversation.format != "ai_sdk_ui":
        return conversation
    seen: set[tuple[str, ...]] = set()
    kept: list[ConversationEntry] = []
    for entry in conversation.entries:
        key: tuple[str, ...] | None = None
        if isinstance(entry, CallEntry) and entry.id is not None:
            key = ("call", entry.id, entry.tool, repr(entry.arguments))
        elif isinstance(entry, ResultEntry) and entry.call_id is not None:
            key = ("result", entry.call_id, entry.outcome, repr(entry.value))
        if key is None or key not in seen:
            kept.append(entry)
        if key is not None:
            seen.add(key)
    return replace(conversation, entries=kept)


def _build_draft(conversation: StoredConversation, gated: Collection[str]) -> ScenarioDraft:
    conversation = _leave_out_copies(conversation)
    tools = {call.tool for call in conversation.of(CallEntry)}
    for name in gated:
        if name not in tools:
            raise UnknownName("tool", name, sorted(tools), "this conversation")
    implied = _ImpliedDecisions.of(conversation)
    builder = _DraftBuilder()
    for event in build_journal(conversation, gated={*gated, *implied.denied_tools}):
        builder.read_event(event)
    if not builder.turns:
        raise HistoryError("no messages in this conversation: nothing to reproduce")
    return infer_agents(builder.build(implied), conversation, DEFAULT_REPLY)


@dataclass(slots=True)
class _DraftBuilder:
    """Builder of a draft from the events of a journal."""

    tools: dict[str, DraftTool] = field(default_factory=dict)
    turns: list[DraftTurn] = field(default_factory=list)
    decisions: dict[int, DraftDecision] = field(default_factory=dict)
    executions: dict[int, str] = field(default_factory=dict)
    results: dict[str, DraftResult] = field(default_factory=dict)
    requested: set[str] = field(default_factory=set)
    is_pending: bool = False

    def read_event(self, event: ev.Event) -> None:
        match event:
            case ev.Header():
                self.tools = {to_tool_name(name): _to_tool(facts) for name, facts in event.tools.items()}
            case ev.DecisionMade():
                self.decisions[event.n] = _to_decision(event)
            case ev.TurnStart():
                decisions = tuple(self.decisions[n] for n in event.decisions)
                text = _to_text(event.text) if event.text is not None else None if decisions else DEFAULT_MESSAGE
                self.turns.append(DraftTurn(send=text, decisions=decisions))
            case ev.ModelAnswer():
                calls = tuple(_to_call(facts) for facts in event.calls)
                self._add_reply(DraftReply(say=None if event.say is None else _to_text(event.say), calls=calls))
            case ev.ToolStart():
                self._start_execution(event)
            case ev.ToolEnd() if event.x in self.executions:
                self.results[self.executions[event.x]] = _to_result(event)
            case ev.TurnEnd():
                self.requested.update(listing["label"] for listing in event.requests)
            case ev.RunEnd():
                self.is_pending = bool(event.pending)

    def build(self, implied: _ImpliedDecisions) -> ScenarioDraft:
        turns = [replace(turn, replies=tuple(map(self._add_results, turn.replies))) for turn in self.turns]
        turns = _join_decisions([part for turn in turns for part in self._split_turn(turn, implied)])
        turns = self._answer_calls(turns, implied)
        if not turns[-1].replies and not self.is_pending:
            turns[-1] = replace(turns[-1], replies=(DraftReply(say=DEFAULT_REPLY),))
        ending = [DraftTurn(oracle=True, replies=(DraftReply(say=DEFAULT_REPLY),))] if self.is_pending else []
        ending += [DraftTurn(send=text, replies=(DraftReply(say=DEFAULT_REPLY),)) for text in FOLLOW_UPS]
        # How the history was kept is not stored with it, so it varies.
        return ScenarioDraft(tools=self.tools, turns=(*turns, *ending), vary=("history",)).tidy()

    def _add_reply(self, reply: DraftReply) -> None:
        self.turns[-1] = replace(self.turns[-1], replies=(*self.turns[-1].replies, reply))

    def _start_execution(self, event: ev.ToolStart) -> None:
        calls = [call for turn in self.turns for reply in turn.replies for call in reply.calls]
        waiting = [call.key for call in calls if call.id == event.call_id and call.key not in self.executions.values()]
        if waiting:
            self.executions[event.x] = waiting[0]

    def _split_turn(self, turn: DraftTurn, implied: _ImpliedDecisions) -> Iterator[DraftTurn]:
        """Yield a turn in parts, with implied decisions between them.

        After a reply with gated calls somebody decided, though the format may not show it.
        """
        decided = {decision.call for other in self.turns for decision in other.decisions}
        for place, reply in enumerate(turn.replies, start=1):
            known = set() if implied.executed is not None else self.requested
            gated = [call for call in reply.calls if self.tools[call.tool].gated and call.key not in known]
            interrupted = [call for call in gated if call.key not in decided and implied.is_interrupted(call)]
            gated = [call for call in gated if call not in interrupted]
            decisions = tuple(filter(None, (implied.decision(call) for call in gated if call.key not in decided)))
            self.is_pending = self.is_pending or len(decisions) < len(gated)
            if decisions:
                yield replace(turn, replies=turn.replies[:place])
                yield from self._split_turn(DraftTurn(decisions=decisions, replies=turn.replies[place:]), implied)
                return
            if interrupted:
                yield replace(turn, replies=turn.replies[:place])
                yield from self._split_turn(DraftTurn(goes_on=True, replies=turn.replies[place:]), implied)
                return
        yield turn

    def _answer_calls(self, turns: Sequence[DraftTurn], implied: _ImpliedDecisions) -> list[DraftTurn]:
        """Return the turns, with a reply after calls with a result or a decision after which a message follows at once.

        The user of a coding agent may end the turn there; other agents ask their model what to say. The same holds for
        calls with which the conversation ends.
        """
        answered: list[DraftTurn] = []
        open_calls: set[str | None] = set()
        for turn, following in zip(turns, [*turns[1:], None], strict=True):
            open_calls -= {decision.call for decision in turn.decisions}
            open_calls |= {call.key for reply in turn.replies for call in reply.calls if self.tools[call.tool].gated}
            last = turn.replies[-1].calls if turn.replies else ()
            is_unanswered = bool(last or (turn.decisions and not turn.replies)) and not open_calls
            if following is None:
                goes_on = not self.is_pending
            else:
                goes_on = following.send is not None and all(call.id in implied.told for call in last)
            if is_unanswered and goes_on:
                turn = replace(turn, replies=(*turn.replies, DraftReply(say=DEFAULT_REPLY)))
            answered.append(turn)
        return answered

    def _add_results(self, reply: DraftReply) -> DraftReply:
        return replace(reply, calls=tuple(replace(call, result=self.results.get(call.key)) for call in reply.calls))


def _join_decisions(turns: Sequence[DraftTurn]) -> list[DraftTurn]:
    """Return the turns, those joined that only decide and that the model said nothing between.

    Decisions about the calls of one reply are mostly submitted together, and no format shows when one was made.
    """
    joined: list[DraftTurn] = []
    for turn in turns:
        last = joined[-1] if joined else None
        decided = {decision.call for decision in last.decisions} if last else set()
        is_more = last is not None and last.decisions and not last.replies and turn.decisions and turn.send is None
        if last is not None and is_more and not decided & {decision.call for decision in turn.decisions}:
            joined[-1] = replace(turn, send=last.send, decisions=(*last.decisions, *turn.decisions))
        else:
            joined.append(turn)
    return joined


@dataclass(frozen=True, slots=True)
class _ImpliedDecisions:
    """Decisions that the results imply in formats with neither requests nor decisions.

    Attributes:
        results: The results in order, by call id.
        denied_tools: Tools with denied calls.
        executed: The ids of the calls that ran, if the conversation shows that and no decisions.
        told: The ids of the calls with a result.
    """

    results: Mapping[str | None, list[ResultEntry]]
    denied_tools: frozenset[str]
    executed: frozenset[str | None] | None = None
    told: frozenset[str | None] = frozenset()

    @classmethod
    def of(cls, conversation: StoredConversation) -> _ImpliedDecisions:
        by_call: dict[str | None, list[ResultEntry]] = {}
        for result in conversation.of(ResultEntry):
            by_call.setdefault(result.call_id, []).append(result)
        denied = {
            call_id for call_id, results in by_call.items() if any(result.outcome == "denied" for result in results)
        }
        tools = frozenset(call.tool for call in conversation.of(CallEntry) if call.id in denied)
        executed = None
        if conversation.shows_executions and not conversation.shows_decisions:
            ran = (each for each in conversation.of(ExecutionEntry) if each.outcome in ("returned", "failed"))
            executed = frozenset(each.call_id for each in ran)
        return cls(by_call, tools, executed, frozenset(by_call))

    def is_interrupted(self, call: DraftCall) -> bool:
        """Return whether the model was told, in place of a result, that the call was interrupted."""
        return any(result.outcome == "interrupted" for result in self.results.get(call.id, ())[:1])

    def decision(self, call: DraftCall) -> DraftDecision | None:
        """Return the decision that a call's result implies, if it has one; each result is used once."""
        results = self.results.get(call.id)
        if not results:
            return None
        result = results.pop(0)
        is_denied = result.outcome == "denied" or (self.executed is not None and call.id not in self.executed)
        if not is_denied:
            return DraftDecision(call=call.key, verdict="approve")
        return DraftDecision(
            call=call.key, verdict="reject", text=_to_text(str(result.value or "")) if result.value else None
        )


def _too_deep() -> HistoryError:
    return HistoryError(f"a value is nested deeper than {_MAX_DEPTH} levels, which no scenario can hold")


def to_tool_name(name: str) -> str:
    """Return a valid name of a scenario's tool.

    >>> [to_tool_name(name) for name in ("pay", "2 much!", "")]
    ['pay', 'tool_2_much', 'tool']
    """
    plain = _INVALID_NAME_CHARACTERS.sub("_", name).strip("_")[:60]
    return plain if plain and not plain[0].isdigit() else f"tool_{plain}".strip("_")


def to_parameter_name(name: str) -> str:
    """Return a valid name of a parameter; `fake` would request a made-up value.

    >>> [to_parameter_name(name) for name in ("to", "is-it", "from", "fake")]
    ['to', 'is_it', 'from_', 'fake_']
    """
    plain = _INVALID_NAME_CHARACTERS.sub("_", name)[:60] or "value"
    plain = f"_{plain}" if plain[0].isdigit() else plain
    # Parameters become those of Python functions, so they cannot be keywords.
    return f"{plain}_" if keyword.iskeyword(plain) or plain == "fake" else plain


def _to_tool(facts: Mapping[str, Any]) -> DraftTool:
    return DraftTool(
        gated=facts["approval"] == "always", kind=facts.get("kind", "function"), server=facts.get("server")
    )


def _to_call(facts: Mapping[str, Any]) -> DraftCall:
    arguments = facts["arguments"]
    if isinstance(arguments, Mapping):
        named = {to_parameter_name(name): to_literal(value) for name, value in arguments.items() if value is not None}
    return DraftCall(
        key=facts["label"],
        id=facts["id"],
        tool=to_tool_name(facts["tool"]),
        arguments=named if isinstance(arguments, Mapping) else str(to_literal(arguments)),
    )


def _to_decision(event: ev.DecisionMade) -> DraftDecision:
    arguments: Any = event.raw if event.verdict == "raw" else event.arguments
    shown = event.shows or {}
    verdict = event.verdict
    if isinstance(arguments, Mapping):
        arguments = _to_named(arguments)
    # A scenario edits by parameters; anything else is a value that no framework accepts.
    elif verdict == "edit":
        verdict = "raw"
    return DraftDecision(
        call=event.label,
        verdict=cast("DraftVerdict", verdict),
        unknown=_to_text(event.id or "unknown"),
        text=None if event.reason is None else _to_text(event.reason),
        arguments=to_literal(arguments),
        shows=_to_named(shown["arguments"]) if isinstance(shown.get("arguments"), Mapping) else None,
        shows_tool=to_tool_name(shown["tool"]) if "tool" in shown else None,
    )


def _to_named(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {to_parameter_name(name): to_literal(value) for name, value in arguments.items()}


def _to_result(event: ev.ToolEnd) -> DraftResult:
    if event.how == "raised":
        return DraftResult(value=_to_text(": ".join(map(str, (event.error or ["", ""])[1:]))), is_error=True)
    return DraftResult(value=to_literal(event.result))


def _to_text(text: str) -> str:
    plain = str(to_literal(text)).strip() or DEFAULT_MESSAGE
    return plain if len(plain) <= _MAX_TEXT_LENGTH else f"{plain[:_MAX_TEXT_LENGTH].rstrip()} ..."


def to_literal(value: Any, depth: int = 0) -> Any:
    """Return a JSON value without what has a meaning in scenario files.

    Raises:
        HistoryError: It is nested too deep for a scenario.
    """
    if depth > _MAX_DEPTH:
        raise _too_deep()
    match value:
        case str():
            # A lone surrogate cannot be written to a file; double braces request a made-up value.
            return value.encode("utf-8", "replace").decode("utf-8").replace("{{", "{ {")
        case Mapping():
            fake = "fake" in value
            return {
                str(to_literal(f"{name}_" if fake else name)): to_literal(inner, depth + 1)
                for name, inner in value.items()
            }
        case list() | tuple():
            return [to_literal(inner, depth + 1) for inner in value]
        case _:
            return value
