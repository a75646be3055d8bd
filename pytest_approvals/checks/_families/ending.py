"""Family `ending`: runs end, with nothing left open, and sessions stay usable and isolated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._families.execution_arguments import runs_in_broken_reply
from pytest_approvals.checks._queries import (
    cancelled_position,
    cannot_run,
    has_moved_approval,
    has_renamed_agent,
    is_ancestor,
    is_contradicted,
    is_invalid,
    pending_after,
    pending_before,
    settled_position,
    successful_cancellations,
    superseded_by,
    was_closed_around,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.arguments import arguments_fit, arguments_fit_exactly, arguments_match
from pytest_approvals.journal.coverage import is_malformed
from pytest_approvals.journal.events import (
    SIGNAL_MISSING,
    CallerStuck,
    CloseTimeout,
    DiskFull,
    ModelAnswer,
    ModelExhausted,
    ModelFailure,
    RunEnd,
    StoreRolledBack,
)
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.history import Execution, History, RecordedCall, RecordedTurn, SurfacedRequest


@check(
    "run-ends",
    severity="stuck",
    needs=("turn.end", "run.end"),
    implies=("nothing-left-pending",),
    sources=("microsoft/autogen#7956", "openai/openai-agents-python#2487"),
)
def run_ends(history: History) -> Evaluations:
    """A run must come to its end: no turn hangs, the model is not asked endlessly, and answers move it on.

    A loop that asks the same question costs money until somebody looks. The output of a turn should be what its model
    said last: its reader has seen nothing else. An agent should close when its run is over: a server that waits for it
    does not shut down.

    A turn that the caller began rightly must not fail half-way if nothing failed on which it depends: a message while
    nothing is open, or an answer to all that is. A model, a tool or a policy that fails may fail it, and so may a
    limit, a tool that is gone, a call that does not fit, or two calls with one id.

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

    Fails, a turn fails as two calls need approval:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        fail RuntimeError: one at a time
        end left: c1, c2

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

    Warns, an agent that does not close:
        send Hello
        done
        end completed
        unclosed its close() did not return within 30 s
    """
    end = history.end
    if end is None:
        last = history.events[-1].n if history.events else 0
        yield Failure(expected="the run ends", actual="the journal ends before", witness=(last,), status="unknown")
        return
    # The harness ended such a run; `scenario-exercised` reports that.
    if end.how in ("interrupted", "broken"):
        return
    hanging = next((turn for turn in history.turns if turn.outcome == "timeout"), None)
    # A changed save has released a call before the caller gives the signal for which its tool waits.
    if hanging is not None and any(is_released_by_change(run) for run in hanging.executions):
        return
    # No agent can end such a turn; `scenario-exercised` reports that, too.
    if misses_signal(end):
        return
    endless = next(_exhausted_models(history), None)
    stuck = next(_stuck_callers(history), None)
    mute = next((turn for turn in _last_turns(history) if turn.outcome == "paused" and not turn.requests), None)
    if end.how == "timeout" or hanging is not None:
        start = hanging.start.n if hanging is not None else 0
        yield Failure(expected="the run ends", actual="it took too long", witness=(start, end.n))
    elif endless is not None:
        actual = f"the model was asked {endless.limit} times and once more"
        yield Failure(expected="the run ends", actual=actual, witness=(endless.n,), session=endless.session)
    elif mute is not None and mute.end is not None:
        actual = "the last turn pauses without a request"
        yield Failure(expected="the run ends", actual=actual, witness=(mute.end.n,), session=mute.session)
    elif stuck is not None:
        actual = f"the same requests are there after they were answered {stuck.rounds} times"
        call = next((request.call for request in history.requests if request.q in stuck.requests), None)
        yield Failure(call=call, expected="answers move the run on", actual=actual, witness=(stuck.n,))
    else:
        yield OK
        # The code of a user's application may shape what its agent gives.
        if history.header is None or not history.header.attached:
            yield from map(_compare_output, history.turns)
            yield from _failed_right_steps(history)
        yield from _unclosed_agents(history)


def is_released_by_change(execution: Execution) -> bool:
    """Return whether an open call runs on a standing approval of another tool, as only a changed save makes it."""
    call = execution.call
    decision = call.decision_at(execution.n) if call is not None else None
    decided = decision.call if decision is not None else None
    return execution.how == "open" and decided is not None and call is not None and decided.tool != call.tool


def misses_signal(end: RunEnd) -> bool:
    """Return whether the story held a tool for ever, whatever its agent did in the turn that did not end."""
    return end.how == "timeout" and end.error is not None and end.error[:1] == [SIGNAL_MISSING]


def _compare_output(turn: RecordedTurn) -> Failure | None:
    """Compare the output of a turn, if it is text, with the model's last reply, if that is nothing but text."""
    answers = [exchange.answer for exchange in turn.exchanges if "/" not in exchange.conversation]
    last = answers[-1] if answers else None
    output = turn.end.output if turn.end is not None else None
    if last is None or not last.say or last.calls or not isinstance(output, str) or output.strip() == last.say.strip():
        return OK
    actual = f"the turn gives {output!r}"
    witness = (last.n, turn.ended)
    return Failure(expected=repr(last.say), actual=actual, witness=witness, session=turn.session, level="should")


