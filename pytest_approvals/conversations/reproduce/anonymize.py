"""Anonymization of a draft by made-up values, so that it can be shared.

The names of tools, parameters and servers are kept.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_approvals.conversations.made_up_values import MadeUpValues, hide_secrets
from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftDecision,
    DraftReply,
    DraftTurn,
    ScenarioDraft,
)


def anonymize(draft: ScenarioDraft, keep: Collection[str] = (), said: Iterable[Any] = ()) -> ScenarioDraft:
    """Return the draft with made-up values, the same ones for the same draft.

    Args:
        draft: The draft.
        keep: The texts that stay as they are.
        said: What else the conversation says, which no made-up value shows by chance either.
    """
    made_up = MadeUpValues({(str, text): text for text in keep})
    for value in (*draft.values(), *said):
        if value not in keep:
            made_up.avoid(value)
    values = _DraftValues(made_up)
    agents = {name: tuple(map(values.replace_reply, replies)) for name, replies in draft.agents.items()}
    return replace(draft, turns=tuple(map(values.replace_turn, draft.turns)), agents=agents)


def hide_draft_secrets(draft: ScenarioDraft) -> ScenarioDraft:
    """Return the draft without the values of arguments and results whose names look like those of secrets."""
    agents = {name: tuple(map(_hide_in_reply, replies)) for name, replies in draft.agents.items()}
    return replace(draft, turns=tuple(map(_hide_in_turn, draft.turns)), agents=agents)


def _hide_in_turn(turn: DraftTurn) -> DraftTurn:
    decisions = tuple(replace(each, arguments=hide_secrets(each.arguments)) for each in turn.decisions)
    return replace(turn, decisions=decisions, replies=tuple(map(_hide_in_reply, turn.replies)))


def _hide_in_reply(reply: DraftReply) -> DraftReply:
    return replace(reply, calls=tuple(map(_hide_in_call, reply.calls)))


def _hide_in_call(call: DraftCall) -> DraftCall:
    result = None if call.result is None else replace(call.result, value=hide_secrets(call.result.value))
    return replace(call, arguments=hide_secrets(call.arguments), result=result)


@dataclass(slots=True)
class _DraftValues:
    """The replacements of the values of one draft."""

    values: MadeUpValues = field(default_factory=MadeUpValues)

    def replace_turn(self, turn: DraftTurn) -> DraftTurn:
        """Return a turn with made-up values."""
        send = None if turn.send is None else self.values.replace(turn.send)
        decisions = tuple(map(self._replace_decision, turn.decisions))
        return replace(turn, send=send, decisions=decisions, replies=tuple(map(self.replace_reply, turn.replies)))

    def replace_reply(self, reply: DraftReply) -> DraftReply:
        """Return a reply with made-up values."""
        say = None if reply.say is None else self.values.replace(reply.say)
        return replace(reply, say=say, calls=tuple(map(self._replace_call, reply.calls)))

    def _replace_call(self, call: DraftCall) -> DraftCall:
        result = None if call.result is None else replace(call.result, value=self.values.replace(call.result.value))
        return replace(call, arguments=self.values.replace(call.arguments), result=result)

    def _replace_decision(self, decision: DraftDecision) -> DraftDecision:
        text = None if decision.text is None else self.values.replace(decision.text)
        unknown = self.values.replace(decision.unknown) if decision.call is None else decision.unknown
        shows = None if decision.shows is None else self.values.replace(decision.shows)
        arguments = self.values.replace(decision.arguments)
        return replace(decision, text=text, unknown=unknown, arguments=arguments, shows=shows)
