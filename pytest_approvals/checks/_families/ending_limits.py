"""Family `ending`: a turn keeps the limits that the application set."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.history import History, RecordedCall, RecordedTurn

_MAIN = "main"
"""The conversation that a limit is about; whether what agents inside do counts, too, differs."""


@check(
    "limits-kept",
    severity="unapproved-effect",
    needs=("tool.start", "turn.end"),
    sources=("agno-agi/agno#7962",),
)
def limits_kept(history: History) -> Evaluations:
    """A turn must not run more calls, nor ask its model more often, than the limit that the application set.

    A limit is what stops an agent that goes round in circles, and an approval is no leave to go beyond it: approved
    calls count as all others do. Each turn counts anew, also one that goes on after a pause, and a call counts in the
    turn in which the model made it, or in that in which it runs. What agents do that a call runs, and what the provider
    runs, need not count. A framework that looks at its limit between the replies of
    the model lets the calls of one reply go beyond it together, which is a warning.

    Passes:
        limits tool_calls=1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, the next turn counts anew:
        limits tool_calls=1
        send Read
        model c1 read(path=a)
        run c1 -> text
        done
        send Read on
        model c2 read(path=b)
        run c2 -> text
        done

    Passes, the approved call counted in the turn before:
        limits tool_calls=1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        model c2 read(path=a)
        run c2 -> text
        done

    Fails, the call of the next reply runs, too:
        limits tool_calls=1
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        model c2 read(path=a)
        run c2 -> text
        model c3 read(path=b)
        run c3 -> text
        done

    Fails, the model is asked again after its last reply:
        limits model_replies=1
        send Read
        model c1 read(path=a)
        run c1 -> text
        done

    Warns, two calls of one reply run where one may:
        limits tool_calls=1
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done
    """
    limits = (history.header.limits if history.header is not None else None) or {}
    for turn in history.turns:
        # Which of two turns at once did something is not always seen.
        if turn.overlaps:
            continue
        if "tool_calls" in limits:
            yield _count_calls(turn, limits["tool_calls"])
        if "model_replies" in limits:
            yield _count_replies(turn, limits["model_replies"])


def _count_calls(turn: RecordedTurn, limit: int) -> Failure | None:
    """Compare the calls that ran in a turn with the limit; a call that ran again in it counts once."""
    calls = list({id(call): call for call in _list_calls(turn)}.values())
    over: list[RecordedCall] = []
    later: list[RecordedCall] = []
    # An agent may count a call in the turn in which the model made it, and not in the one in which it runs.
    for _, group in groupby(calls, key=_turn_of_reply):
        made = list(group)
        over += made[limit:]
        later += [call for call in made[limit:] if call.n not in {other.n for other in made[:limit]}]
    if not over:
        return OK
    too_many = [*later, *over][0]
    return Failure(
        call=too_many,
        expected=f"the limit of {limit} tool calls in a turn",
        actual=f"{len(calls)} run",
        witness=(turn.start.n, too_many.executions[-1].n),
        level=None if later else "should",
    )


def _list_calls(turn: RecordedTurn) -> Iterator[RecordedCall]:
    """Yield the calls of the main conversation that ran in a turn, as often as they did."""
    for execution in turn.executions:
        # A call that runs an agent has no execution of its own.
        is_seen = execution.start is not None and execution.by == "agent"
        if is_seen and execution.call is not None and execution.call.conversation == _MAIN:
            yield execution.call


def _turn_of_reply(call: RecordedCall) -> int:
    return call.turn.number if call.turn is not None else 0


def _count_replies(turn: RecordedTurn, limit: int) -> Failure | None:
    """Compare the replies that a turn got from the model of the main conversation with the limit."""
    replies = [one.n for one in turn.exchanges if one.conversation == _MAIN and one.answer is not None]
    if len(replies) <= limit:
        return OK
    expected, witness = f"the limit of {limit} replies in a turn", (turn.start.n, replies[limit])
    return Failure(expected=expected, actual=f"there are {len(replies)}", witness=witness, session=turn.session)