def _unclosed_agents(history: History) -> Iterator[Failure]:
    """Yield the agents that did not close after a run that ended by itself; of others, that says nothing new."""
    for event in history.events_of(CloseTimeout):
        yield Failure(
            expected="its agents close", actual=event.what, witness=(event.n,), session=event.session, level="should"
        )


def _failed_right_steps(history: History) -> Iterator[Failure]:
    """Yield the turns that fail half-way although the caller took a right step and nothing failed on which they depend.

    What is refused at once is for the checks of decisions and messages to say.
    """
    for turn in history.turns:
        if not turn.failed or turn.refused or _has_cause(history, turn) or not _is_right_step(history, turn):
            continue
        if any(_may_end_turn(exchange.answer) for exchange in turn.exchanges):
            continue
        called = (call for call in history.calls if call.turn is turn)
        if any(_is_without_identity(call) or any(gate.raised for gate in call.gates) for call in called):
            continue
        error = turn.end.error if turn.end is not None else None
        actual = f"it fails: {': '.join(error or ())}"
        witness = (turn.start.n, turn.ended)
        yield Failure(expected="the turn pauses or finishes", actual=actual, witness=witness, session=turn.session)


def _may_end_turn(answer: ModelAnswer | None) -> bool:
    """Return whether a framework may fail on a reply: none came, or nothing is in it.

    An input that a provider refuses is for `model-input-well-formed` to judge.
    """
    return answer is None or not (answer.calls or answer.say or answer.answer)


def _is_without_identity(call: RecordedCall) -> bool:
    """Return whether a call has no id, or that of a call before it."""
    return call.id is None or call.occurrence > 1


def _last_turns(history: History) -> Iterator[RecordedTurn]:
    """Yield the last turn of each session."""
    yield from {turn.session: turn for turn in history.turns}.values()


def _exhausted_models(history: History) -> Iterator[ModelExhausted]:
    for exchange in history.exchanges:
        if isinstance(exchange.reply, ModelExhausted) and exchange.reply.limit is not None:
            yield exchange.reply


def _stuck_callers(history: History) -> Iterator[CallerStuck]:
    """Yield the rounds of answers after which the same is pending, though no turn failed visibly."""
    for event in history.events_of(CallerStuck):
        turns = [turn for turn in history.turns if turn.session == event.session and turn.start.n < event.n]
        if not turns or not turns[-1].failed:
            yield event


