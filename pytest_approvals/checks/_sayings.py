"""What calls have returned, raised or were rejected with, and whether a told text is that of another call."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pytest_approvals.checks._check import OK, Failure
from pytest_approvals.checks._queries import (
    exchanges_of_agent,
    list_moved_decisions,
)
from pytest_approvals.checks._told_texts import (
    is_told,
    iterate_texts,
    list_told_texts,
)
from pytest_approvals.journal.history import (
    DeliveredResult,
    History,
    RecordedCall,
)


@dataclass(frozen=True, slots=True)
class Saying:
    """What a call has returned, what it raised, or why it was rejected: texts that only the model of that call is told.

    Attributes:
        call: The call.
        what: How a finding names it: `c1 returned`, `c1 was rejected with`.
        text: The text.
        n: Where it was said.
    """

    call: RecordedCall
    what: str
    text: str
    n: int

    @property
    def label(self) -> str:
        """The label of the call."""
        return self.call.label


def list_sayings(history: History) -> dict[str, list[Saying]]:
    """Return the distinctive texts of all calls, by session."""
    sayings: dict[str, list[Saying]] = {}
    for execution in history.executions:
        call = execution.call
        if call is None or execution.ended is None:
            continue
        says = "returned" if execution.how == "returned" else "raised"
        texts = [text for _, text in iterate_texts(execution.result)] if says == "returned" else execution.error or []
        for text in texts[-1:] if says == "raised" else texts:
            saying = Saying(call, f"{call.label} {says}", text, execution.ended)
            sayings.setdefault(call.session, []).append(saying)
    for call in history.calls:
        for decision in (*call.decisions, *call.standing_decisions):
            if decision.rejects and decision.event.reason:
                saying = Saying(call, f"{call.label} was rejected with", decision.event.reason, decision.n)
                sayings.setdefault(call.session, []).append(saying)
        # What was rejected for good is told of each call of the tool to which a change of the save moved the decision.
        for change, moved in list_moved_decisions(history, call, "never"):
            if moved.event.reason:
                saying = Saying(call, f"{call.label} was rejected with", moved.event.reason, change.n)
                sayings.setdefault(call.session, []).append(saying)
    return sayings


def find_foreign_saying(
    history: History, call: RecordedCall, delivery: DeliveredResult, sayings: Mapping[str, Sequence[Saying]]
) -> Failure | None:
    """Return a failure if a call is told what only another one returned or raised, or was rejected with.

    The result of a call that runs an agent may repeat what that agent was told or has said.
    """
    session = sayings.get(call.session, ())
    # What a provider reports of its own calls is not the agent's.
    if delivery.item is None:
        return OK
    told = list_told_texts(delivery.text)
    ran = call.first_return is not None
    for saying in session:
        # Of two calls of one reply with one id, nothing says which of them a result is for.
        is_twin = saying.call.n == call.n and saying.call.id == call.id
        if saying.n > delivery.n or is_twin or _are_related(saying.label, call.label):
            continue
        # That one is how a call which nobody let run is told of, whatever another one has returned.
        if is_word_of_refusal(saying.text):
            continue
        if not is_distinctive(saying.text) and (ran or not equals_result(delivery.text, saying.text)):
            continue
        if not is_told(told, saying.text):
            continue
        # Equal texts of two calls, or one that holds the other, tell nothing.
        if not any(saying.text.strip() in text for text in _list_own_texts(history, call, session)):
            actual = f"the model is told {delivery.text!r}, and {saying.what} {saying.text!r}"
            return Failure(call=call, expected="its own outcome alone", actual=actual, witness=(saying.n, delivery.n))
    return OK


def _list_own_texts(history: History, call: RecordedCall, session: Sequence[Saying]) -> list[str]:
    """Return the texts in the arguments of a call, what it or a call in or around it came to, and its agent's words."""
    words = [exchange.answer.say or "" for exchange in exchanges_of_agent(history, call) if exchange.answer is not None]
    arguments = iterate_texts([call.arguments, *(run.arguments for run in call.executions)])
    own = (saying.text for saying in session if _are_related(saying.label, call.label))
    return [*(text for _, text in arguments), *own, *words]


def equals_result(text: str | None, result: str) -> bool:
    """Return whether *text* is exactly *result*, and *result* is long enough to rule out chance."""
    return len(result) > 3 and text is not None and text.strip() == result.strip()


def _are_related(label: str, other: str) -> bool:
    return f"{label}/".startswith(f"{other}/") or other.startswith(f"{label}/")


def is_distinctive(text: str) -> bool:
    """Return whether a text is no word that many calls may say.

    >>> is_distinctive("unaffordable"), is_distinctive("rejected"), is_distinctive("rejected by bob")
    (True, False, True)
    """
    text = text.strip()
    return (
        not is_word_of_refusal(text)
        and len(text) > 4
        and (len(text) > 7 or any(letter.isdigit() or letter.isspace() for letter in text))
    )


def is_word_of_refusal(text: str) -> bool:
    """Return whether a text is one word, in which agents tell that a call was not done."""
    return _WORD_OF_REFUSAL.fullmatch(text.strip()) is not None


_WORD_OF_REFUSAL = re.compile(
    r"(?:reject|den[iy]|refus|declin|cancel|disapprov|dismiss|abort|interrupt|terminat|prevent)[a-z]*[.!]?",
    re.IGNORECASE,
)
