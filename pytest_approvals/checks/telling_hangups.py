"""What the model is told when a caller has hung up: no call is lost without a word."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.journal.calls import CallSeen
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import Exchange, TurnSeen

from .check import OK, Evaluations, Failure, Level, check
from .circumstances import of_fork, trimmed_between
from .telling import following


@check(
    "cancelled-calls-told",
    needs=("model.request", "caller.hang_up", "tool.start"),
    sources=("langchain-ai/langgraph#6726", "microsoft/agent-framework#2889", "agno-agi/agno#8290"),
)
def cancelled_calls_told(history: History) -> Evaluations:
    """
    A call that was approved or had begun when its caller hung up must be told to the model, or be asked about again.

    A turn that is cancelled has had effects all the same. A model that knows neither of the call nor of its result says
    that nothing happened, or does it again; and a person who said yes believes that it was done. In which words it is
    told, that it may have been done, say, is the agent's own business. That a call is forgotten which nobody had to
    approve is a warning.

    Passes, it is told that the call was cut short:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1 cancelled
        send Is it paid?
        done

    Passes, it is asked about again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        go
        pause c1
        reject c1
        go
        tell c1 rejected
        done

    Passes, it had run, and its result is told:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        hangup
        send Is it paid?
        done

    Fails, the whole turn is forgotten:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        forget c1
        send Is it paid?
        done

    Warns, a call that needs no approval is forgotten:
        send Go
        model c1 read(path=a)
        start c1
        hangup c1
        forget c1
        send Again
        done

    Fails, what has run is forgotten:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        hangup
        forget c1
        send Is it paid?
        done
    """
    for turn in history.turns:
        for call in _cut_short(history, turn):
            after = next(following(history, call, turn.ended), None)
            if after is None or trimmed_between(history, call.n, after.n, call.session):
                continue
            if _is_accounted_for(call, turn, after):
                yield OK
            else:
                actual = "neither call nor result in the model's input, and nobody is asked again"
                witness = (turn.hung_up or 0, after.n)
                level: Level | None = None if call.gated or call.asked else "should"
                yield Failure(
                    call=call, expected="the model is told of it", actual=actual, witness=witness, level=level
                )


def _cut_short(history: History, turn: TurnSeen) -> Iterator[CallSeen]:
    """Gives the calls that were approved, or had begun, in a turn in which the caller hung up."""
    if turn.hung_up is None:
        return
    approved = {id(given.call) for given in turn.decisions if given.approves}
    for call in history.calls:
        begun = any(run.turn is turn and run.n < turn.hung_up for run in call.runs)
        if of_fork(turn, call) and call.kind != "hosted_mcp" and (begun or id(call) in approved):
            yield call


def _is_accounted_for(call: CallSeen, turn: TurnSeen, after: Exchange) -> bool:
    if any(placed is call for _, placed in after.placed) or any(told.n >= after.n for told in call.told):
        return True
    return call.asked_between(turn.ended, after.n) or any(turn.ended < run.n < after.n for run in call.runs)