@check(
    "nothing-left-pending",
    severity="stuck",
    needs=("run.end", "turn.end"),
    sources=("pydantic/pydantic-ai#6486", "openai/openai-agents-python#5141"),
)
def nothing_left_pending(history: History) -> Evaluations:
    """When everything was answered, nothing must be pending.

    What is still open then can never be closed: the session shows a question that was answered. A request to which a
    message came in place of an answer may stay open.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, a message came in place of an answer:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        send Never mind
        done
        end completed: c1

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
        request = next((request for request in history.requests if request.q == entry.get("q")), None)
        last = [turn for turn in history.turns if request is None or turn.session == request.session][-1:]
        # A failed turn may leave its requests open for another try, and after a rewind nobody was asked.
        if (last and last[0].failed) or (request is not None and _ends_with_rewind(history, request.session)):
            continue
        call = request.call if request is not None else None
        # A message came in place of an answer, and left the request open.
        if call is not None and not call.decisions and superseded_by(history, call) is not None:
            continue
        witness = (call.decisions[-1].n if call and call.decisions else 0, end.n)
        yield Failure(call=call, expected="nothing is pending", actual="it is still listed", witness=witness)
    yield OK


def _ends_with_rewind(history: History, session: str) -> bool:
    """Return whether no turn has followed the restore of an earlier save."""
    latest = [branch for branch in history.branches if branch.session == session][-1]
    used = any(turn.session == session and turn.branch == latest.number for turn in history.turns)
    return latest.parent is not None and not used


@check(
    "usable-after-refusal",
    severity="stuck",
    needs=("turn.end", "caller.decide"),
    sources=("pydantic/pydantic-ai#6486", "vercel/ai@50a26d5"),
)
def usable_after_refusal(history: History) -> Evaluations:
    """A session must go on after it refused something: the next right step must be taken.

    A refusal that spoils the state turns a client's mistake into a lost conversation. A right step is an answer to all
    that is pending, or a message when nothing is; a failing model, tool or policy, an answer of the model that does not
    fit, or a limit, may still make it fail. So may an approval whose tool is gone; a rejection runs nothing, and needs
    no tool. What was stored before an agent was renamed may be refused for good.

    Nor may the failure of a turn, such as that of its model, spoil the session: if nothing is pending in the end, not
    all that the caller sends after it is refused.

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

    Fails, no message is taken after a model has failed:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        down 500
        fail ModelDown: status 500
        send Is it paid?
        fail StateError: c1 has no response
        end completed: none

    Fails, a rejection wants the tool that is gone:
        tool pay(amount: integer) always
        mode json
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        without pay
        restore save-1: c1
        reject c1
        go
        fail ValueError: no tool pay
        reject c1
        go
        fail ValueError: no tool pay
        end left: c1

    Passes, the agent has another name by now:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        renamed main cashier
        restore
        approve c1
        go
        fail LookupError: no agent is called main
        approve c1
        go
        fail LookupError: no agent is called main
        end left: c1
    """
    for refused in history.turns:
        if not refused.refused:
            continue
        after = [turn for turn in history.turns if turn.number > refused.number and is_ancestor(refused, turn)]
        right = [turn for turn in after if _is_right_step(history, turn)]
        failed = [turn for turn in right if turn.failed and not _has_cause(history, turn)]
        # One right step that succeeds shows that the session is usable.
        if len(failed) < len(right):
            yield OK
        elif failed:
            ends = [turn.end.n for turn in (refused, failed[0]) if turn.end is not None]
            error = failed[0].end.error if failed[0].end is not None else None
            actual = f"it fails: {': '.join(error or ())}"
            yield Failure(expected="the next right step is taken", actual=actual, witness=ends, session=refused.session)
    yield from _spoiled_sessions(history)


def _spoiled_sessions(history: History) -> Evaluations:
    """Yield the sessions in which each turn is refused after one has failed, though nothing is pending."""
    for failed in history.turns:
        # `usable-after-hang-up` judges what follows a turn that was cut off.
        if not failed.failed or failed.refused or failed.cut_off_at is not None or failed.overlaps:
            continue
        after = [turn for turn in history.turns if turn.number > failed.number and is_ancestor(failed, turn)]
        tried = [turn for turn in after if turn.start.text and not turn.decisions and not _has_cause(history, turn)]
        if not tried or _may_be_pending(history, failed):
            continue
        if all(turn.refused and turn.cut_off_at is None and not turn.overlaps for turn in after):
            error = tried[0].end.error if tried[0].end is not None else None
            actual = f"each is refused: {': '.join(error or ())}"
            witness = (failed.ended, *(turn.ended for turn in after))
            yield Failure(expected="a message is taken", actual=actual, witness=witness, session=failed.session)
        else:
            yield OK


def _may_be_pending(history: History, turn: RecordedTurn) -> bool:
    """Return whether a call of the session of a turn waits at the end, so that a message may be refused."""
    if history.end is None:
        return True
    requests = {request.q: request.session for request in history.requests}
    return any(requests.get(str(entry.get("q")), turn.session) == turn.session for entry in history.end.pending)


def _is_right_step(history: History, turn: RecordedTurn) -> bool:
    # A turn that its caller left, or that could store nothing, is no attempt that had to succeed.
    if turn.overlaps or turn.outcome in ("timeout", "open"):
        return False
    if turn.cut_off_at is not None or turn.unstored_from is not None:
        return False
    pending = pending_before(history, turn)
    if pending is None:
        return False
    labels = {call.label for call in pending.calls}
    if turn.start.text is not None:
        return not labels and not turn.decisions
    for decision in turn.decisions:
        call = decision.call
        if (
            call is None
            or is_invalid(decision)
            # A plain `true` may be taken for an approval, and may be refused.
            or is_malformed(decision)
        ):
            return False
        # The call has asked again since, so this is an answer to a closed request.
        asked = decision.request
        if asked is not None and any(asked.n < other.n <= decision.n for other in call.requests):
            return False
        if asked is not None and _is_of_lost_future(history, asked, decision.n):
            return False
        # A tampered copy of a request may be refused.
        if decision.event.shows is not None:
            return False
    decided = [decision.call.label for decision in turn.decisions if decision.call is not None]
    # Two decisions about one call may be refused, even equal ones, and so may one about a call that is settled.
    return bool(labels) and sorted(decided) == sorted(labels)


def _is_of_lost_future(history: History, request: SurfacedRequest, n: int) -> bool:
    """Return whether the caller holds a copy of a request that a save, to which the session went back, does not know.

    Position *n* is that of the decision that is made from the copy.
    """
    if history.header is None or history.header.variant.get("source") != "held":
        return False
    shown = [other.n for other in history.requests if (other.session, other.q) == (request.session, request.q)]
    return any(
        restore.save.event.n < asked < restore.event.n < n
        for restore in history.restores
        if restore.save is not None and restore.event.error is None and restore.event.session == request.session
        for asked in shown
    )


def _has_cause(history: History, turn: RecordedTurn) -> bool:
    """Return whether a failed turn is explained by what the scenario made fail, limited or renamed."""
    if history.header is not None and history.header.limits:
        return True
    if any(isinstance(exchange.reply, ModelFailure | ModelExhausted) for exchange in turn.exchanges):
        return True
    if _has_wrong_answer(history, turn):
        return True
    if any(execution.how == "raised" for execution in turn.executions):
        return True
    if any(full.turn == turn.number for full in history.events_of(DiskFull)):
        return True
    # What was stored under another name may be refused for good; the caller is told.
    if turn.refused and has_renamed_agent(history, turn):
        return True
    # A framework may end the turn in which its model calls a tool that was taken away, or makes calls that no tool can
    # take, of which many allow only a few.
    called = [call for call in history.calls if call.session == turn.session and turn.start.n < call.n < turn.ended]
    if any(cannot_run(history, call, None) or _is_of_another_agent(history, call) for call in called):
        return True
    # A rejection runs nothing, so it needs no tool that takes the call.
    return any(
        decision.call is not None and decision.approves is not False and cannot_run(history, decision.call, decision)
        for decision in turn.decisions
    )


def _is_of_another_agent(history: History, call: RecordedCall) -> bool:
    """Return whether the model called a tool that only another agent has, and that it was not offered."""
    offer = next((each for each in history.exchanges if each.answer is call.answer), None)
    own = {known.name for known in history.declarations.values() if known.agent == call.agent}
    return offer is not None and call.tool not in own.union(offer.tools)


def _has_wrong_answer(history: History, turn: RecordedTurn) -> bool:
    """Return whether the model ended a turn with another answer than the fields that it must end with."""
    wanted = history.header.answer if history.header is not None else None
    reply = _last_reply(turn)
    return bool(wanted) and reply is not None and not arguments_fit_exactly(reply.answer, wanted or {})


@check(
    "answer-given",
    severity="mistold",
    needs=("model.answer", "turn.end"),
    sources=("langchain-ai/langchain#36957", "langchain-ai/langchain#32980", "pydantic/pydantic-ai#6486"),
)
def answer_given(history: History) -> Evaluations:
    """A turn that finishes must give the answer that its model gave last, structured or as text.

    A program that asks for an object reads its fields. If nothing comes, or text, or the answer of an earlier turn, it
    fails, or continues with wrong values. An answer in the same reply as calls is not judged, which agents may take or
    leave. One that does not fit the declared fields should not be given.

    A turn with a message, or in which a tool returned, must not finish before its model was asked: nobody has answered.
    A limit may end it, and so may a rejection.

    People read text. An agent may put more around what its model said, or say it in other words, but not something else
    that a model of the session said, as the text from before the pause. An agent that gives no text should.

    Passes:
        wants total: integer
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        answers total=5
        outputs total=5

    Passes, text with more around it:
        send Pay 5
        model I shall pay.; c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        model Done.
        finish I shall pay. Done.

    Passes, text in other words:
        send Hello
        model Hello.
        finish HELLO

    Fails, the model is not asked what a message is to be answered:
        send Hello
        finish

    Fails, the model is not asked after a tool has returned:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        finish paid 5

    Passes, a rejection ends the turn:
        send Pay 5
        model Shall I?; c1 pay(amount=5)
        pause c1
        reject c1
        go
        finish
        tell c1 rejected
        send Never mind
        done

    Fails, the text from before the pause comes:
        send Pay 5
        model I shall pay.; c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        model Done.
        finish I shall pay.

    Warns, no text comes:
        send Hello
        model Hello.
        finish

    Fails, nothing comes:
        wants total: integer
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        answers total=5
        outputs

    Fails, it comes as text:
        wants total: integer
        send Sum up
        answers total=5
        finish {"total": 5}

    Warns, one that does not fit comes:
        wants total: integer
        send Sum up
        answers total=much
        outputs total=much

    Passes, text that is read as the number that it stands for:
        wants total: integer
        send Sum up
        answers total="5"
        outputs total=5

    Warns, a number comes as text:
        wants total: integer
        send Sum up
        answers total="5"
        outputs total="5"

    Fails, the answer of an earlier turn comes:
        wants total: integer
        send Sum up
        answers total=5
        outputs total=5
        send And now?
        answers total=7
        outputs total=5
    """
    wanted = history.header.answer if history.header is not None else None
    for turn in history.turns:
        unasked = _find_unasked_model(history, turn)
        if unasked is not None:
            yield unasked
        reply = _last_reply(turn)
        if reply is None or turn.end is None or turn.outcome != "finished":
            continue
        if wanted is None:
            if reply.say:
                yield _judge_text(history, turn, reply)
            continue
        if reply.answer is None:
            continue
        if not arguments_fit(reply.answer, wanted):
            yield _judge_misfit(turn, wanted, arguments_fit)
        elif isinstance(turn.end.output, dict) and arguments_match(turn.end.output, reply.answer, wanted):
            yield _judge_misfit(turn, wanted, _are_types_declared)
        else:
            witness = (reply.n, turn.end.n)
            actual = f"the turn gives {turn.end.output!r}"
            yield Failure(expected=repr(reply.answer), actual=actual, witness=witness, session=turn.session)


def _find_unasked_model(history: History, turn: RecordedTurn) -> Failure | None:
    """Return a failure if a turn finishes and its model was not asked since the message came, or a call returned.

    The code of a user's application may answer in place of a model, and a limit may end a turn.
    """
    header = history.header
    if turn.outcome != "finished" or turn.overlaps or turn.cut_off_at is not None:
        return OK
    if header is None or header.attached or header.limits:
        return OK
    asked = [exchange for exchange in turn.exchanges if "/" not in exchange.conversation]
    since = turn.start.n if (turn.start.text or "").strip() else 0
    # An answer in the same reply as calls ends the run.
    if any(exchange.answer is not None and exchange.answer.answer is not None for exchange in asked):
        return OK
    returned = [run.ended for run in turn.executions if run.ended is not None and _has_returned_to_main(run)]
    if asked or not since:
        since = max(returned, default=0)
    if not since or any(exchange.n > since for exchange in asked):
        return OK
    after = "a tool returned" if returned else "the message came"
    actual = f"the turn finishes, and the model was not asked after {after}"
    return Failure(expected="an answer of the model", actual=actual, witness=(since, turn.ended), session=turn.session)


def _has_returned_to_main(execution: Execution) -> bool:
    """Return whether a body of the caller's agent has returned: none of a sub-agent, a provider or a hand-over.

    Nor is one that was called in the same reply as an answer, which may end the run when the call has returned.
    """
    call = execution.call
    is_body = execution.by == "agent" and execution.start is not None and execution.how == "returned"
    return is_body and call is not None and "/" not in call.label and call.answer.answer is None


def _judge_misfit(
    turn: RecordedTurn,
    wanted: Mapping[str, Mapping[str, Any]],
    fit: Callable[[Any, Mapping[str, Mapping[str, Any]]], bool],
) -> Failure | None:
    """Return a failure if a turn gives an answer that does not fit the declared fields, by the rule *fit*."""
    assert turn.end is not None
    output = turn.end.output
    if not isinstance(output, dict) or fit(output, wanted):
        return OK
    expected = f"an answer with the fields {', '.join(wanted)} as they are declared"
    actual = f"the turn gives {output!r}"
    return Failure(expected=expected, actual=actual, witness=(turn.end.n,), session=turn.session, level="should")


def _are_types_declared(output: Mapping[str, Any], wanted: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether the declared fields have their types without coercion; others may be there, too."""
    return arguments_fit_exactly({name: output[name] for name in wanted if name in output}, wanted)


