"""
A draft out of a stored conversation: what the model said and the caller did, as its journal tells it.

Conversations end where somebody stored them, and what is wrong with one often shows only afterwards; so what is pending
is left to the oracle, and a few more messages follow.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

from pytest_approvals.errors import HistoryError
from pytest_approvals.histories.conversation import Conversation
from pytest_approvals.histories.journal import journal_of
from pytest_approvals.journal import events as ev

from .draft import Answer, Call, Draft, Reply, Result, Tool, Turn, Verdict

AFTERWARDS = ("And now?", "Anything else?")
"""What the caller sends when the stored conversation is over."""

REPLY = "Done."
"""What the model says when the stored conversation does not tell."""

GO_ON = "Go on."
"""What the caller sends where nobody knows what it was."""

OURS = (REPLY, GO_ON, *AFTERWARDS)
"""Texts that come from nobody's conversation."""

_LONGEST = 400
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]+")


def draft_of(conversation: Conversation) -> Draft:
    """
    Gives the draft.

    Errors:
        HistoryError: Nobody says anything in the conversation.
    """
    told = _Told()
    for event in journal_of(conversation):
        told.hear(event)
    if not told.turns:
        raise HistoryError("nobody says anything in this conversation, so there is nothing to reproduce")
    return told.draft()


@dataclass(slots=True)
class _Told:
    """What was told so far."""

    tools: dict[str, Tool] = field(default_factory=dict)
    turns: list[Turn] = field(default_factory=list)
    decided: dict[int, Answer] = field(default_factory=dict)
    running: dict[int, str] = field(default_factory=dict)
    results: dict[str, Result] = field(default_factory=dict)
    pending: bool = False

    def hear(self, event: ev.Event) -> None:
        match event:
            case ev.Header():
                self.tools = {tool_name(name): _tool(facts) for name, facts in event.tools.items()}
            case ev.Decide():
                self.decided[event.n] = _answer(event)
            case ev.TurnStart():
                answers = tuple(self.decided[n] for n in event.decisions)
                text = _text(event.text) if event.text is not None else None if answers else GO_ON
                self.turns.append(Turn(send=text, answers=answers))
            case ev.ModelAnswer():
                calls = tuple(_call(facts) for facts in event.calls)
                self._reply(Reply(say=None if event.say is None else _text(event.say), calls=calls))
            case ev.ToolStart():
                self._starts(event)
            case ev.ToolEnd() if event.x in self.running:
                self.results[self.running[event.x]] = _result(event)
            case ev.RunEnd():
                self.pending = bool(event.pending)

    def draft(self) -> Draft:
        turns = [replace(turn, replies=tuple(map(self._with_results, turn.replies))) for turn in self.turns]
        ending = [Turn(oracle=True, replies=(Reply(say=REPLY),))] if self.pending else []
        ending += [Turn(send=text, replies=(Reply(say=REPLY),)) for text in AFTERWARDS]
        return Draft(tools=self.tools, turns=(*turns, *ending), vary=("history",)).tidy()

    def _reply(self, reply: Reply) -> None:
        self.turns[-1] = replace(self.turns[-1], replies=(*self.turns[-1].replies, reply))

    def _starts(self, event: ev.ToolStart) -> None:
        calls = [call for turn in self.turns for reply in turn.replies for call in reply.calls]
        waiting = [call.key for call in calls if call.id == event.call_id and call.key not in self.running.values()]
        if waiting:
            self.running[event.x] = waiting[0]

    def _with_results(self, reply: Reply) -> Reply:
        return replace(reply, calls=tuple(replace(call, result=self.results.get(call.key)) for call in reply.calls))


def tool_name(name: str) -> str:
    """
    Gives a name that a scenario's tool can have.

    >>> [tool_name(name) for name in ("pay", "2 much!", "")]
    ['pay', 'tool_2_much', 'tool']
    """
    plain = _NOT_IN_NAMES.sub("_", name).strip("_")[:60]
    return plain if plain and not plain[0].isdigit() else f"tool_{plain}".strip("_")


def parameter_name(name: str) -> str:
    """
    Gives a name that a parameter can have.

    >>> [parameter_name(name) for name in ("to", "is-it", "from")]
    ['to', 'is_it', 'from_']
    """
    plain = _NOT_IN_NAMES.sub("_", name)[:60] or "value"
    plain = f"_{plain}" if plain[0].isdigit() else plain
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def _tool(facts: Mapping[str, Any]) -> Tool:
    return Tool(gated=facts["approval"] == "always", kind=facts.get("kind", "function"), server=facts.get("server"))


def _call(facts: Mapping[str, Any]) -> Call:
    arguments = facts["arguments"]
    if isinstance(arguments, Mapping):
        given = {parameter_name(name): _plain(value) for name, value in arguments.items() if value is not None}
    return Call(
        key=facts["label"],
        id=facts["id"],
        tool=tool_name(facts["tool"]),
        arguments=given if isinstance(arguments, Mapping) else str(_plain(arguments)),
    )


def _answer(event: ev.Decide) -> Answer:
    arguments: Any = event.raw if event.verdict == "raw" else event.arguments
    if isinstance(arguments, Mapping):
        arguments = {parameter_name(name): _plain(value) for name, value in arguments.items()}
    return Answer(
        call=event.label,
        verdict=cast("Verdict", event.verdict),
        unknown=_text(event.id or "unknown"),
        text=None if event.reason is None else _text(event.reason),
        arguments=_plain(arguments),
    )


def _result(event: ev.ToolEnd) -> Result:
    if event.how == "raised":
        return Result(value=_text(": ".join(map(str, (event.error or ["", ""])[1:]))), raised=True)
    return Result(value=_plain(event.result))


def _text(text: str) -> str:
    plain = str(_plain(text)).strip() or GO_ON
    return plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST].rstrip()} ..."


def _plain(value: Any) -> Any:
    """Gives a JSON value without what a scenario would take for something else: made-up values, half characters."""
    match value:
        case str():
            return value.encode("utf-8", "replace").decode("utf-8").replace("{{", "{ {")
        case Mapping():
            fake = "fake" in value
            return {str(_plain(f"{name}_" if fake else name)): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case _:
            return value
