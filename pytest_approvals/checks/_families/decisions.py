"""Family `decisions`: invalid, contradicting and late decisions change nothing, and no decision touches other calls."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_approvals.checks._check import OK, Evaluations, Failure, describe_call
from pytest_approvals.checks._queries import (
    cancelled_position,
    has_lost_its_tool,
    has_moved_approval,
    is_contradicted,
    is_invalid,
    outlives_its_turn,
    pending_before,
    repeats_rewritten_text,
    settled_position,
    turns_on_branch,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.coverage import is_malformed
from pytest_approvals.journal.history import (
    END_POSITION,
    DeliveredResult,
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedTurn,
)


@check(
    "invalid-decision-refused",
    severity="lost-request",
    needs=("caller.decide", "turn.end", "tool.start"),
    implies=("approval-before-execution", "only-model-calls-run", "unanswered-stays-pending", "every-gated-call-asked"),
    sources=("pydantic/pydantic-ai#8060", "pydantic/pydantic-ai#6922", "langchain-ai/langgraph#8836"),
)
def invalid_decision_refused(history: History) -> Evaluations:
    """A decision that names no request, or is no decision, must make nothing run and lose nothing.

    A missing value, a truthy text or an unknown id are mistakes of a client, not a person's consent. Closing the call
    as rejected is accepted. If the caller is not told of the mistake, that is a warning.

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
    for decision in history.decisions:
        turn = decision.turn
        if not is_invalid(decision) or decision.staging_failed or turn is None or turn.outcome in ("open", "timeout"):
            continue
        ran = next(_unapproved_executions(turn), None)
        what = "an answer that is no decision" if is_malformed(decision) else "a decision about nothing that was asked"
        if ran is not None:
            expected, actual = "nothing runs", f"{describe_call(ran.call) if ran.call else ran.tool} runs after {what}"
            yield Failure(call=ran.call, expected=expected, actual=actual, witness=(decision.n, ran.n))
        elif turn.failed:
            yield OK
        elif (delivery := _find_delivered_decision(decision, turn)) is not None:
            actual = f"the model is told {delivery.text!r} as its result"
            yield Failure(
                call=decision.call, expected="it stays pending", actual=actual, witness=(decision.n, delivery.n)
            )
        elif decision.call is not None and not _is_kept(decision.call, turn):
            actual = f"it is gone after {what}"
            yield Failure(
                call=decision.call, expected="it stays pending", actual=actual, witness=(decision.n, turn.ended)
            )
        else:
            yield Failure(
                call=decision.call,
                expected="the caller is told",
                actual=f"{what} is accepted silently",
                witness=(decision.n, turn.ended),
                level="should",
            )


def _unapproved_executions(turn: RecordedTurn) -> Iterator[Execution]:
    for execution in turn.executions:
        call = execution.call
        if call is None:
            yield execution
        elif call.is_gated_at(execution.n) or call.requests:
            decided = call.decision_at(execution.n)
            if decided is None or not (decided.approves or decided.rejects):
                yield execution


def _find_delivered_decision(decision: RecordedDecision, turn: RecordedTurn) -> DeliveredResult | None:
    """Return the delivery, in that turn, of the very text that was handed in as a decision."""
    raw = decision.event.raw
    text = raw.get("verdict") if isinstance(raw, dict) else None
    if decision.call is None:
        return None
    told_now = (delivery for delivery in decision.call.deliveries if decision.n < delivery.n < turn.ended)
    return next((delivery for delivery in told_now if delivery.text == text), None)


def _is_kept(call: RecordedCall, turn: RecordedTurn) -> bool:
    """Return whether it is still pending, closed by a message, or closed as rejected."""
    return (
        turn.start.text is not None
        or call.is_listed_at(turn.ended)
        or bool(call.deliveries)
        or bool(call.approval_responses)
    )


