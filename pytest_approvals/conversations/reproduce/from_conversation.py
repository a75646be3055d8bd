"""
A draft out of a stored conversation: what the model said and the caller did, as its journal tells it.

Conversations end where somebody stored them, and what is wrong with one often shows only afterwards; so what is pending
is left to the oracle, and a few more messages follow.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pytest_approvals.conversations.histories.conversation import CallEntry, ResultEntry, StoredConversation
from pytest_approvals.conversations.histories.journal import build_journal
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
"""What the caller sends when the stored conversation is over."""

DEFAULT_REPLY = "Done."
"""What the model says when the stored conversation does not tell."""

DEFAULT_MESSAGE = "Go on."
"""What the caller sends where nobody knows what it was."""

GENERATED_TEXTS = (DEFAULT_REPLY, DEFAULT_MESSAGE, *FOLLOW_UPS)
"""Texts that come from nobody's conversation."""

_MAX_TEXT_LENGTH = 400
_INVALID_NAME_CHARACTERS = re.compile(r"[^A-Za-z0-9_]+")


def build_draft(conversation: StoredConversation, gated: Collection[str] = ()) -> ScenarioDraft:
    """
    Gives the draft.

    Arguments:
        gated: Tools whose calls need approval, for formats that do not tell; a tool with a denied call is one, too.

    Errors:
        HistoryError: Nobody says anything in the conversation.
        UnknownName: It calls no tool of that name.
    """
    called = {call.tool for call in conversation.of(CallEntry)}
    for name in gated:
        if name not in called:
            raise UnknownName("tool of this conversation", name, sorted(called))
    unasked = _ImpliedDecisions.of(conversation)
    told = _DraftBuilder()
    for event in build_journal(conversation, gated={*gated, *unasked.denied_tools}):
        told.hear(event)
    if not told.turns:
        raise HistoryError("nobody says anything in this conversation, so there is nothing to reproduce")
    return told.draft(unasked)


@dataclass(slots=True)
class _DraftBuilder:
    """What was told so far."""

    tools: dict[str, DraftTool] = field(default_factory=dict)
    turns: list[DraftTurn] = field(default_factory=list)
    decided: dict[int, DraftDecision] = field(default_factory=dict)
    running: dict[int, str] = field(default_factory=dict)
    results: dict[str, DraftResult] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    pending: bool = False

    def hear(self, event: ev.Event) -> None:
        match event:
            case ev.Header():
                self.tools = {to_tool_name(name): _to_tool(facts) for name, facts in event.tools.items()}
            case ev.DecisionMade():
                self.decided[event.n] = _to_decision(event)
            case ev.TurnStart():
                answers = tuple(self.decided[n] for n in event.decisions)
                text = _to_text(event.text) if event.text is not None else None if answers else DEFAULT_MESSAGE
                self.turns.append(DraftTurn(send=text, answers=answers))
            case ev.ModelAnswer():
                calls = tuple(_to_call(facts) for facts in event.calls)
                self._reply(DraftReply(say=None if event.say is None else _to_text(event.say), calls=calls))
            case ev.ToolStart():
                self._starts(event)
            case ev.ToolEnd() if event.x in self.running:
                self.results[self.running[event.x]] = _to_result(event)
            case ev.TurnEnd():
                self.asked.update(listing["label"] for listing in event.requests)
            case ev.RunEnd():
                self.pending = bool(event.pending)

    def draft(self, unasked: _ImpliedDecisions) -> ScenarioDraft:
        turns = [replace(turn, replies=tuple(map(self._with_results, turn.replies))) for turn in self.turns]
        turns = [part for turn in turns for part in self._with_decisions(turn, unasked)]
        if not turns[-1].replies and not self.pending:
            turns[-1] = replace(turns[-1], replies=(DraftReply(say=DEFAULT_REPLY),))
        ending = [DraftTurn(oracle=True, replies=(DraftReply(say=DEFAULT_REPLY),))] if self.pending else []
        ending += [DraftTurn(send=text, replies=(DraftReply(say=DEFAULT_REPLY),)) for text in FOLLOW_UPS]
        return ScenarioDraft(tools=self.tools, turns=(*turns, *ending), vary=("history",)).tidy()

    def _reply(self, reply: DraftReply) -> None:
        self.turns[-1] = replace(self.turns[-1], replies=(*self.turns[-1].replies, reply))

    def _starts(self, event: ev.ToolStart) -> None:
        calls = [call for turn in self.turns for reply in turn.replies for call in reply.calls]
        waiting = [call.key for call in calls if call.id == event.call_id and call.key not in self.running.values()]
        if waiting:
            self.running[event.x] = waiting[0]

    def _with_decisions(self, turn: DraftTurn, unasked: _ImpliedDecisions) -> Iterator[DraftTurn]:
        """Gives a turn in parts: after a reply with gated calls somebody decided, though the format may not tell."""
        decided = {answer.call for each in self.turns for answer in each.answers}
        for place, reply in enumerate(turn.replies, start=1):
            gated = [call for call in reply.calls if self.tools[call.tool].gated and call.key not in self.asked]
            answers = tuple(filter(None, (unasked.answer(call) for call in gated if call.key not in decided)))
            self.pending = self.pending or len(answers) < len(gated)
            if answers:
                yield replace(turn, replies=turn.replies[:place])
                yield from self._with_decisions(DraftTurn(answers=answers, replies=turn.replies[place:]), unasked)
                return
        yield turn

    def _with_results(self, reply: DraftReply) -> DraftReply:
        return replace(reply, calls=tuple(replace(call, result=self.results.get(call.key)) for call in reply.calls))