def _last_reply(turn: RecordedTurn) -> ModelAnswer | None:
    """Return the reply that ends a turn; None if that one has calls."""
    replies = [exchange.answer for exchange in turn.exchanges if "/" not in exchange.conversation]
    last = replies[-1] if replies else None
    return None if last is None or last.calls else last


def _judge_text(history: History, turn: RecordedTurn, reply: ModelAnswer) -> Failure | None:
    """Return a failure if a turn gives another text than that with which its model ended it."""
    assert turn.end is not None
    output, said = turn.end.output, (reply.say or "").strip()
    if isinstance(output, str) and said in output:
        return OK
    others = [exchange.answer for exchange in history.exchanges]
    is_other = isinstance(output, str) and any(
        each is not None and each.say and each.say.strip() == output.strip() for each in others
    )
    if output and not is_other:
        return OK
    return Failure(
        expected=repr(said),
        actual=f"the turn gives {output!r}",
        witness=(reply.n, turn.end.n),
        session=turn.session,
        level=None if is_other else "should",
    )


@check(
    "usable-after-hang-up",
    severity="stuck",
    needs=("turn.end", "caller.hang_up"),
    sources=("langgenius/dify#41616", "pydantic/pydantic-ai#7977"),
)
def usable_after_hang_up(history: History) -> Evaluations:
    """A session must go on after its caller disconnected, its process was killed, or its store lost a turn.

    A closed browser tab, a deployment or a power cut must not cost the conversation: not all later turns may fail. A
    message may be refused while a call waits for an answer, and an answer to one of several requests; then the whole
    answer is taken. Turns that fail for another reason do not count: the model or a tool fails, an agent was
    renamed, or a decision is about a call that is not asked about any more.

    Passes:
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

    Passes, the store has lost a turn:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        lose
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, the store has lost a turn:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        lose
        restore a: c1
        approve c1
        go
        fail StoreError: a newer version is known

    Passes, it waits for an answer about the call that was cut short:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        send Is it paid?
        fail UserError: c1 is not answered
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, it waits for the answers to both calls:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        send Hello?
        hangup
        save
        restore save-1: c1, c2
        approve c1
        go
        fail UserError: c2 is not answered
        approve c1
        approve c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        down 500
        fail ModelDown: status 500

    Passes, what fails is the model, and an answer to a call that is not asked about any more:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        approve c1
        go
        fail UserError: c1 is not open
        send Is it paid?
        down 500
        fail ModelDown: status 500

    Passes, a message closed the call around the one that is answered before its turn failed:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay 5
        model o1 ask(input="Pay 5")
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        send Hello?
        hangup
        save
        restore save-1: o1/c1
        tell o1 not executed
        send Hello?
        down 500
        fail ModelDown: status 500
        approve o1/c1
        go
        fail UserError: o1/c1 is not open

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        send Is it paid?
        fail UserError: a run is going on
        send Hello?
        fail UserError: a run is going on
    """
    for turn in history.turns:
        if turn.cut_off_at is not None:
            after = [later for later in history.turns if later.number > turn.number and is_ancestor(turn, later)]
            yield from _judge_usability(history, turn.cut_off_at, after)
    for event in history.events_of(StoreRolledBack):
        if event.how == "lost":
            after = [later for later in history.turns if later.session == event.session and later.start.n > event.n]
            yield from _judge_usability(history, event.n, after)


