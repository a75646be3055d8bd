"""Minimization of a draft: everything is removed that the failure does not need.

The largest pieces are tried first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_approvals.campaigns.story_shrinking import minimize
from pytest_approvals.conversations.reproduce.draft import (
    DraftCall,
    DraftDecision,
    DraftReply,
    DraftTurn,
    ScenarioDraft,
)
from pytest_approvals.conversations.reproduce.from_conversation import DEFAULT_MESSAGE, DEFAULT_REPLY

Predicate = Callable[[ScenarioDraft], bool]
"""Return whether a draft still fails as the whole one does."""


def shrink(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    """Return the smallest draft that is found by repeating the passes until none of them changes anything.

    The caller's decisions stay while their calls do: a scenario is not clearer if it leaves them to an oracle.
    """
    decided = _decided_calls(draft)

    def keeps_decisions(candidate: ScenarioDraft) -> bool:
        left = {call.key for call in candidate.calls()}
        return decided & left <= _decided_calls(candidate) and still_fails(candidate)

    before: ScenarioDraft | None = None
    while draft != before:
        before = draft
        for smaller in _PASSES:
            draft = smaller(draft, keeps_decisions)
    return draft


def _decided_calls(draft: ScenarioDraft) -> set[str]:
    return {decision.call for turn in draft.turns for decision in turn.decisions if decision.call is not None}


def _drop_turns(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    def with_turns(turns: tuple[DraftTurn, ...]) -> ScenarioDraft:
        return replace(draft, turns=turns).tidy()

    return with_turns(minimize(draft.turns, lambda turns: bool(turns) and still_fails(with_turns(turns))))


def _drop_steps(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    """Remove steps, leaving their replies to the step before."""
    for turn in draft.turns[::-1]:
        idle = replace(turn, send=None, decisions=(), oracle=False, goes_on=False)
        draft = _accept(draft, _replace_turn(draft, turn, idle), still_fails)
    return draft


def _drop_decisions(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    for place in reversed(range(len(draft.turns))):
        draft = _drop_decisions_of_turn(draft, place, still_fails)
    return draft


def _drop_decisions_of_turn(draft: ScenarioDraft, place: int, still_fails: Predicate) -> ScenarioDraft:
    def with_decisions(decisions: tuple[DraftDecision, ...]) -> ScenarioDraft:
        return _replace_turn_at(draft, place, replace(draft.turns[place], decisions=decisions)).tidy()

    return with_decisions(
        minimize(draft.turns[place].decisions, lambda decisions: still_fails(with_decisions(decisions)))
    )


def _drop_replies(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    def with_replies(places: tuple[tuple[int, int], ...]) -> ScenarioDraft:
        turns = [
            replace(turn, replies=tuple(reply for k, reply in enumerate(turn.replies) if (n, k) in places))
            for n, turn in enumerate(draft.turns)
        ]
        return replace(draft, turns=tuple(turns)).tidy()

    places = [(n, k) for n, turn in enumerate(draft.turns) for k, _ in enumerate(turn.replies)]
    return with_replies(minimize(places, lambda left: bool(left) and still_fails(with_replies(left))))


def _drop_calls(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    """Remove calls; a reply without other content becomes a plain text, as the caller may wait for it."""

    def with_calls(keys: tuple[str, ...]) -> ScenarioDraft:
        return _map_replies(draft, lambda reply: _keep_calls(reply, keys))

    return with_calls(minimize([call.key for call in draft.calls()], lambda keys: still_fails(with_calls(keys))))


def _keep_calls(reply: DraftReply, keys: Collection[str]) -> DraftReply:
    calls = tuple(call for call in reply.calls if call.key in keys)
    return replace(
        reply, calls=calls, say=DEFAULT_REPLY if reply.calls and not calls and reply.say is None else reply.say
    )


def _drop_parameters(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    """Remove parameters of tools."""
    for tool, name in dict.fromkeys((call.tool, name) for call in draft.calls() for name in _argument_names(call)):
        smaller = _map_calls(draft, partial(_drop_argument, tool=tool, name=name))
        keys = {call.key for call in draft.calls() if call.tool == tool}
        smaller = _map_decisions(smaller, partial(_drop_shown_argument, keys=keys, name=name))
        draft = _accept(draft, smaller, still_fails)
    return draft


def _simplify(draft: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    """Simplify each place: no result, no reason, shorter texts, the smallest values."""
    for key in [call.key for call in draft.calls()]:
        for plainer in _call_simplifications(key, draft):
            draft = _accept(draft, _map_calls(draft, plainer), still_fails)
    for turn in range(len(draft.turns)):
        for change in (_simplify_text, _drop_shown, _simplify_decisions, _simplify_replies, _drop_texts):
            changed = change(draft.turns[turn])
            draft = _accept(draft, _replace_turn_at(draft, turn, changed), still_fails)
    return _accept(draft, replace(draft, vary=()), still_fails)


_PASSES = (_drop_turns, _drop_steps, _drop_replies, _drop_calls, _drop_decisions, _drop_parameters, _simplify)


def _accept(draft: ScenarioDraft, candidate: ScenarioDraft, still_fails: Predicate) -> ScenarioDraft:
    """Return the candidate if it differs from the draft and still fails, else the draft."""
    tidied = candidate.tidy()
    return tidied if tidied != draft and still_fails(tidied) else draft


def _replace_turn(draft: ScenarioDraft, turn: DraftTurn, other: DraftTurn) -> ScenarioDraft:
    # By identity, because a draft may have equal turns.
    return replace(draft, turns=tuple(other if candidate is turn else candidate for candidate in draft.turns)).tidy()


def _replace_turn_at(draft: ScenarioDraft, place: int, other: DraftTurn) -> ScenarioDraft:
    return replace(draft, turns=(*draft.turns[:place], other, *draft.turns[place + 1 :]))


def _map_replies(draft: ScenarioDraft, change: Callable[[DraftReply], DraftReply]) -> ScenarioDraft:
    turns = (replace(turn, replies=tuple(map(change, turn.replies))) for turn in draft.turns)
    return replace(draft, turns=tuple(turns)).tidy()


def _map_calls(draft: ScenarioDraft, change: Callable[[DraftCall], DraftCall]) -> ScenarioDraft:
    return _map_replies(draft, lambda reply: replace(reply, calls=tuple(map(change, reply.calls))))


def _map_decisions(draft: ScenarioDraft, change: Callable[[DraftDecision], DraftDecision]) -> ScenarioDraft:
    turns = (replace(turn, decisions=tuple(map(change, turn.decisions))) for turn in draft.turns)
    return replace(draft, turns=tuple(turns))


def _argument_names(call: DraftCall) -> list[str]:
    return list(call.arguments) if isinstance(call.arguments, Mapping) else []


def _drop_argument(call: DraftCall, tool: str, name: str) -> DraftCall:
    if call.tool != tool or isinstance(call.arguments, str):
        return call
    return replace(call, arguments={other: value for other, value in call.arguments.items() if other != name})


def _drop_shown_argument(decision: DraftDecision, keys: Collection[str], name: str) -> DraftDecision:
    if decision.call not in keys or decision.shows is None:
        return decision
    return replace(decision, shows={other: value for other, value in decision.shows.items() if other != name})


# --- simplifications ----------------------------------------------------------------------------------------------


def _call_simplifications(key: str, draft: ScenarioDraft) -> Iterator[Callable[[DraftCall], DraftCall]]:
    yield partial(_drop_result, key=key)
    [call] = [call for call in draft.calls() if call.key == key]
    yield from (partial(_simplify_argument, key=key, name=name) for name in _argument_names(call))


def _drop_result(call: DraftCall, key: str) -> DraftCall:
    return replace(call, result=None) if call.key == key else call


def _simplify_argument(call: DraftCall, key: str, name: str) -> DraftCall:
    if call.key != key or isinstance(call.arguments, str) or name not in call.arguments:
        return call
    return replace(call, arguments={**call.arguments, name: _simplify_value(call.arguments[name])})


def _simplify_value(value: Any) -> Any:
    match value:
        case str():
            return value.split()[0] if value.split() else value
        case list():
            return value[:1]
        case Mapping():
            return dict(list(value.items())[:1])
        case _:
            return value


def _simplify_text(turn: DraftTurn) -> DraftTurn:
    return turn if turn.send is None else replace(turn, send=_first_sentence(turn.send))


def _simplify_decisions(turn: DraftTurn) -> DraftTurn:
    return replace(turn, decisions=tuple(map(_drop_reason, turn.decisions)))


def _drop_shown(turn: DraftTurn) -> DraftTurn:
    return replace(turn, decisions=tuple(replace(each, shows=None, shows_tool=None) for each in turn.decisions))


def _drop_reason(decision: DraftDecision) -> DraftDecision:
    return replace(decision, text=None)


def _simplify_replies(turn: DraftTurn) -> DraftTurn:
    replies = (reply if reply.say is None else replace(reply, say=_first_sentence(reply.say)) for reply in turn.replies)
    return replace(turn, replies=tuple(replies))


def _drop_texts(turn: DraftTurn) -> DraftTurn:
    return replace(turn, replies=tuple(replace(reply, say=None) if reply.calls else reply for reply in turn.replies))


def _first_sentence(text: str) -> str:
    first, stop, _ = text.strip().splitlines()[0].partition(". ") if text.strip() else (DEFAULT_MESSAGE, "", "")
    sentence = first + stop.strip()
    return sentence if len(sentence) <= 60 else f"{' '.join(sentence[:50].split()[:-1] or [sentence[:50]])} ..."