@check(
    "contradiction-not-executed",
    severity="unapproved-effect",
    needs=("caller.decide", "tool.start"),
    implies=("rejected-never-runs", "rejection-told", "reason-told"),
    sources=("langchain-ai/langgraph#7256", "openai/openai-agents-python#4429"),
)
def contradiction_not_executed(history: History) -> Evaluations:
    """A call that one submission both approves and rejects must not run.

    Of two contradicting answers the careful one counts, if the submission is not refused. Decisions that were put into
    the state one after the other do not contradict each other: the last one counts.

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
        decision = next(
            (decision for decision in call.decisions if is_contradicted(decision) and decision.turn is not None), None
        )
        if decision is None:
            continue
        execution = next((execution for execution in call.executions if execution.turn is decision.turn), None)
        if execution is None:
            yield OK
        else:
            both = [other.n for other in call.decisions if other.handed_in_at == decision.handed_in_at]
            yield Failure(call=call, expected="no run", actual="it runs", witness=(*both, execution.n))


@check(
    "settled-stays-settled",
    severity="double-effect",
    needs=("caller.decide", "turn.end", "model.request"),
    implies=("runs-at-most-once", "result-delivered-once", "approved-runs"),
    sources=("google/adk-python#7151", "langchain-ai/langgraph#6663"),
)
def settled_stays_settled(history: History) -> Evaluations:
    """A decision about a call that is settled must change nothing.

    Answers come twice: a double click, a retried request, a second window. The call is not run again and its result is
    not told again or changed in the turn of that answer. An approval of a call that a new message had closed is refused
    visibly, since it will not run; if the turn of that message failed before the model answered, the call may still
    wait. So may one that returned only after its caller had left. If the model is asked again for nothing, that is a
    warning.

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

    Passes, old results are cleared before a later message:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 rejected
        done
        approve c1
        go
        fail UserError: nothing is pending
        untell c1
        tell c1 (an old result)
        send Thanks
        done

    Passes, a result that was changed in the save:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        save
        rewrite paid lost
        restore
        approve c1
        go
        fail UserError: nothing is pending
        untell c1
        tell c1 lost 5
        send And now?
        done

    Passes, a standing approval lets run what a limit kept from running:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        always c1
        go
        run c1 -> paid 5
        fail LimitReached: 1 tool call
        cancel
        approve c2
        stage AlreadySettled: c2 is not open
        go
        run c2 -> paid 6
        done

    Passes, what was approved before the caller left is not pending when the requests are cancelled:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        start c1
        hangup c1
        cancel
        approve c2
        stage AlreadySettled: c2 is not open
        go
        run c2 -> paid 6
        tell c1 cancelled
        done

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

    Fails, its result is told in other words at once:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 rejected
        done
        approve c1
        untell c1
        tell c1 approved
        send Thanks
        done

    Fails, a result that is not the changed one of the save:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done
        save
        rewrite paid lost
        restore
        approve c1
        go
        untell c1
        tell c1 lost 6
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

    Passes, the turn whose message had closed it failed:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        tell c1 superseded
        send Never mind
        down 500
        fail ModelDown: status 500
        untell c1
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
        for decision in call.decisions:
            settled = settled_position(call, decision)
            cancelled = cancelled_position(history, call, decision) if settled is None else None
            settled = settled or cancelled
            if settled is None or decision.turn is None or is_invalid(decision):
                continue
            if cancelled is None and _was_told_in_vain(history, call, decision):
                yield OK
                continue
            if cancelled is not None and _was_approved(call, cancelled):
                yield OK
                continue
            if cancelled is None and _is_settled_unnoticed(call, decision):
                yield OK
                continue
            yield _find_effect(history, call, decision, settled) or _find_needless_question(call, decision, settled)


def _was_told_in_vain(history: History, call: RecordedCall, decision: RecordedDecision) -> bool:
    """Return whether a call had not begun, and only models that gave no answer were told of it, in failed turns."""
    taken = decision.handed_in_at or 0
    if any(execution.n < taken for execution in call.executions):
        return False
    if any(other.n < decision.n and not other.refused for other in call.decisions):
        return False
    told = {delivery.n for delivery in call.deliveries if delivery.n < taken}
    in_vain = {
        exchange.n
        for exchange in history.exchanges
        if exchange.answer is None and exchange.turn is not None and exchange.turn.failed
    }
    return told <= in_vain


def _is_settled_unnoticed(call: RecordedCall, decision: RecordedDecision) -> bool:
    """Return whether a call returned only after its caller had left, so that an agent need not know that it ran."""
    taken = decision.handed_in_at or 0
    if any(delivery.n < taken for delivery in call.deliveries):
        return False
    returned = [run for run in call.executions if run.how == "returned" and run.ended is not None and run.ended < taken]
    # One that was rejected has not returned, and the agent knows of the rejection.
    return bool(returned) and all(outlives_its_turn(call, run) for run in returned)


def _was_approved(call: RecordedCall, n: int) -> bool:
    """Return whether a call was approved at position *n*, so that it was not pending."""
    decision = call.decision_at(n)
    return decision is not None and decision.approves


def _is_covered(call: RecordedCall, execution: Execution) -> bool:
    """Return whether a call runs on a standing approval, while what was decided about the call itself was refused."""
    decision = call.decision_at(execution.n)
    return decision is not None and decision.approves and not decision.is_about(call)


