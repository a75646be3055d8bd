"""Family `ending`: a turn keeps the limits that the application set."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.history import Execution, History, RecordedTurn

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
    limits = history.header.limits if history.header is not None else None
    if not limits:
        return
    for turn in history.turns:
        # Which of two turns at once did something is not always seen.
        if turn.overlaps:
            continue
        yield from _count_calls(turn, limits.get("tool_calls"))
        yield from _count_replies(turn, limits.get("model_replies"))


def _count_calls(turn: RecordedTurn, limit: int | None) -> Iterator[Failure | None]:
    """Compare the calls that ran in a turn with the limit; a call that ran again in it counts once."""
    runs = _first_runs(turn)
    if limit is None or len(runs) <= limit:
        yield OK
        return
    # An agent may count a call in the turn in which the model made it, and not in the one in which it ran.
    counted: dict[int, list[Execution]] = {}
    over: list[Execution] = []
    later: list[Execution] = []
    for run in runs:
        before = counted.setdefault(_turn_of_reply(run, turn), [])
        if len(before) >= limit:
            over.append(run)
            last = before[limit - 1] if limit else None
            later += [] if last is not None and _are_of_one_reply(last, run) else [run]
        before.append(run)
    if not over:
        yield OK
        return
    too_many = (later or over)[0]
    yield Failure(
        call=too_many.call,
        expected=f"at most {limit} {'call runs' if limit == 1 else 'calls run'} in the turn",
        actual=f"there are {len(runs)}",
        witness=(turn.start.n, too_many.n),
        session=turn.session,
        level=None if later else "should",
    )


def _turn_of_reply(run: Execution, turn: RecordedTurn) -> int:
    return run.call.turn.number if run.call is not None and run.call.turn is not None else turn.number


def _are_of_one_reply(first: Execution, second: Execution) -> bool:
    return first.call is not None and second.call is not None and first.call.n == second.call.n


def _first_runs(turn: RecordedTurn) -> list[Execution]:
    """Return the first run of each call of the main conversation in a turn."""
    first: dict[int, Execution] = {}
    for execution in filter(_counts, turn.executions):
        first.setdefault(id(execution.call) if execution.call is not None else -execution.n, execution)
    return list(first.values())


def _counts(execution: Execution) -> bool:
    is_seen = execution.by == "agent" and execution.start is not None
    return is_seen and (execution.call is None or execution.call.conversation == _MAIN)


def _count_replies(turn: RecordedTurn, limit: int | None) -> Iterator[Failure | None]:
    """Compare the replies that a turn got from the model of the main conversation with the limit."""
    replies = [one.n for one in turn.exchanges if one.conversation == _MAIN and one.answer is not None]
    if limit is None or len(replies) <= limit:
        yield OK
        return
    expected = f"the model replies at most {'once' if limit == 1 else f'{limit} times'} in the turn"
    witness = (turn.start.n, replies[limit])
    actual = f"it replies {len(replies)} times"
    yield Failure(expected=expected, actual=actual, witness=witness, session=turn.session)
