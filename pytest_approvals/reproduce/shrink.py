"""
Making a draft small: whatever can be taken out while the same check still fails is taken out, the largest pieces first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from .draft import Answer, Call, Draft, Reply, Turn
from .stored import GO_ON, REPLY

Holds = Callable[[Draft], bool]
"""Says whether a draft still shows what the whole one does."""

T = TypeVar("T")


def shrunk(draft: Draft, holds: Holds) -> Draft:
    """
    Gives the smallest draft that can be found: the passes are repeated until none of them changes anything.

    What the caller decided stays said, for as long as there is the call: a story is not clearer where it leaves that to
    an oracle.
    """
    decided = _answered(draft)

    def says_enough(candidate: Draft) -> bool:
        left = {call.key for call in candidate.calls()}
        return decided & left <= _answered(candidate) and holds(candidate)

    before: Draft | None = None
    while draft != before:
        before = draft
        for smaller in _PASSES:
            draft = smaller(draft, says_enough)
    return draft


def _answered(draft: Draft) -> set[str]:
    return {answer.call for turn in draft.turns for answer in turn.answers if answer.call is not None}


def fewer(items: Sequence[T], holds: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """
    Gives as few of the items as will do: takes out halves, then quarters, and so on to single ones.

    >>> fewer("abcdefgh", lambda left: "b" in left and "g" in left)
    ('b', 'g')
    """
    left = tuple(items)
    size = len(left)
    while size:
        size = (size + 1) // 2 if size > 1 else 1
        at = len(left) - size
        while at > -size:
            without = left[: max(at, 0)] + left[at + size :]
            if len(without) < len(left) and holds(without):
                left = without
            at -= size
        size = size // 2 if size > 1 else 0
    return left


def _fewer_turns(draft: Draft, holds: Holds) -> Draft:
    def with_turns(turns: tuple[Turn, ...]) -> Draft:
        return replace(draft, turns=turns).tidy()

    return with_turns(fewer(draft.turns, lambda turns: bool(turns) and holds(with_turns(turns))))


def _fewer_steps(draft: Draft, holds: Holds) -> Draft:
    """Takes out steps, and leaves their replies to the step before."""
    for turn in draft.turns[::-1]:
        idle = replace(turn, send=None, answers=(), oracle=False)
        draft = _first(draft, [_with(draft, turn, idle)], holds)
    return draft


def _fewer_answers(draft: Draft, holds: Holds) -> Draft:
    for place in reversed(range(len(draft.turns))):
        draft = _fewer_answers_in(draft, place, holds)
    return draft


def _fewer_answers_in(draft: Draft, place: int, holds: Holds) -> Draft:
    def with_answers(answers: tuple[Answer, ...]) -> Draft:
        return _at(draft, place, replace(draft.turns[place], answers=answers)).tidy()

    return with_answers(fewer(draft.turns[place].answers, lambda answers: holds(with_answers(answers))))


def _fewer_replies(draft: Draft, holds: Holds) -> Draft:
    def with_replies(kept: tuple[tuple[int, int], ...]) -> Draft:
        turns = [
            replace(turn, replies=tuple(reply for k, reply in enumerate(turn.replies) if (n, k) in kept))
            for n, turn in enumerate(draft.turns)
        ]
        return replace(draft, turns=tuple(turns)).tidy()

    places = [(n, k) for n, turn in enumerate(draft.turns) for k, _ in enumerate(turn.replies)]
    return with_replies(fewer(places, lambda kept: bool(kept) and holds(with_replies(kept))))


def _fewer_calls(draft: Draft, holds: Holds) -> Draft:
    """Takes out calls; a reply that was nothing else becomes a plain text, as somebody may wait for it."""

    def with_calls(keys: tuple[str, ...]) -> Draft:
        return _each_reply(draft, lambda reply: _with_calls(reply, keys))

    return with_calls(fewer([call.key for call in draft.calls()], lambda keys: holds(with_calls(keys))))


def _with_calls(reply: Reply, keys: Collection[str]) -> Reply:
    calls = tuple(call for call in reply.calls if call.key in keys)
    return replace(reply, calls=calls, say=REPLY if reply.calls and not calls and reply.say is None else reply.say)


def _fewer_arguments(draft: Draft, holds: Holds) -> Draft:
    """Takes parameters from tools."""
    for tool, name in dict.fromkeys((call.tool, name) for call in draft.calls() for name in _names(call)):
        draft = _first(draft, [_each_call(draft, partial(_without, tool=tool, name=name))], holds)
    return draft


def _simpler(draft: Draft, holds: Holds) -> Draft:
    """Tries what is plainer in each place: no result, no reason, shorter texts, the smallest values."""
    for key in [call.key for call in draft.calls()]:
        for plainer in _plainer_calls(key, draft):
            draft = _first(draft, [_each_call(draft, plainer)], holds)
    for turn in range(len(draft.turns)):
        for change in (_plain_text, _plain_answers, _plain_replies, _no_say):
            changed = change(draft.turns[turn])
            draft = _first(draft, [_at(draft, turn, changed)], holds)
    return _first(draft, [replace(draft, vary=())], holds)


_PASSES = (_fewer_turns, _fewer_steps, _fewer_replies, _fewer_calls, _fewer_answers, _fewer_arguments, _simpler)


def _first(draft: Draft, candidates: Sequence[Draft], holds: Holds) -> Draft:
    tidied = (candidate.tidy() for candidate in candidates)
    return next((candidate for candidate in tidied if candidate != draft and holds(candidate)), draft)


def _with(draft: Draft, turn: Turn, other: Turn) -> Draft:
    return replace(draft, turns=tuple(other if each is turn else each for each in draft.turns)).tidy()


def _at(draft: Draft, place: int, other: Turn) -> Draft:
    return replace(draft, turns=(*draft.turns[:place], other, *draft.turns[place + 1 :]))


def _each_reply(draft: Draft, change: Callable[[Reply], Reply]) -> Draft:
    turns = (replace(turn, replies=tuple(map(change, turn.replies))) for turn in draft.turns)
    return replace(draft, turns=tuple(turns)).tidy()


def _each_call(draft: Draft, change: Callable[[Call], Call]) -> Draft:
    return _each_reply(draft, lambda reply: replace(reply, calls=tuple(map(change, reply.calls))))


def _names(call: Call) -> list[str]:
    return list(call.arguments) if isinstance(call.arguments, Mapping) else []


def _without(call: Call, tool: str, name: str) -> Call:
    if call.tool != tool or isinstance(call.arguments, str):
        return call
    return replace(call, arguments={other: value for other, value in call.arguments.items() if other != name})


# --- what is plainer --------------------------------------------------------------------------------------------------


def _plainer_calls(key: str, draft: Draft) -> Iterator[Callable[[Call], Call]]:
    yield partial(_without_result, key=key)
    [call] = [call for call in draft.calls() if call.key == key]
    yield from (partial(_with_plain_value, key=key, name=name) for name in _names(call))


def _without_result(call: Call, key: str) -> Call:
    return replace(call, result=None) if call.key == key else call


def _with_plain_value(call: Call, key: str, name: str) -> Call:
    if call.key != key or isinstance(call.arguments, str) or name not in call.arguments:
        return call
    return replace(call, arguments={**call.arguments, name: _plain_value(call.arguments[name])})


def _plain_value(value: Any) -> Any:
    match value:
        case str():
            return value.split()[0] if value.split() else value
        case list():
            return value[:1]
        case Mapping():
            return dict(list(value.items())[:1])
        case _:
            return value


def _plain_text(turn: Turn) -> Turn:
    return turn if turn.send is None else replace(turn, send=_first_sentence(turn.send))


def _plain_answers(turn: Turn) -> Turn:
    return replace(turn, answers=tuple(map(_plain_answer, turn.answers)))


def _plain_answer(answer: Answer) -> Answer:
    return replace(answer, text=None)


def _plain_replies(turn: Turn) -> Turn:
    replies = (reply if reply.say is None else replace(reply, say=_first_sentence(reply.say)) for reply in turn.replies)
    return replace(turn, replies=tuple(replies))


def _no_say(turn: Turn) -> Turn:
    return replace(turn, replies=tuple(replace(reply, say=None) if reply.calls else reply for reply in turn.replies))


def _first_sentence(text: str) -> str:
    first, stop, _ = text.strip().splitlines()[0].partition(". ") if text.strip() else (GO_ON, "", "")
    sentence = first + stop.strip()
    return sentence if len(sentence) <= 60 else f"{' '.join(sentence[:50].split()[:-1] or [sentence[:50]])} ..."