@dataclass(frozen=True, slots=True)
class _ImpliedDecisions:
    """
    What became of calls in formats that keep neither requests nor decisions.

    Attributes:
        ends: By call id the results in order.
        denied_tools: Tools with calls that somebody denied.
    """

    ends: Mapping[str | None, list[ResultEntry]]
    denied_tools: frozenset[str]

    @classmethod
    def of(cls, conversation: StoredConversation) -> _ImpliedDecisions:
        ends: dict[str | None, list[ResultEntry]] = {}
        for result in conversation.of(ResultEntry):
            ends.setdefault(result.call_id, []).append(result)
        denied = {call_id for call_id, results in ends.items() if any(each.how == "denied" for each in results)}
        tools = frozenset(call.tool for call in conversation.of(CallEntry) if call.id in denied)
        return cls(ends, tools)

    def answer(self, call: DraftCall) -> DraftDecision | None:
        """Gives the decision that a call's result stands for; None where it has none. Each result is used once."""
        results = self.ends.get(call.id)
        if not results:
            return None
        result = results.pop(0)
        if result.how != "denied":
            return DraftDecision(call=call.key, verdict="approve")
        return DraftDecision(
            call=call.key, verdict="reject", text=_to_text(str(result.value or "")) if result.value else None
        )


def to_tool_name(name: str) -> str:
    """
    Gives a name that a scenario's tool can have.

    >>> [tool_name(name) for name in ("pay", "2 much!", "")]
    ['pay', 'tool_2_much', 'tool']
    """
    plain = _INVALID_NAME_CHARACTERS.sub("_", name).strip("_")[:60]
    return plain if plain and not plain[0].isdigit() else f"tool_{plain}".strip("_")


def to_parameter_name(name: str) -> str:
    """
    Gives a name that a parameter can have; `fake` would ask for a made-up value.

    >>> [parameter_name(name) for name in ("to", "is-it", "from", "fake")]
    ['to', 'is_it', 'from_', 'fake_']
    """
    plain = _INVALID_NAME_CHARACTERS.sub("_", name)[:60] or "value"
    plain = f"_{plain}" if plain[0].isdigit() else plain
    return f"{plain}_" if keyword.iskeyword(plain) or plain == "fake" else plain


def _to_tool(facts: Mapping[str, Any]) -> DraftTool:
    return DraftTool(
        gated=facts["approval"] == "always", kind=facts.get("kind", "function"), server=facts.get("server")
    )


def _to_call(facts: Mapping[str, Any]) -> DraftCall:
    arguments = facts["arguments"]
    if isinstance(arguments, Mapping):
        given = {to_parameter_name(name): to_literal(value) for name, value in arguments.items() if value is not None}
    return DraftCall(
        key=facts["label"],
        id=facts["id"],
        tool=to_tool_name(facts["tool"]),
        arguments=given if isinstance(arguments, Mapping) else str(to_literal(arguments)),
    )


def _to_decision(event: ev.DecisionMade) -> DraftDecision:
    arguments: Any = event.raw if event.verdict == "raw" else event.arguments
    if isinstance(arguments, Mapping):
        arguments = {to_parameter_name(name): to_literal(value) for name, value in arguments.items()}
    return DraftDecision(
        call=event.label,
        verdict=cast("DraftVerdict", event.verdict),
        unknown=_to_text(event.id or "unknown"),
        text=None if event.reason is None else _to_text(event.reason),
        arguments=to_literal(arguments),
    )


def _to_result(event: ev.ToolEnd) -> DraftResult:
    if event.how == "raised":
        return DraftResult(value=_to_text(": ".join(map(str, (event.error or ["", ""])[1:]))), raised=True)
    return DraftResult(value=to_literal(event.result))


def _to_text(text: str) -> str:
    plain = str(to_literal(text)).strip() or DEFAULT_MESSAGE
    return plain if len(plain) <= _MAX_TEXT_LENGTH else f"{plain[:_MAX_TEXT_LENGTH].rstrip()} ..."


def to_literal(value: Any) -> Any:
    """Gives a JSON value without what a scenario would take for something else: made-up values, half characters."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8").replace("{{", "{ {")
        case Mapping():
            fake = "fake" in value
            return {str(to_literal(f"{name}_" if fake else name)): to_literal(inner) for name, inner in value.items()}
        case list() | tuple():
            return [to_literal(inner) for inner in value]
        case _:
            return value
