"""What runs, and how often: what needs no approval once, what was approved at most once."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.journal.calls import CallSeen, Execution, Given
from pytest_approvals.journal.history import History

from .check import OK, Evaluations, Failure, check
from .circumstances import cannot_run, waits_for_siblings, was_dropped


@check(
    "runs-at-most-once",
    needs=("tool.start", "tool.end"),
    implies=("result-delivered-once",),
    sources=("google/adk-python#7151", "langchain-ai/langgraph#6663"),
)
def runs_at_most_once(history: History) -> Evaluations:
    """
    An approved call must not run more than once.

    A call whose execution returned is not executed again; one that raised or was cancelled, only after a new approval.
    That two forks of one save both ran a call is only a warning, since who keeps no state cannot know of the other;
    that one live session or one durable store ran it twice is a failure.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, it raised and was approved again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 !! no connection
        fail ToolRaised: no connection
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, after a restore:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        run c1 -> paid 5
        pause c2
        save
        restore
        approve c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Fails, its caller hung up while it ran:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        go
        run c1 -> paid 5
        done

    Fails, one durable store answered twice:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        save
        restore a
        approve c1
        go
        run c1 -> paid 5
        done

    Warns, two forks of one save:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        save
        restore a
        approve c1
        go
        run c1 -> paid 5
        done
    """
    for call in history.calls:
        if not call.runs or not (call.gated or call.asked):
            continue
        again = next(_unasked_again(call), None)
        if again is None:
            yield OK
            continue
        first, second, why = again
        yield Failure(call=call, expected="1 run", actual=why, witness=(first.n, first.ended or 0, second.n))
    if len(history.forks) > len(history.sessions):
        yield from _run_in_two_forks(history)


_ENDED = {"raised": "raised", "cancelled": "was cancelled"}


def _unasked_again(call: CallSeen) -> Iterator[tuple[Execution, Execution, str]]:
    """Gives the runs that follow another one without a new approval."""
    for first, second in zip(call.runs, call.runs[1:], strict=False):
        if first.how in ("raised", "asked", "cancelled"):
            ended = first.ended or first.n
            approved = any(given.approves and given.in_force(second.n) for given in _after(call, ended))
            if not approved and first.how != "asked":
                yield first, second, f"it runs again after it {_ENDED[first.how]}, and was not approved again"
        elif first.how == "returned" and (first.ended or 0) < second.n:
            yield first, second, f"{len(call.runs)} runs"
        else:
            yield first, second, "it starts again while it runs"


def _after(call: CallSeen, n: int) -> Iterator[Given]:
    return (given for given in call.decisions if given.taken is not None and given.taken > n)


def _run_in_two_forks(history: History) -> Evaluations:
    durable = {fork.session for fork in history.forks if fork.mode.startswith("native.")}
    seen: dict[tuple[str, str, int], Execution] = {}
    for call in history.calls:
        for run in call.runs:
            if run.how != "returned" or run.fork != call.fork:
                continue
            first = seen.setdefault((call.session, call.label, call.n), run)
            if first.fork == run.fork:
                continue
            yield Failure(
                call=call,
                expected="1 run",
                actual="a run in each of two histories that began with the same save",
                witness=(first.n, run.n),
                level="must" if call.session in durable else "should",
            )


@check(
    "ungated-runs-once",
    needs=("tool.start", "tool.end", "turn.end"),
    implies=("result-delivered-once",),
    sources=("langchain-ai/langgraph#7561",),
)
def ungated_runs_once(history: History) -> Evaluations:
    """
    A call that needs no approval must run once, whatever becomes of its siblings.

    It may wait until its siblings were answered. It need not run where the turn fails visibly, where the tool is gone
    or the arguments do not fit, or where a new message or a cancellation closed the whole reply. One that raised may
    run again when the turn failed.

    Passes:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text
        pause c1
        reject c1
        go
        tell c1 rejected
        done

    Passes, it waits for its sibling:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        pause c1
        reject c1
        go
        tell c1 rejected
        run c2 -> text
        done

    Fails, it never runs:
        send Read a
        model c1 read(path=a)
        tell c1 skipped
        done

    Fails, it runs again when its sibling is answered:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text
        pause c1
        approve c1
        go
        run c2 -> text
        run c1 -> paid 5
        done
    """
    for call in history.calls:
        if call.declared is None or call.gated or call.asked:
            continue
        if call.runs:
            yield _more_than_once(call)
        elif not _need_not_run(history, call):
            witness = (call.n, *(told.n for told in call.told[:1]))
            yield Failure(call=call, expected="1 run", actual="no run", witness=witness)


def _need_not_run(history: History, call: CallSeen) -> bool:
    if call.turn is None or call.turn.outcome in ("failed", "timeout", "open"):
        return True
    return cannot_run(history, call, None) or waits_for_siblings(history, call) or was_dropped(history, call)


def _more_than_once(call: CallSeen) -> Failure | None:
    for first, second in zip(call.runs, call.runs[1:], strict=False):
        failed = first.turn is not None and first.turn.failed
        if first.how == "asked" or (first.how != "returned" and failed):
            continue
        return Failure(
            call=call, expected="1 run", actual=f"{len(call.runs)} runs", witness=(first.n, first.ended or 0, second.n)
        )
    return None
