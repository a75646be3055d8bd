"""What a turn gives in the end, where an object with declared fields was asked for."""

from __future__ import annotations

from pytest_approvals.journal.arguments import same_arguments
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

from .check import OK, Evaluations, Failure, check
from .circumstances import fits


@check(
    "answer-given",
    needs=("model.answer", "turn.end"),
    sources=("langchain-ai/langchain#36957", "langchain-ai/langchain#32980", "pydantic/pydantic-ai#6486"),
)
def answer_given(history: History) -> Evaluations:
    """
    A turn that finishes must give the structured answer that its model gave last.

    Whoever asks for an object reads its fields. Where nothing comes, or words, or the answer of an earlier turn, the
    program behind it fails, or goes on with what is not true any more. An answer that does not fit what was asked for
    is not judged, nor one beside calls, which agents may take or leave.

    Passes:
        wants total: integer
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        answers total=5
        outputs total=5

    Fails, nothing comes:
        wants total: integer
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        answers total=5
        outputs

    Fails, it comes as text:
        wants total: integer
        send Sum up
        answers total=5
        finish {"total": 5}

    Fails, the answer of an earlier turn comes:
        wants total: integer
        send Sum up
        answers total=5
        outputs total=5
        send And now?
        answers total=7
        outputs total=5
    """
    wanted = history.header.answer if history.header is not None else None
    if wanted is None:
        return
    for turn in history.turns:
        given = _answer_of(turn)
        if given is None or turn.end is None or turn.outcome != "finished" or not fits(given[1], wanted):
            continue
        n, answer = given
        if isinstance(turn.end.output, dict) and same_arguments(turn.end.output, answer, wanted):
            yield OK
        else:
            witness = (n, turn.end.n)
            actual = f"the turn gives {turn.end.output!r}"
            yield Failure(expected=repr(answer), actual=actual, witness=witness, session=turn.session)


def _answer_of(turn: TurnSeen) -> tuple[int, object] | None:
    """Gives the structured answer that ends a turn, with its position."""
    replies = [exchange.answer for exchange in turn.exchanges if "/" not in exchange.conversation]
    last = replies[-1] if replies else None
    return None if last is None or last.answer is None or last.calls else (last.n, last.answer)
