"""What a decision may not touch: calls that are settled, and calls that it is not about."""

from __future__ import annotations

from pytest_approvals.journal.calls import CallSeen, Given
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

from .check import OK, Evaluations, Failure, check
from .circumstances import cancelled_before, is_invalid, settled_before
from .pending import open_before


@check(
    "settled-stays-settled",
    needs=("caller.decide", "turn.end", "model.request"),
    implies=("runs-at-most-once", "result-delivered-once", "approved-runs"),
    sources=("google/adk-python#7151", "langchain-ai/langgraph#6663"),
)
def settled_stays_settled(history: History) -> Evaluations:
    """
    A decision about a call that is settled must change nothing.

    Answers come twice: a double click, a retried request, a second window. The call is not run again and its result is
    not told again or changed. An approval of a call that a new message had closed is refused visibly, since it will not
    run. That the model is asked again for nothing is a warning.

    Passes, refused loudly:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        approve c1
        go
        fail UserError: nothing is pending

    Passes, taken as done:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        approve c1
        go
        finish Done.

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 rejected
        done
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, what was given up runs:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        cancel
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, an approval of what a message had closed is ignored:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        tell c1 superseded
        send Never mind
        done
        approve c1
        go
        finish Done.

    Warns, the model is asked again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        approve c1
        go
        done
    """
    for call in history.calls:
        for given in call.decisions:
            settled = settled_before(call, given) or cancelled_before(history, call, given)
            if settled is None or given.turn is None or is_invalid(given):
                continue
            yield _changed(call, given, settled) or _asked_for_nothing(call, given, settled)


def _changed(call: CallSeen, given: Given, settled: int) -> Failure | None:
    turn, taken = given.turn, given.taken or 0
    assert turn is not None
    run = next((run for run in call.runs if run.turn is turn and run.n > taken), None)
    told = next((told for told in call.told if told.n > taken and (call.told[0] is not told)), None)
    expected = f"nothing: it was settled at {settled}"
    if run is not None:
        return Failure(call=call, expected=expected, actual="it runs", witness=(settled, given.n, run.n))
    if told is not None:
        actual = f"the model is told {told.text!r}"
        return Failure(call=call, expected=expected, actual=actual, witness=(settled, given.n, told.n))
    closed_by_message = not call.runs and all(other is given or other.refused for other in call.decisions)
    if given.approves and closed_by_message and not turn.failed:
        actual = "the approval is taken without a sound, and nothing runs"
        return Failure(call=call, expected="it is refused", actual=actual, witness=(settled, given.n, turn.ended))
    return OK


def _asked_for_nothing(call: CallSeen, given: Given, settled: int) -> Failure | None:
    turn = given.turn
    if turn is None or turn.start.text is not None or not turn.exchanges:
        return OK
    if turn.before is not None and turn.before.failed:
        return OK
    if any(other.call is None or settled_before(other.call, other) is None for other in turn.decisions):
        return OK
    asked = turn.exchanges[0].n
    actual = "the model is asked again"
    expected = "no question to the model"
    return Failure(call=call, expected=expected, actual=actual, witness=(settled, given.n, asked), level="should")


@check(
    "unanswered-stays-pending",
    needs=("caller.decide", "turn.end"),
    implies=("result-delivered-once", "model-input-well-formed", "asked-once", "nothing-left-pending"),
    sources=("microsoft/agent-framework#5654", "vercel/ai#15947"),
)
def unanswered_stays_pending(history: History) -> Evaluations:
    """
    A request that the caller did not answer must stay pending while the caller only answers others or goes on.

    Nobody said yes or no. A new message may close it; then a later answer is refused.

    Passes:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        run c1 -> paid 5
        pause c2
        reject c2
        go
        tell c2 rejected
        done

    Passes, an incomplete answer is refused:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        fail UserError: c2 is not answered
        approve c1
        reject c2
        go
        run c1 -> paid 5
        tell c2 rejected
        done

    Fails:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        run c1 -> paid 5
        tell c2 interrupted
        done
    """
    for turn in history.turns:
        if turn.start.text is not None or turn.overlaps or turn.outcome in ("timeout", "open"):
            continue
        pending = open_before(history, turn)
        if pending is None or not pending.calls:
            continue
        answered = {given.call.label for given in turn.decisions if given.call is not None}
        for call in pending.calls:
            if call.label not in answered:
                yield from _unanswered(history, turn, call, pending.n)


def _unanswered(history: History, turn: TurnSeen, call: CallSeen, asked: int) -> Evaluations:
    if call.fork != turn.fork:
        call = next((each for each in history.calls_of(call.label, call.session) if each.fork == turn.fork), call)
    end = turn.ended
    if (call.decisions or call.standing) and call.decision_at(end) is not None:
        return
    if turn.failed or any(each.listed[-1][0] >= end for each in call.asked):
        yield OK
        return
    ran = next((run.n for run in call.runs if run.n > asked), None)
    what = "it runs" if ran is not None else "it is gone"
    yield Failure(call=call, expected="it stays pending", actual=what, witness=(asked, turn.start.n, ran or end))
