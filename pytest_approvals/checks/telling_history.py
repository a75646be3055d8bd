"""What stood in the input of the model before, and must stand there again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_approvals.journal.calls import CallSeen
from pytest_approvals.journal.history import History
from pytest_approvals.journal.matching import runs_with
from pytest_approvals.journal.turns import Exchange
from pytest_approvals.journal.wording import said_call

from .check import OK, Evaluations, Failure, check
from .circumstances import rewritten_between, trimmed_between


@check(
    "history-not-rewritten",
    level="should",
    needs=("model.request",),
    sources=("langchain-ai/langchain#33787", "langchain-ai/langchain#32988"),
)
def history_not_rewritten(history: History) -> Evaluations:
    """
    An input of the model should repeat what the one before held, and the calls in it as the model made them.

    A model that reads another past than its own, caches that cannot be used, and audits that find other calls than were
    made come of it. That holds for a call that a person edited, too: what ran in its place is for its result to say.
    Inputs after a failed turn, a rewind, a trimming or a change of what was saved are not compared.

    Passes:
        send Go
        model c1 read(path=a)
        run c1 -> text
        model c2 read(path=b)
        run c2 -> text
        done

    Warns:
        send Go
        model c1 read(path=a)
        run c1 -> text
        model c2 read(path=b)
        run c2 -> text
        untell c1
        tell c1 other text
        done

    Warns, the model's own call:
        send Go
        model c1 read(path=a)
        run c1 -> text
        change c1 path=b
        done

    Warns, a call that a person edited:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        change c1 amount=3
        run c1 pay(amount=3) -> paid 3
        done
    """
    for exchange in history.exchanges:
        before = exchange.before
        if before is None or before.answer is None:
            continue
        failure = _rewritten(before, exchange)
        if failure is None or _comparable(history, before, exchange):
            yield failure


def _rewritten(before: Exchange, exchange: Exchange) -> Failure | None:
    if exchange.differs is not None:
        actual = f"item {exchange.differs + 1} of the input before is another one or missing"
        expected = "the input before, and what came since"
        witness = (before.n, exchange.n)
        return Failure(expected=expected, actual=actual, witness=witness, session=exchange.session)
    changed = _changed_call(before, exchange)
    if changed is not None:
        call, item = changed
        actual = f"{said_call(str(item.get('tool')), item.get('arguments'))} in the model's input"
        expected = said_call(call.tool, call.arguments)
        return Failure(call=call, expected=expected, actual=actual, witness=(call.n, exchange.n))
    say = before.answer.say if before.answer is not None else None
    if say and not _said(say, before, exchange):
        witness = (before.answer.n if before.answer is not None else 0, exchange.n)
        actual = f"{say!r} is not in the next input"
        return Failure(expected="what the model said", actual=actual, witness=witness, session=exchange.session)
    return OK


def _comparable(history: History, before: Exchange, exchange: Exchange) -> bool:
    between = (history, before.n, exchange.n, exchange.session)
    if before.fork != exchange.fork or trimmed_between(*between) or rewritten_between(*between):
        return False
    turns = [turn for turn in (before.turn, exchange.turn) if turn is not None]
    if any(turn.overlaps for turn in turns):
        return False
    ended = (turn for turn in history.turns if before.n < (turn.end.n if turn.end else 0) < exchange.n)
    return not any(turn.failed and turn.session == exchange.session for turn in ended)


def _changed_call(before: Exchange, exchange: Exchange) -> tuple[CallSeen, Mapping[str, Any]] | None:
    """Gives a call that is shown otherwise than the model made it."""
    start = len(before.items)
    for index, call in exchange.placed:
        item = exchange.items[index]
        if item.get("arguments") == call.arguments or (index < start and item == before.items[index]):
            continue
        if not _is_written(item, call):
            return call, item
    return None


def _is_written(item: Mapping[str, Any], call: CallSeen) -> bool:
    """Whether an item shows a call; what is no object may be wrapped in one, since some providers want objects."""
    if item.get("tool") != call.tool:
        return False
    wrapped = isinstance(call.arguments, str) and call.arguments in str(item.get("arguments"))
    return wrapped or runs_with(item.get("arguments"), call.arguments, call.parameters)


def _said(say: str, before: Exchange, exchange: Exchange) -> bool:
    new = exchange.items[len(before.items) :]
    return any(say in str(item.get("text") or "") for item in new if item["kind"] in ("say", "call", "other"))