def _judge_usability(history: History, cut_off_at: int, after: Sequence[RecordedTurn]) -> Evaluations:
    """Yield a failure if all turns after a position fail that should not."""
    tried = [
        later
        for later in after
        if not _may_fail_after_hang_up(history, later, cut_off_at) and not _waits_for_answer(history, later, after)
    ]
    if tried and all(later.failed and later.cut_off_at is None for later in after):
        error = tried[-1].end.error if tried[-1].end is not None else None
        actual = f"every turn fails: {': '.join(error or ())}"
        witness = (cut_off_at, *(later.ended for later in after))
        yield Failure(expected="some turn succeeds", actual=actual, witness=witness, session=after[0].session)
    elif after:
        yield OK


def _waits_for_answer(history: History, turn: RecordedTurn, after: Sequence[RecordedTurn]) -> bool:
    """Return whether a message, or a partial answer, was refused before an answer or a cancellation that was taken."""
    if not turn.refused:
        return False
    if turn.decisions:
        return any(len(later.decisions) > len(turn.decisions) and not later.refused for later in after)
    if any(event.n > turn.ended and event.session == turn.session for event in successful_cancellations(history)):
        return True
    return any(later.number > turn.number and later.decisions and not later.refused for later in after)


def _may_fail_after_hang_up(history: History, turn: RecordedTurn, cut_off_at: int) -> bool:
    """Return whether a turn says nothing about the session because good agents may fail it, too.

    Something that the scenario made fail explains it, or a decision that is no right step: an invalid one, or one
    about a call that was not asked about since the caller hung up, which may be settled.
    """
    if _has_cause(history, turn):
        return True
    # What was cancelled may have nothing to go on with.
    if turn.refused and not turn.start.text and not turn.decisions:
        return True
    for decision in turn.decisions:
        call = decision.call
        if call is None or is_invalid(decision) or is_contradicted(decision):
            return True
        if settled_position(call, decision) is not None or not call.is_requested_between(cut_off_at, turn.start.n):
            return True
        if was_closed_around(history, call, turn.start.n) or cancelled_position(history, call, decision) is not None:
            return True
    return False


