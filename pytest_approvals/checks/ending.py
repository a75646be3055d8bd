"""How it ends: at all, with nothing left open, and so that the session can go on."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.journal.events import ModelExhausted, ModelFailure, Stuck
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

from .check import OK, Evaluations, Failure, check
from .circumstances import cannot_run, contradicted, is_invalid, same_line, settled_before
from .pending import open_before


@check(
    "run-ends",
    needs=("turn.end", "run.end"),
    implies=("nothing-left-pending",),
    sources=("microsoft/autogen#7956", "openai/openai-agents-python#2487"),
)
def run_ends(history: History) -> Evaluations:
    """
    A run must come to its end: no turn hangs, the model is not asked for ever, and answers move it on.

    A loop that asks the same question costs money until somebody looks. And what a turn gives in the end should be what
    its model said last: whoever reads the output has not seen anything else.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, a turn hangs:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        timeout
        end timeout

    Fails, it waits for an answer, and nobody was asked:
        send Pay 5
        model c1 pay(amount=5)
        pause
        end completed

    Fails, answers change nothing:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        pause c1
        stuck
        end completed: c1

    Warns, an output that the model did not give:
        send Hello
        model Hello.
        finish Goodbye.
    """
    end = history.end
    if end is None:
        last = history.events[-1].n if history.events else 0
        yield Failure(expected="the run ends", actual="the journal ends before", witness=(last,), status="unknown")
        return
    if end.how in ("interrupted", "broken"):
        return
    hanging = next((turn for turn in history.turns if turn.outcome == "timeout"), None)
    endless = next(_endless(history), None)
    stuck = next(_stuck(history), None)
    mute = next((turn for turn in _last_turns(history) if turn.outcome == "paused" and not turn.requests), None)
    if end.how == "timeout" or hanging is not None:
        start = hanging.start.n if hanging is not None else 0
        yield Failure(expected="the run ends", actual="it took too long", witness=(start, end.n))
    elif endless is not None:
        actual = f"the model was asked {endless.limit} times and once more"
        yield Failure(expected="the run ends", actual=actual, witness=(endless.n,), session=endless.session)
    elif mute is not None and mute.end is not None:
        actual = "the last turn pauses, and shows no request"
        yield Failure(expected="the run ends", actual=actual, witness=(mute.end.n,), session=mute.session)
    elif stuck is not None:
        actual = f"the same requests are there after they were answered {stuck.rounds} times"
        call = next((asked.call for asked in history.requests if asked.q in stuck.requests), None)
        yield Failure(call=call, expected="answers move the run on", actual=actual, witness=(stuck.n,))
    else:
        yield OK
        yield from map(_other_output, history.turns)


def _other_output(turn: TurnSeen) -> Failure | None:
    """The output of a turn, where it is text and the model's last reply is nothing but text."""
    answers = [exchange.answer for exchange in turn.exchanges if "/" not in exchange.conversation]
    last = answers[-1] if answers else None
    if turn.end is None or turn.outcome != "finished" or last is None or not last.say or last.calls:
        return OK
    output = turn.end.output
    if not isinstance(output, str) or output.strip() == last.say.strip():
        return OK
    actual = f"the turn gives {output!r}"
    witness = (last.n, turn.end.n)
    return Failure(expected=repr(last.say), actual=actual, witness=witness, session=turn.session, level="should")


def _last_turns(history: History) -> Iterator[TurnSeen]:
    """Gives the last turn of each session."""
    yield from {turn.session: turn for turn in history.turns}.values()


def _endless(history: History) -> Iterator[ModelExhausted]:
    for exchange in history.exchanges:
        if isinstance(exchange.reply, ModelExhausted) and exchange.reply.limit is not None:
            yield exchange.reply


def _stuck(history: History) -> Iterator[Stuck]:
    """Rounds of answers after which the same is pending, though no turn failed visibly."""
    for event in history.events_of(Stuck):
        if isinstance(event, Stuck):
            turns = [turn for turn in history.turns if turn.session == event.session and turn.start.n < event.n]
            if not turns or not turns[-1].failed:
                yield event


@check(
    "nothing-left-pending",
    needs=("run.end", "turn.end"),
    sources=("pydantic/pydantic-ai#6486", "openai/openai-agents-python#5141"),
)
def nothing_left_pending(history: History) -> Evaluations:
    """
    When everything was answered, nothing must be pending.

    What is still open then can never be closed: the session shows a question that was answered.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, the caller left:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        end left: c1

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        end completed: c1
    """
    end = history.end
    if end is None or not history.requests:
        return
    if end.how != "completed":
        if end.how == "left":
            yield OK
        return
    for entry in end.pending:
        asked = next((asked for asked in history.requests if asked.q == entry.get("q")), None)
        last = [turn for turn in history.turns if asked is None or turn.session == asked.session][-1:]
        if last and last[0].failed:
            continue
        call = asked.call if asked is not None else None
        witness = (call.decisions[-1].n if call and call.decisions else 0, end.n)
        yield Failure(call=call, expected="nothing is pending", actual="it is still listed", witness=witness)
    yield OK


@check(
    "usable-after-refusal",
    needs=("turn.end", "caller.decide"),
    sources=("pydantic/pydantic-ai#6486", "vercel/ai@50a26d5"),
)
def usable_after_refusal(history: History) -> Evaluations:
    """
    A session must go on after it refused something: the next right step must be taken.

    A refusal that poisons the state turns a client's mistake into a lost conversation. A right step is an answer to all
    that is pending, or a message when nothing is; a failing model, tool or policy, or a limit, may still make it fail.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve ?q99
        go
        fail KeyError: q99
        approve c1
        go
        run c1 -> paid 5
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve ?q99
        go
        fail KeyError: q99
        approve c1
        go
        fail StateError: broken
        end left: c1
    """
    for refused in history.turns:
        if not refused.refused:
            continue
        after = [turn for turn in history.turns if turn.number > refused.number and same_line(refused, turn)]
        right = [turn for turn in after if _is_right_step(history, turn)]
        failed = [turn for turn in right if turn.failed and not _has_cause(history, turn)]
        if len(failed) < len(right):
            yield OK
        elif failed:
            ends = [turn.end.n for turn in (refused, failed[0]) if turn.end is not None]
            error = failed[0].end.error if failed[0].end is not None else None
            actual = f"it fails: {': '.join(error or ())}"
            yield Failure(expected="the next right step is taken", actual=actual, witness=ends, session=refused.session)


def _is_right_step(history: History, turn: TurnSeen) -> bool:
    if turn.overlaps or turn.outcome in ("timeout", "open"):
        return False
    pending = open_before(history, turn)
    if pending is None:
        return False
    labels = {call.label for call in pending.calls}
    if turn.start.text is not None:
        return not labels and not turn.decisions
    for given in turn.decisions:
        call = given.call
        if call is None or is_invalid(given) or contradicted(given) or settled_before(call, given) is not None:
            return False
        if given.event.shows is not None:
            return False
    return bool(labels) and {given.call.label for given in turn.decisions if given.call is not None} == labels


def _has_cause(history: History, turn: TurnSeen) -> bool:
    """Whether something that the scenario made fail, or a limit that it set, explains a failed turn."""
    if history.header is not None and history.header.limits:
        return True
    if any(isinstance(exchange.reply, ModelFailure | ModelExhausted) for exchange in turn.exchanges):
        return True
    if any(run.how == "raised" for run in turn.executions):
        return True
    return any(given.call is not None and cannot_run(history, given.call, given) for given in turn.decisions)
