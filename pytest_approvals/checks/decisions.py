"""What a decision may do: nothing if it is none, nothing once the call is settled, and nothing to other calls."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.journal.calls import CallSeen, Execution, Given, Told
from pytest_approvals.journal.history import History
from pytest_approvals.journal.reached import is_malformed
from pytest_approvals.journal.turns import TurnSeen

from .check import OK, Evaluations, Failure, check, described
from .circumstances import contradicted, is_invalid


@check(
    "invalid-decision-refused",
    needs=("caller.decide", "turn.end", "tool.start"),
    implies=("approval-before-execution", "only-model-calls-run", "unanswered-stays-pending", "every-gated-call-asked"),
    sources=("pydantic/pydantic-ai#8060", "pydantic/pydantic-ai#6922", "langchain-ai/langgraph#8836"),
)
def invalid_decision_refused(history: History) -> Evaluations:
    """
    A decision that names no request, or is no decision, must make nothing run and lose nothing.

    A missing value, a truthy text or an id that nobody gave are mistakes of a client, not a person's consent. Closing
    the call as rejected is accepted. That the caller is not told of the mistake is a warning.

    Passes, refused loudly:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        raw c1 "yes"
        go
        fail TypeError: no decision
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, an unknown request:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve ?q99
        go
        fail KeyError: q99
        end left: c1

    Fails, it runs:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        raw c1 "yes"
        go
        run c1 -> paid 5
        done

    Fails, its text becomes the result:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        raw c1 "paid 5"
        go
        tell c1 paid 5
        done

    Fails, an unknown request lets something run:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve ?q99
        go
        run c1 -> paid 5
        done

    Warns, ignored without a sound:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve ?q99
        go
        pause c1
        end left
    """
    for given in history.decisions:
        turn = given.turn
        if not is_invalid(given) or given.lost or turn is None or turn.outcome in ("open", "timeout"):
            continue
        ran = next(_ran_unapproved(turn), None)
        what = "an answer that is no decision" if is_malformed(given) else "a decision about nothing that was asked"
        if ran is not None:
            expected, actual = "nothing runs", f"{described(ran.call) if ran.call else ran.tool} runs after {what}"
            yield Failure(call=ran.call, expected=expected, actual=actual, witness=(given.n, ran.n))
        elif turn.failed:
            yield OK
        elif (told := _told_as_result(given, turn)) is not None:
            actual = f"the model is told {told.text!r} as its result"
            yield Failure(call=given.call, expected="it stays pending", actual=actual, witness=(given.n, told.n))
        elif given.call is not None and not _is_kept(given.call, turn):
            actual = f"it is gone after {what}"
            yield Failure(call=given.call, expected="it stays pending", actual=actual, witness=(given.n, turn.ended))
        else:
            yield Failure(
                call=given.call,
                expected="the caller is told",
                actual=f"{what} is taken without a sound",
                witness=(given.n, turn.ended),
                level="should",
            )


def _ran_unapproved(turn: TurnSeen) -> Iterator[Execution]:
    for run in turn.executions:
        call = run.call
        if call is None:
            yield run
        elif call.gated_at(run.n) or call.asked:
            decided = call.decision_at(run.n)
            if decided is None or not (decided.approves or decided.rejects):
                yield run


def _told_as_result(given: Given, turn: TurnSeen) -> Told | None:
    """Where the model is told, in that turn, the very text that stood in place of a decision."""
    raw = given.event.raw
    text = raw.get("verdict") if isinstance(raw, dict) else None
    if given.call is None or not isinstance(text, str):
        return None
    told_now = (told for told in given.call.told if given.n < told.n < turn.ended)
    return next((told for told in told_now if told.text == text), None)


def _is_kept(call: CallSeen, turn: TurnSeen) -> bool:
    """Whether it is still pending, closed by a message, or closed as rejected."""
    return turn.start.text is not None or call.listed_at(turn.ended) or bool(call.told) or bool(call.responses)


@check(
    "contradiction-not-executed",
    needs=("caller.decide", "tool.start"),
    implies=("rejected-never-runs", "rejection-told", "reason-told"),
    sources=("langchain-ai/langgraph#7256", "openai/openai-agents-python#4429"),
)
def contradiction_not_executed(history: History) -> Evaluations:
    """
    A call that one submission both approves and rejects must not run.

    Of two answers that contradict each other the careful one counts, if the submission is not refused. Decisions that
    were put into the state one after the other are no contradiction: the last one stands.

    Passes, refused loudly:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        reject c1
        go
        fail UserError: two answers
        end left: c1

    Passes, closed as rejected:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        reject c1
        go
        tell c1 rejected
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        approve c1
        go
        run c1 -> paid 5
        done
    """
    for call in history.calls:
        given = next((given for given in call.decisions if contradicted(given) and given.turn is not None), None)
        if given is None:
            continue
        run = next((run for run in call.runs if run.turn is given.turn and run.n > (given.taken or 0)), None)
        if run is None:
            yield OK
        else:
            both = [other.n for other in call.decisions if other.taken == given.taken]
            yield Failure(call=call, expected="no run", actual="it runs", witness=(*both, run.n))