@check(
    "sessions-isolated",
    severity="unapproved-effect",
    needs=("turn.end", "model.request"),
    implies=(
        "only-model-calls-run",
        "request-shows-the-call",
        "approval-before-execution",
        "every-gated-call-asked",
        "model-input-well-formed",
        "approved-runs",
    ),
    sources=("openai/openai-agents-python#5123",),
)
def sessions_isolated(history: History) -> Evaluations:
    """Nothing of one session must appear in another one, or be decided there.

    Two people share an agent, not their conversations. A message of one of them is taken whatever the other one has not
    decided yet, and the decisions of one of them are, whatever the other one gives up.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        model c1 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 6
        done
        end left: c1

    Fails, a request:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        shows c1 pay(amount=5)
        end left: c1

    Fails, a standing approval:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        always c1
        go
        run c1 -> paid 5
        done
        session b
        send Pay 6
        model c1 pay(amount=6)
        run c1 -> paid 6
        done

    Passes, it was given up in its own session as well:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        model c1 pay(amount=6)
        pause c1
        cancel
        session
        cancel
        approve c1
        go
        fail AlreadySettled: c1

    Fails, what another session gives up closes its request:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Pay 6
        model c1 pay(amount=6)
        pause c1
        cancel
        session
        approve c1
        go
        fail AlreadySettled: c1

    Fails, a message is refused while another session waits for a decision:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        session b
        send Hello
        fail Busy: a request is pending
        end left: c1
    """
    if len(history.sessions) < 2:
        return
    yield OK
    yield from _foreign_requests(history)
    yield from _foreign_executions(history)
    yield from _foreign_messages(history)
    yield from _foreign_cancellations(history)
    yield from _held_up_messages(history)


