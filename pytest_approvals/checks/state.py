"""What lives through the time between two turns: what is pending, what was decided, and what a stream shows of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_approvals.journal.calls import CallSeen, Given
from pytest_approvals.journal.events import AgentStart, Restored
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import RestoreSeen, SaveSeen

from .check import OK, Evaluations, Failure, check
from .circumstances import cannot_run, rewritten_between
from .pending import Open, open_after


@check(
    "pending-survives",
    needs=("turn.end", "store.save", "store.restore"),
    implies=(
        "approved-runs",
        "asked-once",
        "unanswered-stays-pending",
        "result-delivered-once",
        "model-input-well-formed",
        "nothing-left-pending",
        "usable-after-refusal",
    ),
    sources=("pydantic/pydantic-ai#4830", "openai/openai-agents-python#2487"),
)
def pending_survives(history: History) -> Evaluations:
    """
    What is pending when the state is saved must be pending when it is taken up again, and nothing else.

    A request that is lost on the way can never be answered; one that was settled must not come back. A state that
    cannot be saved or taken up while requests are pending loses them, too, unless the tools are not the same any more,
    or somebody changed what was saved.

    Passes:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save
        restore
        reject c1
        reject c2
        go
        tell c1 no
        tell c2 no
        done

    Fails:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        save
        restore save-1: c2
        end left

    Fails, a settled one comes back:
        send Pay
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        save
        restore save-1: c1
        end left
    """
    for save in history.saves:
        if save.event.error is not None:
            yield from _unsaved(history, save)
    for restore in history.restores:
        save_taken = restore.save
        if save_taken is not None:
            yield from _restored(history, save_taken, restore)


def _unsaved(history: History, save: SaveSeen) -> Evaluations:
    pending = open_after(history, save.turn, save.event.n)
    if pending is not None and pending.calls:
        actual = f"saving fails: {_error(save.event.error)}"
        expected = f"the state is saved with {len(pending.calls)} pending"
        yield Failure(call=pending.calls[0], expected=expected, actual=actual, witness=(pending.n, save.event.n))


def _restored(history: History, save: SaveSeen, restore: RestoreSeen) -> Evaluations:
    pending = open_after(history, save.turn, save.event.n)
    if pending is None:
        return
    witness = (pending.n, save.event.n, restore.event.n)
    expected = "it is pending after the restore"
    if restore.event.error is not None:
        if pending.calls and not _differs(history, save, restore):
            actual = f"taking it up fails: {_error(restore.event.error)}"
            yield Failure(call=pending.calls[0], expected=expected, actual=actual, witness=witness)
        return
    listed = {call.label for call in restore.listed}
    for call in pending.calls:
        if call.label in listed or any(given.staged and not given.lost for given in call.decisions):
            yield OK
        elif restore.event.mode.startswith("native.") and _is_decided(history, call, restore.event.n):
            continue
        else:
            actual = "it is not listed after the restore"
            yield Failure(call=call, expected=expected, actual=actual, witness=witness)
    yield from _come_back(pending, save, restore)


def _is_decided(history: History, call: CallSeen, n: int) -> bool:
    """Whether the call was decided in any fork, which a durable store knows of whatever is taken up."""
    return any(other.decision_at(n) is not None for other in history.calls_of(call.label, call.session))


def _come_back(pending: Open, save: SaveSeen, restore: RestoreSeen) -> Evaluations:
    before = {call.label for call in pending.calls}
    for call in restore.listed:
        if call.label not in before and _is_settled(call, save.event.n):
            expected, actual = "nothing that is settled is pending", "it is pending after the restore"
            witness = (pending.n, save.event.n, restore.event.n)
            yield Failure(call=call, expected=expected, actual=actual, witness=witness)
    yield OK


def _is_settled(call: CallSeen, n: int) -> bool:
    """Whether it ran or the model was told of it before position *n*."""
    returned = any(run.how == "returned" and (run.ended or 0) < n for run in call.runs)
    return returned or any(told.n < n for told in call.told)


def _differs(history: History, save: SaveSeen, restore: RestoreSeen) -> bool:
    """Says whether the tools are others, or the save, than when it was saved."""
    session = save.event.session
    if rewritten_between(history, save.event.n, restore.event.n, session):
        return True
    before, after = history.build_at(save.event.n, session), history.build_at(restore.event.n, session)
    return before is not None and after is not None and _tools(before) != _tools(after)


def _tools(build: AgentStart) -> tuple[set[str], object]:
    return set(build.tools), build.parameters


def _error(error: Sequence[str] | None) -> str:
    return ": ".join(error or ())


@check(
    "decision-survives",
    needs=("caller.stage", "store.restore", "turn.end", "tool.start"),
    implies=("approved-runs", "asked-once", "rejection-told", "reason-told", "unanswered-stays-pending", "run-ends"),
    sources=("openai/openai-agents-python#2487", "openai/openai-agents-python#4413"),
)
def decision_survives(history: History) -> Evaluations:
    """
    A decision that was put into the state must have its effect after the state was saved and taken up again.

    The person answered, and left; nobody asks them whether the answer arrived.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save
        restore
        go
        run c1 -> paid 5
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        stage
        save
        restore
        go
        pause c1
        end left

    Fails, a rejection:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        stage
        save
        restore
        go
        pause c1
        end left
    """
    for call, given, restored in _staged(history):
        turn = given.turn
        if turn is None or turn.end is None or turn.outcome in ("failed", "timeout"):
            continue
        listed = call.listed_at(turn.end.n)
        ran = any(run.n > turn.start.n for run in call.runs)
        if listed:
            actual = "it is asked about again"
        elif given.approves and not ran and not cannot_run(history, call, given):
            actual = "it does not run"
        elif given.rejects and ran:
            actual = "it runs"
        else:
            yield OK
            continue
        witness = (given.n, restored.n, turn.end.n)
        yield Failure(call=call, expected=f"the decision to {given.verdict} counts", actual=actual, witness=witness)


def _staged(history: History) -> Iterator[tuple[CallSeen, Given, Restored]]:
    """Gives the last staged decision about each call that went through a save, with the restore."""
    restores = [restore.event for restore in history.restores if restore.event.error is None]
    for call in history.calls if restores else ():
        for given in call.decisions[::-1]:
            if not given.staged or given.lost or not (given.approves or given.rejects) or given.turn is None:
                continue
            taken, start = given.taken or 0, given.turn.start.n
            found = next((event for event in restores if taken < event.n < start), None)
            if found is not None:
                yield call, given, found
            break


@check(
    "round-trip-stable",
    level="should",
    needs=("store.save", "store.restore"),
    sources=("pydantic/pydantic-ai#4830",),
)
def round_trip_stable(history: History) -> Evaluations:
    """
    A state that is taken up and saved at once should be the state that was saved.

    What differs was not restored, or grows with every restart.

    Passes:
        send Hello
        done
        save
        digest abc
        restore
        again abc

    Warns:
        send Hello
        done
        save
        digest abc
        restore
        again abd
    """
    for restore in history.restores:
        save, again = restore.save, restore.event.again
        if save is None or save.event.digest is None or again is None:
            continue
        if save.event.digest == again:
            yield OK
        elif not _differs(history, save, restore):
            expected, session = f"the digest {save.event.digest}", save.event.session
            witness = (save.event.n, restore.event.n)
            yield Failure(expected=expected, actual=again, witness=witness, session=session)