def _find_effect(history: History, call: RecordedCall, decision: RecordedDecision, settled: int) -> Failure | None:
    turn, taken = decision.turn, decision.handed_in_at or 0
    assert turn is not None
    entered = (execution for execution in call.executions if execution.turn is turn)
    execution = next((each for each in entered if not _is_covered(call, each)), None)
    # Agents may clear old results before a later turn, whatever was decided; one is that after a refused staging.
    end = next((each.start.n for each in turns_on_branch(history, call) if each.start.n > turn.start.n), END_POSITION)
    # The first delivery is the result of the settled call, which the model may get only now.
    later = (delivery for delivery in call.deliveries[1:] if taken < delivery.n < end and not decision.staging_failed)
    delivery = next((each for each in later if not repeats_rewritten_text(history, call, each)), None)
    expected = f"nothing: it was settled at {settled}"
    if execution is not None:
        return Failure(call=call, expected=expected, actual="it runs", witness=(settled, decision.n, execution.n))
    if delivery is not None:
        actual = f"the model is told {delivery.text!r}"
        return Failure(call=call, expected=expected, actual=actual, witness=(settled, decision.n, delivery.n))
    closed_by_message = not call.executions and all(other is decision or other.refused for other in call.decisions)
    if decision.approves and closed_by_message and not (turn.failed or decision.staging_failed):
        actual = "the approval is accepted silently, and nothing runs"
        return Failure(call=call, expected="it is refused", actual=actual, witness=(settled, decision.n, turn.ended))
    return OK


def _find_needless_question(call: RecordedCall, decision: RecordedDecision, settled: int) -> Failure | None:
    turn = decision.turn
    if turn is None or turn.start.text is not None or not turn.exchanges:
        return OK
    if turn.previous is not None and turn.previous.failed:
        return OK
    if any(other.call is None or settled_position(other.call, other) is None for other in turn.decisions):
        return OK
    request = turn.exchanges[0].n
    actual = "the model is asked again"
    expected = "no question to the model"
    return Failure(call=call, expected=expected, actual=actual, witness=(settled, decision.n, request), level="should")


@check(
    "unanswered-stays-pending",
    severity="lost-request",
    needs=("caller.decide", "turn.end"),
    implies=("result-delivered-once", "model-input-well-formed", "asked-once", "nothing-left-pending"),
    sources=("microsoft/agent-framework#5654", "vercel/ai#15947"),
)
def unanswered_stays_pending(history: History) -> Evaluations:
    """A request that the caller did not answer must stay pending while the caller only answers others or goes on.

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
        pending = pending_before(history, turn)
        if pending is None:
            continue
        answered = {decision.call.label for decision in turn.decisions if decision.call is not None}
        for call in pending.calls:
            if call.label not in answered:
                yield from _check_unanswered(history, turn, call, pending.n)


def _is_around(outer: RecordedCall, call: RecordedCall) -> bool:
    """Return whether a call runs the agent that made another one, or one that runs this agent."""
    return call.label.startswith(f"{outer.label}/")


def _is_left_unseen(history: History, turn: RecordedTurn) -> bool:
    """Return whether nobody has looked after a pause: a message came in place of answers, or another copy goes on."""
    later = [each for each in history.turns if each.session == turn.session and each.start.n > turn.ended]
    following = next((each for each in later if each.branch == turn.branch), None)
    return bool(later) if following is None else following.start.text is not None


def _check_unanswered(history: History, turn: RecordedTurn, call: RecordedCall, request: int) -> Evaluations:
    # A request from before a rewind: judge the copy of its call in the branch of the turn.
    if call.branch != turn.branch:
        call = next((copy for copy in history.find_calls(call.label, call.session) if copy.branch == turn.branch), call)
    end = turn.ended
    if call.decision_at(end) is not None or has_moved_approval(history, call, end):
        return
    if turn.failed or any(request.listings[-1][0] >= end for request in call.requests):
        yield OK
        return
    ran = next((execution.n for execution in call.executions if execution.n > request), None)
    # A turn that pauses may show the requests that are new; one from before that is decided later has stayed pending.
    later = call.decision if turn.outcome == "paused" else None
    taken = later.handed_in_at if later is not None and later.is_about(call) else None
    if taken is not None and (ran is None or ran > taken):
        yield OK
        return
    if ran is None and turn.outcome == "paused" and _is_left_unseen(history, turn):
        return
    # Of a call that its tool cannot take since a restart, the model may be told.
    if ran is None and has_lost_its_tool(history, call, turn.start.n):
        return
    # Who rejects the call that runs its agent has closed it, too.
    if any(each.rejects and each.call is not None and _is_around(each.call, call) for each in turn.decisions):
        return
    actual = "it runs" if ran is not None else "it is gone"
    yield Failure(call=call, expected="it stays pending", actual=actual, witness=(request, turn.start.n, ran or end))
