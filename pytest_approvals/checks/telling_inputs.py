"""What stands in the input of the model: what a provider takes, what the caller said, and what stood there before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_approvals.journal.calls import CallSeen
from pytest_approvals.journal.events import ModelRefusal
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import Exchange, TurnSeen
from pytest_approvals.protocols.reading import ReadInput
from pytest_approvals.protocols.rules import broken_in

from .check import OK, Evaluations, Failure, check
from .circumstances import trimmed_between


@check(
    "model-input-well-formed",
    needs=("model.request",),
    implies=("usable-after-refusal", "usable-after-hang-up", "nothing-left-pending", "run-ends"),
    sources=("pydantic/pydantic-ai#6319", "microsoft/agent-framework#7267", "vercel/ai#15947"),
)
def model_input_well_formed(history: History) -> Evaluations:
    """
    What is sent to the model must be what its provider takes.

    A provider answers status 400 to a call without a result, a result without its call, a second result, and, over some
    protocols, to results that do not follow their calls; then the conversation cannot go on.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, where results may come later:
        rules responses
        send Go
        model c1 read(path=a)
        user Wait
        run c1 -> text
        done

    Fails:
        send Go
        model c1 read(path=a)
        user Wait
        run c1 -> text
        done

    Fails, a message while a request is pending:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Never mind
        refusal call-without-result
        fail ModelRefused: 400
    """
    rules = history.header.wire_rules if history.header is not None else "none"
    known: set[tuple[str, int, str, str]] = set()
    last: dict[int, ReadInput] = {}
    for exchange in history.exchanges:
        broken = _broken(exchange, rules, last)
        for rule, ids, text in broken:
            key = (exchange.session, exchange.fork, exchange.conversation, rule)
            if key not in known:
                known.add(key)
                call = _named(exchange, ids)
                expected = "an input that the provider takes"
                actual = f"{rule}: {text}"
                yield Failure(call=call, expected=expected, actual=actual, witness=(call.n if call else 0, exchange.n))
        if not broken and (rules != "none" or exchange.reply is not None):
            yield OK


def _broken(exchange: Exchange, rules: str, last: dict[int, ReadInput]) -> Sequence[tuple[str, Sequence[str], str]]:
    """Gives what a provider refuses; an input that repeats the one before is read on from there."""
    before = exchange.before
    read = last.pop(id(before), None) if before is not None and exchange.repeats else None
    if read is None or before is None:
        read = ReadInput().read(exchange.items)
    else:
        read.read(exchange.items, len(before.items))
    last[id(exchange)] = read
    broken = [(one.rule, one.ids, one.text) for one in broken_in(read, rules)]
    if not broken and isinstance(exchange.reply, ModelRefusal):
        return [(one["rule"], one["ids"], one["text"]) for one in exchange.reply.broken]
    return broken


def _named(exchange: Exchange, ids: Sequence[str]) -> CallSeen | None:
    return next((call for _, call in reversed(exchange.placed) if call.id in ids), None)


@check(
    "no-function-approvals-in-model-input",
    needs=("model.request",),
    sources=("dotnet/extensions#7468",),
)
def no_function_approvals_in_model_input(history: History) -> Evaluations:
    """
    Approval requests and responses about calls that the agent runs itself must not reach the model.

    They are between the agent and the person; providers know them for hosted calls only.

    Passes:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        approve c1
        go
        respond c1 yes
        hosted c1 -> cats
        done

    Fails:
        rules none
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        respond c1 yes
        run c1 -> paid 5
        done
    """
    for exchange in history.exchanges:
        found = next(_approvals(history, exchange), None) if exchange.approvals else None
        if found is None:
            yield OK
        else:
            actual = f"{found['kind']} {found.get('id')} in the model's input"
            call = next((call for call in history.calls if call.id == found.get("id")), None)
            yield Failure(call=call, expected="no approval items", actual=actual, witness=(exchange.n,))


def _approvals(history: History, exchange: Exchange) -> Iterator[Mapping[str, Any]]:
    hosted = {call.id for call in history.calls if call.kind == "hosted_mcp"}
    items = (exchange.items[index] for index in exchange.approvals)
    return (item for item in items if item.get("id") not in hosted)


@check(
    "caller-messages-kept",
    needs=("model.request", "turn.start"),
    sources=("openai/openai-agents-python#2487", "langchain-ai/langgraph#5409"),
)
def caller_messages_kept(history: History) -> Evaluations:
    """
    Every message of the caller must stand in every later input of the model, in the order in which they were sent.

    A message of a turn that failed or was refused may be missing, and what the framework trimmed. Nothing should stand
    there in the caller's name that the caller did not send.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        send Sorry
        untell c1
        tell c1 rejected
        done

    Passes, the turn was refused:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Never mind
        fail UserError: requests are pending
        approve c1
        go
        run c1 -> paid 5
        done

    Fails:
        send Pay 5
        model Done.
        finish Done.
        send Pay 6
        model Which amount?
        finish Which amount?
        drop user Pay 5
        send So?
        done

    Warns, words that the caller never said:
        send Pay 5
        user Please go on.
        model Done.
        finish Done.
    """
    complete: set[int] = set()
    for exchange in history.exchanges:
        if "/" in exchange.conversation or exchange.turn is None:
            continue
        missing = _missing_message(history, exchange, complete)
        if missing is None:
            complete.add(id(exchange))
            yield _never_said(history, exchange)
        else:
            actual = f"{missing.start.text!r} is not in the model's input"
            witness = (missing.start.n, exchange.n)
            yield Failure(expected="all messages", actual=actual, witness=witness, session=exchange.session)


def _missing_message(history: History, exchange: Exchange, complete: set[int]) -> TurnSeen | None:
    """Gives the turn whose message is missing; an input that repeats a complete one is read from where it is new."""
    before, start, until = exchange.before, 0, None
    if before is not None and exchange.repeats and id(before) in complete:
        if before.turn is exchange.turn:
            return None
        start, until = len(before.items), before.turn
    texts = [str(item.get("text") or "") for item in exchange.items[start:] if item["kind"] == "user"]
    for turn in _past(exchange.turn, until):
        if not _counts(history, turn, exchange):
            continue
        index = next((at for at, text in enumerate(texts) if (turn.start.text or "") in text), None)
        if index is None:
            return turn
        del texts[: index + 1]
    return None


def _never_said(history: History, exchange: Exchange) -> Failure | None:
    """A new message in the caller's name that holds none of the caller's own."""
    start = len(exchange.before.items) if exchange.before is not None and exchange.repeats else 0
    new = [item for item in exchange.items[start:] if item["kind"] == "user"]
    if not new:
        return OK
    session = exchange.session
    sent = [turn.start.text for turn in history.turns if turn.session == session and turn.start.n < exchange.n]
    for item in new:
        if not any(text and text in str(item.get("text") or "") for text in sent):
            actual = f"{item.get('text')!r} stands there in the caller's name"
            witness = (exchange.n,)
            return Failure(
                expected="the caller's messages", actual=actual, witness=witness, session=session, level="should"
            )
    return OK


def _past(turn: TurnSeen | None, until: TurnSeen | None) -> list[TurnSeen]:
    """Gives a turn and those before it in its line, back to *until*, the earliest first."""
    found: list[TurnSeen] = []
    while turn is not None and turn is not until:
        found.append(turn)
        turn = turn.before
    return found[::-1]


def _counts(history: History, turn: TurnSeen, exchange: Exchange) -> bool:
    """Says whether the message of a turn must stand in an input."""
    if not turn.start.text or turn.overlaps:
        return False
    if turn is not exchange.turn and turn.outcome not in ("paused", "finished"):
        return False
    return not trimmed_between(history, turn.start.n, exchange.n, turn.session)
