"""What the model is told of each call: its result, once, or that a person said no."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.journal.calls import CallSeen, Given
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import Exchange

from .check import OK, Evaluations, Failure, check
from .circumstances import trimmed_between


@check(
    "result-delivered-once",
    needs=("model.request", "tool.end"),
    implies=("model-input-well-formed", "rejection-told"),
    sources=("microsoft/agent-framework#7267", "agno-agi/agno#10461", "pydantic/pydantic-ai#6319"),
)
def result_delivered_once(history: History) -> Evaluations:
    """
    Each call that the model is shown must have exactly one result there, and the result of what ran must be told.

    A model that is not told what it did does it again. Where the turn failed before the call was taken over into the
    history, it may be missing there with its result; so may what the framework trimmed. An agent that a conversation
    was handed over to may be told in words what the calls of the agent before it came to.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, a sub-agent that is given up for a new message:
        tool delegate(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay 5
        model o1 delegate(input=Pay 5)
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        tell o1 not executed
        send Never mind
        done
        send Goodbye
        done

    Fails, a call without its result:
        send Go
        model c1 read(path=a)
        run c1 -> text
        untell c1
        done

    Fails, two results:
        send Go
        model c1 read(path=a)
        run c1 -> text
        tell c1 text
        done

    Fails, a result that is lost with its call:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text
        pause c1
        forget c2
        forget c1
        send Never mind
        done
    """
    dangling = _dangling(history)
    for call in history.calls:
        if not call.told and not call.runs and id(call) not in dangling:
            continue
        second = next((told for told in call.told if told.second), None)
        lost = _lost(history, call)
        if second is not None:
            first = call.told[0]
            yield Failure(call=call, expected="1 result", actual="2 results", witness=(first.n, second.n))
        elif id(call) in dangling:
            actual = "none in the model's input"
            yield Failure(call=call, expected="1 result", actual=actual, witness=(call.n, dangling[id(call)].n))
        elif lost is not None:
            run, exchange = lost
            actual = "neither call nor result in the model's input"
            yield Failure(call=call, expected="1 result", actual=actual, witness=(run, exchange.n))
        else:
            yield OK


def _dangling(history: History) -> dict[int, Exchange]:
    """Gives the first input in which each call stands without a result."""
    found: dict[int, Exchange] = {}
    for exchange in history.exchanges:
        for call in exchange.unanswered:
            found.setdefault(id(call), exchange)
    return found


def _lost(history: History, call: CallSeen) -> tuple[int, Exchange] | None:
    """Gives the run and the next input of the model in which the call does not stand at all."""
    run = call.returned
    if run is None or run.ended is None or call.kind == "hosted_mcp" or any(told.n >= run.ended for told in call.told):
        return None
    after = next(following(history, call, run.ended), None)
    if after is None or (run.turn is not None and run.turn.failed):
        return None
    if trimmed_between(history, call.n, after.n, call.session) or after.reply is None:
        return None
    if after.agent != call.agent and _is_handed_on(call, after):
        return None
    return run.n, after


def _is_handed_on(call: CallSeen, exchange: Exchange) -> bool:
    """
    Whether the agent that a conversation was handed over to is told of a call in words, or need not be: it knows that
    it was handed over.
    """
    if call.declared is not None and call.declared.hands_over_to is not None:
        return True
    run = call.returned
    text = run.end.result if run is not None and run.end is not None else None
    return isinstance(text, str) and any(text in (item.get("text") or "") for item in exchange.items)


def following(history: History, call: CallSeen, n: int) -> Iterator[Exchange]:
    """Gives the exchanges of a call's conversation, in its fork, after position *n*."""
    where = (call.conversation, call.session, call.fork)
    for exchange in history.exchanges:
        if exchange.n > n and (exchange.conversation, exchange.session, exchange.fork) == where:
            yield exchange


@check(
    "rejection-told",
    needs=("model.request", "caller.decide"),
    implies=("reason-told", "model-input-well-formed"),
    sources=("microsoft/autogen#7956", "openai/openai-agents-python#4409"),
)
def rejection_told(history: History) -> Evaluations:
    """
    The model must be told that a call was rejected, when it is asked next.

    It waits for an answer to its call; without one it cannot go on, or believes that the call succeeded.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 The call was denied.
        done

    Passes, a hosted call:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        reject c1
        go
        respond c1 no
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        forget c1
        done
    """
    for call, given, exchange in _rejected(history):
        if call.kind == "hosted_mcp":
            told = any(n <= exchange.n and not approved for n, approved in call.responses if n > (given.taken or 0))
        else:
            told = any(told.n <= exchange.n and (told.text or "").strip() for told in call.told)
            told = told or (given.event.reason == "" and bool(call.told))
        if told:
            yield OK
        else:
            actual = "it is told nothing about it" if not call.told else "it is told an empty text"
            expected = "the model is told of the rejection"
            yield Failure(call=call, expected=expected, actual=actual, witness=(given.n, exchange.n))


def _rejected(history: History) -> Iterator[tuple[CallSeen, Given, Exchange]]:
    """Gives rejected calls with the rejection and the next question to their model."""
    for call in history.calls:
        given = call.decision
        if given is None or not given.rejects or given.taken is None or call.returned is not None:
            continue
        exchange = next(following(history, call, max(given.taken, call.n)), None)
        if exchange is None or trimmed_between(history, given.taken, exchange.n, call.session):
            continue
        if given.turn is not None and not given.turn.failed:
            yield call, given, exchange


@check(
    "reason-told",
    level="should",
    needs=("model.request", "caller.decide"),
    sources=("microsoft/autogen#7387", "openai/openai-agents-python#4409"),
)
def reason_told(history: History) -> Evaluations:
    """
    The model should be told the reason that the person gave.

    With it, it can do better; without it, it tries again.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied: over the limit
        done

    Warns:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied
        done
    """
    for call, given, exchange in _rejected(history):
        reason = given.event.reason
        if not reason or call.kind == "hosted_mcp":
            continue
        texts = [told.text or "" for told in call.told if told.n <= exchange.n]
        if any(_plain(reason) in _plain(text) for text in texts):
            yield OK
        elif texts:
            witness = (given.n, exchange.n)
            yield Failure(call=call, expected=f"{reason!r} in what it is told", actual=repr(texts[-1]), witness=witness)


def _plain(text: str) -> str:
    return " ".join(text.split())