def _foreign_requests(history: History) -> Evaluations:
    for request in history.requests:
        if request.call is None:
            tool, arguments = str(request.entry.get("tool")), request.entry.get("arguments")
            other = _find_call_of_other_session(history, request.session, tool, arguments)
            if other is not None:
                actual = f"a request about {format_call(tool, arguments)} of session {other.session or 'main'}"
                expected = "only requests about its own calls"
                witness = (other.n, request.n)
                yield Failure(expected=expected, actual=actual, witness=witness, session=request.session)


def _foreign_executions(history: History) -> Evaluations:
    for execution in history.executions:
        call = execution.call
        if call is None:
            # A call of its own, which the journal does not hold: two sessions may make equal ones.
            if runs_in_broken_reply(history, execution):
                continue
            other = _find_call_of_other_session(history, execution.session, execution.tool, execution.arguments)
            if other is not None:
                actual = f"{format_call(execution.tool, execution.arguments)} of session {other.session or 'main'} runs"
                witness = (other.n, execution.n)
                yield Failure(
                    expected="only runs of its own calls", actual=actual, witness=witness, session=execution.session
                )
        elif call.is_gated_at(execution.n) and call.decision_at(execution.n) is None:
            if has_moved_approval(history, call, execution.n):
                continue
            decision = next((decision for decision in history.decisions if _may_have_leaked(decision.call, call)), None)
            # What the session itself decided in this turn is nearer.
            if _is_approved_beside(call, execution):
                continue
            if decision is not None and decision.approves and decision.n < execution.n:
                actual = "it runs after an approval that another session gave"
                yield Failure(
                    call=call, expected="a decision of its own", actual=actual, witness=(decision.n, execution.n)
                )


def _is_approved_beside(call: RecordedCall, execution: Execution) -> bool:
    """Return whether the turn of an execution came with an approval of another call of the tool."""
    decisions = execution.turn.decisions if execution.turn is not None else []
    return any(each.approves and each.call is not None and each.call.tool == call.tool for each in decisions)


def _may_have_leaked(decided: RecordedCall | None, call: RecordedCall) -> bool:
    return decided is not None and decided.session != call.session and decided.tool == call.tool


def _find_call_of_other_session(history: History, session: str, tool: str, arguments: object) -> RecordedCall | None:
    others = (call for call in history.calls if call.session != session and call.tool == tool)
    return next((call for call in others if arguments_match(arguments, call.arguments, call.parameters)), None)


def _foreign_messages(history: History) -> Evaluations:
    sent: dict[str, set[str]] = {}
    for turn in history.turns:
        if turn.start.text:
            sent.setdefault(turn.session, set()).add(turn.start.text)
    for exchange in history.exchanges:
        own = sent.get(exchange.session, set())
        # Both sessions may have sent the same text.
        others = {text for texts in sent.values() for text in texts} - own
        texts = [str(item.get("text") or "") for item in exchange.items if item["kind"] == "user"]
        leaked = next((text for text in texts if text in others), None)
        if leaked is not None and "/" not in exchange.conversation:
            actual = f"{leaked!r} of another session in the model's input"
            expected = "messages of its own"
            yield Failure(expected=expected, actual=actual, witness=(exchange.n,), session=exchange.session)


def _foreign_cancellations(history: History) -> Evaluations:
    """Yield the refused answers to all that is open in a session, if another session gave something up meanwhile."""
    for turn in history.turns:
        before = turn.previous
        if before is None or not turn.refused or turn.start.text is not None or turn.overlaps:
            continue
        answered = {decision.call.label for decision in turn.decisions if decision.call is not None}
        if not answered or answered != {call.label for call in before.requested_calls}:
            continue
        if not {decision.verdict for decision in turn.decisions} <= {"approve", "reject"}:
            continue
        given_up = [each for each in successful_cancellations(history) if before.ended < each.n < turn.start.n]
        if given_up and all(each.session != turn.session for each in given_up):
            expected, actual = "its decision is taken", "refused after another session gave up what was pending there"
            yield Failure(
                expected=expected,
                actual=actual,
                witness=(before.ended, given_up[0].n, turn.ended),
                session=turn.session,
            )


def _held_up_messages(history: History) -> Evaluations:
    """Yield the messages that never reached a model, in sessions with nothing open, while another session waited."""
    for turn in history.turns:
        is_mute = turn.outcome == "paused" and not turn.requests
        if turn.start.text is None or turn.exchanges or not (turn.failed or is_mute):
            continue
        if not _is_right_step(history, turn) or _has_cause(history, turn):
            continue
        before = [other for other in history.turns if other.number < turn.number]
        # A session that has failed before may be spoiled by what happened in it.
        if any(other.failed for other in before if other.session == turn.session):
            continue
        waiting = next(_waiting_elsewhere(history, turn, before), None)
        if waiting is not None:
            actual = f"{turn.outcome} while {waiting.label} of another session waits for a decision"
            witness = (waiting.n, turn.start.n, turn.ended)
            yield Failure(expected="its message is taken", actual=actual, witness=witness, session=turn.session)


def _waiting_elsewhere(history: History, turn: RecordedTurn, before: Sequence[RecordedTurn]) -> Iterator[RecordedCall]:
    """Yield the calls of other sessions that wait for a decision when a turn begins in one where none does."""
    for last in {other.session: other for other in before}.values():
        pending = pending_after(history, last, turn.start.n)
        if pending is not None:
            yield from pending.calls
