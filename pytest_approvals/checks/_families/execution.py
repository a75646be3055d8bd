"""Family `execution`: nothing runs without approval, everything approved runs, and nothing runs too often."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._queries import (
    awaited_calls,
    cannot_run,
    dropping_positions,
    exchanges_of_agent,
    has_moved_approval,
    has_pending_siblings,
    has_reached_limit,
    is_contradicted,
    is_durable,
    is_on_branch,
    is_tool_missing,
    is_tried_again,
    list_copies,
    list_moved_decisions,
    may_know_other_branches,
    outlives_its_turn,
    settled_position,
    sibling_calls,
    turns_on_branch,
    was_approved_before_limit,
    was_dropped,
    was_forgotten,
    was_rewritten_between,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.arguments import are_same_values, arguments_fit_exactly
from pytest_approvals.journal.coverage import is_malformed
from pytest_approvals.journal.events import ModelRefusal
from pytest_approvals.journal.history import (
    END_POSITION,
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedTurn,
)


@check(
    "approval-before-execution",
    severity="unapproved-effect",
    needs=("tool.start", "caller.decide"),
    implies=("every-gated-call-asked",),
    sources=("openai/openai-agents-python#4257", "openai/openai-agents-python#5144", "pydantic/pydantic-ai#3350"),
)
def approval_before_execution(history: History) -> Evaluations:
    """A call that needs approval must not run before a person approved it.

    This is what the gate is for. A decision about another call, another agent's call or an earlier use of the same call
    id does not approve this one; nor does an invalid decision. A tool that asks again while it runs needs a second
    approval before its body is entered again, unless it needs none to be entered and only asks once more. A policy lets
    through exactly what it was asked about: a call that then runs with arguments that need approval ran without one.
    Turns at the same time on one durable store share what was decided there. An approval that the store has lost
    approves nothing any more: the person may have been asked again, and have changed their mind.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, by a standing decision:
        send Pay
        model c1 pay(amount=5)
        pause c1
        always c1
        go
        run c1 -> paid 5
        model c2 pay(amount=6)
        run c2 -> paid 6
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        run c1 -> paid 5
        done

    Fails, a call id that comes again:
        send Pay
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        model c1#2 pay(amount=6)
        run c1#2 -> paid 6
        done

    Fails, the policy was asked about other arguments than those that run:
        tool pay(amount: integer) when amount > 100
        send Pay 5
        model c1 pay(amount=5)
        run c1 pay(amount=500) -> paid 500
        done

    Fails, a second approval that nobody gave:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 ??
        run c1 -> paid 5
        done

    Fails, the store has lost the approval:
        mode native.sqlite
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
        send Thank you
        run c1 -> paid 5
        done

    Fails, the store shows what it held before the approval:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        save b
        stale
        restore a: c1
        send Thank you
        run c1 -> paid 5
        done
    """
    for call in history.calls:
        # Position at which the body last asked for a second approval.
        request = 0
        for execution in call.executions:
            asks = execution.asks_itself
            # It is entered again for another's answer: a sibling's, or that of an agent inside it.
            if execution.is_resumed and (asks or not call.requests):
                request = 0
            elif execution.how == "asked" and request and not call.needed_approval_for(execution):
                # Its body may be entered without an approval, and goes no further than to its question.
                yield OK
            elif request or (call.needed_approval_for(execution) and not asks):
                decision = call.decision_at(execution.n)
                if decision is None and was_approved_before_limit(history, call, execution.n):
                    continue
                if decision is None and _was_approved_meanwhile(history, call, execution):
                    continue
                if decision is None and has_moved_approval(history, call, execution.n):
                    continue
                # If it runs after a rejection, `rejected-never-runs` fails.
                if decision is None or not (decision.approves or decision.rejects):
                    yield _report_unapproved(call, execution, "no decision about it")
                elif decision.approves and decision.handed_in_at is not None and decision.handed_in_at < request:
                    yield _report_unapproved(call, execution, "no second approval after it asked again")
                else:
                    yield OK
            request = execution.ended or 0 if execution.how == "asked" else 0


def _was_approved_meanwhile(history: History, call: RecordedCall, execution: Execution) -> bool:
    """Return whether a turn at the same time, on the same durable store, has the approval of a call."""
    return is_durable(history) and any(
        decision.approves and decision.is_in_force(execution.n) and decision.turn is not None and decision.turn.overlaps
        for copy in list_copies(history, call)
        for decision in copy.decisions
    )


def _report_unapproved(call: RecordedCall, execution: Execution, why: str) -> Failure:
    witness = [call.n, *(decision.n for decision in call.decisions if decision.n < execution.n), execution.n]
    return Failure(call=call, expected="it waits for an approval", actual=f"it starts with {why}", witness=witness)


@check(
    "rejected-never-runs",
    severity="unapproved-effect",
    needs=("tool.start", "caller.decide"),
    implies=("rejection-told", "reason-told", "settled-stays-settled", "result-delivered-once", "nothing-left-pending"),
    sources=("google/adk-python#7148", "openai/openai-agents-js#1694", "langchain-ai/langgraph#7256"),
)
def rejected_never_runs(history: History) -> Evaluations:
    """A call that was rejected must not run.

    An explicit rejection outweighs a standing approval of its tool, given before or after it in one batch. If requests
    do not show the ids of their calls, an agent may list those of equal calls of one reply in any order.

    Passes, of two equal calls whose requests show no ids, the other one runs:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=5)
        hides c1, c2
        approve c1
        reject c2 once is enough
        go
        run c2 -> paid 5
        tell c1 Denied: once is enough
        done

    Fails, both of them run:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=5)
        hides c1, c2
        approve c1
        reject c2
        go
        run c1 -> paid 5
        run c2 -> paid 5
        done

    Fails, the calls are not equal:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        hides c1, c2
        approve c1
        reject c2
        go
        run c2 -> paid 6
        tell c1 Denied
        done

    Fails, the requests show the ids:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=5)
        pause c1, c2
        approve c1
        reject c2
        go
        run c2 -> paid 5
        tell c1 Denied
        done

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 too much
        go
        tell c1 too much
        model Sorry.
        finish Sorry.

    Passes, a standing rejection was replaced before it took effect:
        tool pay(amount: integer) when amount > 5
        send Pay 6
        model c1 pay(amount=6)
        pause c1
        never c1
        stage
        approve c1
        go
        run c1 -> paid 6
        model c2 pay(amount=5)
        run c2 -> paid 5
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        run c1 -> paid 5
        done

    Fails, a standing approval beats it:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        reject c1
        always c2
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done
    """
    for call in history.calls:
        for execution in call.executions:
            decision = call.decision_at(execution.n)
            # A body that asked is entered again to read the answer, which may be a rejection.
            if execution.is_resumed:
                continue
            if decision is not None and (_was_released_before(call, decision) or _was_never_stored(call, decision)):
                continue
            # `contradiction-not-executed` judges a call that was also approved. A standing rejection that another
            # decision replaced before it took effect may cover later calls, and need not.
            counts = decision is not None and not is_contradicted(decision) and not decision.is_replaced
            if decision is not None and decision.rejects and counts:
                actual = "it starts after it was rejected"
                yield Failure(call=call, expected="no run", actual=actual, witness=(decision.n, execution.n))
        decision = call.decision
        if decision is not None and decision.rejects:
            yield OK


def _was_never_stored(call: RecordedCall, decision: RecordedDecision) -> bool:
    """Return whether a standing decision was lost with a turn that could store nothing, before it covered the call.

    So was one whose process was killed, if what it was about is listed once more after that.
    """
    turn, request = decision.turn, decision.request
    if decision.is_about(call) or turn is None:
        return False
    is_listed = request is not None and any(n > turn.ended for n, _ in request.listings)
    return turn.unstored_from == "" or (turn.crashed and is_listed)


def _was_released_before(call: RecordedCall, rejection: RecordedDecision) -> bool:
    """Return whether a call was free to run before its tool was rejected for good, which is about further calls.

    It needs no approval and waits for its siblings, or a turn that failed had let it run by a standing approval.
    """
    if rejection.is_about(call) or call.n > rejection.n:
        return False
    return not call.is_gated or any(
        earlier.verdict == "always"
        and earlier.is_in_force(rejection.n)
        and earlier.turn is not None
        and earlier.turn.failed
        for earlier in call.standing_decisions
    )


@check(
    "approved-runs",
    severity="lost-effect",
    needs=("tool.start", "caller.decide", "turn.end"),
    implies=("asked-once", "result-delivered-once", "nothing-left-pending", "unanswered-stays-pending", "run-ends"),
    sources=("openai/openai-agents-python#2487", "strands-agents/harness-sdk#3076", "microsoft/agent-framework#4963"),
)
def approved_runs(history: History) -> Evaluations:
    """An approved call must run, unless the turn fails visibly or the model is told why it cannot run.

    The person said yes and believes that it happened. The call may wait for the answers to its siblings. Telling the
    model something else is acceptable only if the tool is gone, the arguments do not fit, the save was changed, a
    guardrail of the user's own may have answered, one submission approves the call with several arguments, or the call
    had begun before this approval and was cancelled; for a call inside another one also if the model is told that about
    the call around it.

    Passes, one submission approves and edits the call, and it is told as rejected:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        edit c1 (amount=3)
        go
        tell c1 rejected: two answers
        done

    Fails, the edit came in a submission of its own:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        edit c1 (amount=3)
        go
        tell c1 rejected: two answers
        done

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, it waits for its sibling:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        pause c2
        end left: c2

    Passes, the arguments do not fit and the model is told:
        send Pay
        model c1 pay(amount=much)
        pause c1
        approve c1
        go
        tell c1 amount must be an integer
        model Sorry.
        finish Sorry.

    Passes, what was saved has been changed and the model is told:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        rewrite 5 1
        restore save-1: c1 pay(amount=1)
        approve c1
        go
        tell c1 that is not what was asked
        done

    Passes, the call around it is another one in what was saved, and the model is told:
        tool ask(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay
        model o1 ask(input="Pay 5")
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        save
        rewrite ask delete
        restore save-1: o1/c1
        approve o1/c1
        go
        tell o1 there is no tool 'delete'
        done

    Passes, it was cancelled on an earlier approval, and the model is told:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        approve c1
        go
        tell c1 cancelled
        done

    Passes, the turn fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        down 500
        fail ModelDown: status 500
        end left: c1

    Passes, it waits for the agent beside it, and the turn with the last answer fails:
        tool ask(input: string) runs helper
        tool read(path: string) always of helper
        tool pay(amount: integer) always
        send Go
        model o1 ask(input=a); c1 pay(amount=5)
        model @o1/helper o1/c2 read(path=a)
        pause o1/c2, c1
        approve c1
        go
        pause o1/c2
        reject o1/c2
        go
        down 500
        fail ModelDown: status 500

    Passes, a standing approval covers it, and the turn with the answer about its sibling fails:
        send Pay
        model c1 pay(amount=5)
        pause c1
        always c1
        go
        run c1 -> paid 5
        done
        send Pay more
        model c2 pay(amount=6); c3 pay(amount=much)
        pause c3
        reject c3
        go
        down 500
        fail ModelDown: status 500

    Passes, it waits for its sibling, and the turn with the last answer fails:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        pause c2
        reject c2
        go
        down 500
        fail ModelDown: status 500

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        tell c1 not approved
        model Sorry.
        finish Sorry.

    Passes, it waits for its sibling, and its tool takes something else then:
        tool pay(amount: integer) always
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        pause c2
        save s1
        takes pay(amount: string)
        restore s1: c2
        reject c2
        go
        tell c1 the arguments do not fit
        tell c2 rejected
        done

    Fails, its tool takes what it took:
        tool pay(amount: integer) always
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        pause c2
        reject c2
        go
        tell c1 the arguments do not fit
        tell c2 rejected
        done

    Fails, a message comes together with it and closes the call:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        tell c1 not approved
        send And hurry
        done

    Passes, its provider is asked with the next message, since a rejection has ended the turn:
        tool search(query) always hosted web
        tool pay(amount: integer) always
        send Go
        model c1 search(query=cats); c2 pay(amount=5)
        pause c1, c2
        approve c1
        go
        pause c2
        reject c2
        go
        finish

    Fails, its provider has had a message since then:
        tool search(query) always hosted web
        tool pay(amount: integer) always
        send Go
        model c1 search(query=cats); c2 pay(amount=5)
        pause c1, c2
        approve c1
        go
        pause c2
        reject c2
        go
        finish
        send And now?
        tell c2 rejected
        done

    Passes, `true` is no decision, and counts as none:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        raw c1 true
        go
        tell c1 not run, the answer could not be read
        done

    Fails, `true` counts as an approval, and nothing comes of it:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        raw c1 true
        go
        pause c1
        end left: c1

    Passes, the turn has used up its limit of tool calls, and the model is told:
        limits tool_calls=1
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        tell c1 paid 5
        tell c2 not run, one call is allowed in a turn
        done

    Passes, the turn has used up its limit of tool calls, and is the last one:
        limits tool_calls=1
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        finish One call is allowed in a turn.

    Fails, the turn after it does not run the call either:
        limits tool_calls=1
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        finish One call is allowed in a turn.
        go
        finish

    Fails, the turn has calls left:
        limits tool_calls=2
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        tell c1 paid 5
        tell c2 not run, too many calls
        done

    Fails, only its replies are limited:
        limits model_replies=2
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        tell c1 paid 5
        tell c2 not run, too many calls
        model Paid.
        finish Paid.

    Fails, the decision is lost:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore
        approve c1
        go
        pause c1
        end left: c1
    """
    for call in history.calls:
        decision = call.decision
        if decision is None or not decision.approves or settled_position(call, decision) is not None:
            continue
        if _was_executed_after(history, call, decision):
            yield OK
        elif decision.turn is not None and decision.turn.outcome == "open":
            actual = "the journal ends before the turn does"
            expected = "a run after its approval"
            yield Failure(call=call, expected=expected, actual=actual, witness=(decision.n,), status="unknown")
        else:
            yield OK if _is_excused(history, call, decision) else _report_missing_execution(call, decision)


def _report_missing_execution(call: RecordedCall, decision: RecordedDecision) -> Failure:
    delivery = next((delivery for delivery in call.deliveries if delivery.n > (decision.handed_in_at or 0)), None)
    actual = f"no run; the model is told {delivery.text!r}" if delivery is not None else "no run"
    ended = decision.turn.ended if decision.turn is not None else 0
    witness = (decision.n, delivery.n if delivery is not None else ended)
    return Failure(call=call, expected="a run after its approval", actual=actual, witness=witness)


def _was_executed_after(history: History, call: RecordedCall, decision: RecordedDecision) -> bool:
    taken = decision.handed_in_at or 0
    # One that runs an agent whose turn has failed is no new execution when that agent is asked again.
    ran = any(execution.n > taken for execution in call.executions) or any(
        exchange.n > taken and exchange.branch == call.branch for exchange in exchanges_of_agent(history, call)
    )
    # A standing decision was made about another call; when it was handed in says little about this one.
    if not decision.is_about(call):
        return bool(call.executions or call.requests)
    return ran


def _is_excused(history: History, call: RecordedCall, decision: RecordedDecision) -> bool:
    turn = decision.turn
    if turn is None or turn.outcome not in ("paused", "finished"):
        return True
    if call.turn is not None and call.turn.outcome not in ("paused", "finished") and not call.requests:
        return True
    settled = cannot_run(history, call, decision) or any(execution.how == "cancelled" for execution in call.executions)
    # What is no decision may count as an approval, or as none at all.
    settled = settled or _is_approved_in_two_ways(call, decision) or is_malformed(decision)
    if settled and any(delivery.n > (decision.handed_in_at or 0) for delivery in call.deliveries):
        return True
    if _has_tool_changed_while_waiting(history, call, turn.ended) or _cannot_be_reached(history, call, decision):
        return True
    return (
        has_pending_siblings(history, call)
        or _failed_with_last_answer(history, call, turn)
        or _was_dropped_later(history, call, turn)
        or _was_executed_on_other_branch(history, call)
        or _is_beyond_limit(history, call, turn)
        or _waits_for_its_model(history, call, turn)
    )


def _waits_for_its_model(history: History, call: RecordedCall, decided: RecordedTurn) -> bool:
    """Return whether a provider is to run a call with the next model request, and a rejection has ended the last turn.

    A sibling was rejected, and the agent waits for a message with what it has to tell the model.
    """
    last = turns_on_branch(history, call)[-1]
    is_stopped = bool(last.decisions) and all(decision.rejects for decision in last.decisions) and not last.exchanges
    return call.kind == "hosted_mcp" and is_stopped and last.outcome == "finished" and last.start.n > decided.start.n


def _is_beyond_limit(history: History, call: RecordedCall, decided: RecordedTurn) -> bool:
    """Return whether the turn that approved a call had used up its limit of tool calls.

    The model is told of it then, or another turn has to follow before one can say that the approval is lost.
    """
    limits = (history.header.limits if history.header is not None else None) or {}
    if "tool_calls" not in limits or not has_reached_limit(history, decided):
        return False
    is_told = any(delivery.n > decided.start.n for delivery in call.deliveries)
    return is_told or not any(is_on_branch(turn, call) and turn.start.n > decided.ended for turn in history.turns)


def _is_approved_in_two_ways(call: RecordedCall, decision: RecordedDecision) -> bool:
    """Return whether one submission approves a call with several arguments, so that nobody knows which ones count."""
    together = [each for each in call.decisions if each.handed_in_at == decision.handed_in_at and each.approves]
    return any(
        each.event.tool != decision.event.tool or not are_same_values(each.event.arguments, decision.event.arguments)
        for each in together
    )


def _has_tool_changed_while_waiting(history: History, call: RecordedCall, taken: int) -> bool:
    """Return whether the call waited for its siblings, and the model was told of it after its tool or save changed."""
    delivery = next((delivery for delivery in call.deliveries if delivery.n > taken), None)
    if delivery is None or not any(awaited.is_listed_at(taken) for awaited in awaited_calls(history, call)):
        return False
    tool, arguments = call.effective_call_at(delivery.n)
    if was_rewritten_between(history, taken, delivery.n, call.session):
        return True
    if is_tool_missing(history, call, tool, delivery.n):
        return True
    return not arguments_fit_exactly(arguments, history.parameters_at(call, delivery.n, tool))


def _cannot_be_reached(history: History, call: RecordedCall, decision: RecordedDecision) -> bool:
    """Return whether the model was told about a call around this one, which cannot run any more."""
    outer = call.label.rpartition("/")[0]
    taken = decision.handed_in_at or 0
    while outer:
        for around in history.find_calls(outer, call.session):
            if any(delivery.n > taken for delivery in around.deliveries) and cannot_run(history, around, decision):
                return True
        outer = outer.rpartition("/")[0]
    return False


def _failed_with_last_answer(history: History, call: RecordedCall, decided: RecordedTurn) -> bool:
    """Return whether the call waited for its siblings, and the turn in which the last of them was answered failed.

    One that was cut off while that call ran counts, too. A model that refuses its input is no excuse: what it was sent
    may be wrong because the call is missing there.
    """
    siblings = awaited_calls(history, call)
    turns = [turn for turn in history.turns if turn.start.n >= decided.start.n and is_on_branch(turn, call)]
    for turn in turns:
        # A standing decision may have been made in a turn before the call.
        if turn.end is None or turn.refused or turn.ended < call.n:
            continue
        if not any(sibling.is_listed_at(turn.end.n) for sibling in siblings):
            refused = any(isinstance(exchange.reply, ModelRefusal) for exchange in turn.exchanges)
            return (turn.failed or _hangs_in_sibling(turn, siblings)) and not refused
    return False


def _hangs_in_sibling(turn: RecordedTurn, siblings: Sequence[RecordedCall]) -> bool:
    """Return whether a turn was cut off while another call of the reply ran."""
    running = [run for run in turn.executions if run.how in ("open", "cancelled")]
    return turn.outcome == "timeout" and any(run.call is sibling for run in running for sibling in siblings)


def _was_dropped_later(history: History, call: RecordedCall, decided: RecordedTurn) -> bool:
    """Return whether what was pending was dropped, and not by a message that came with the approval.

    What is dropped after the turn that takes the approval is an excuse only if the call waited for its siblings by
    then: otherwise it should have run.
    """
    # A standing decision may have been made in a turn before the call.
    taken = decided if call.turn is None or decided.ended > call.n else call.turn
    waits = any(awaited.is_listed_at(taken.ended) for awaited in awaited_calls(history, call))
    places = (n for n in dropping_positions(history, call) if n != decided.start.n)
    return any(waits or n < taken.ended for n in places)


def _was_executed_on_other_branch(history: History, call: RecordedCall) -> bool:
    """Return whether it has run in another branch, of which its agent may know, or in a turn at the same time."""
    if not any(copy.executions for copy in list_copies(history, call) if copy is not call):
        return False
    overlaps = any(decision.turn is not None and decision.turn.overlaps for decision in call.decisions)
    return overlaps or may_know_other_branches(history)


@check(
    "runs-at-most-once",
    severity="double-effect",
    needs=("tool.start", "tool.end"),
    implies=("result-delivered-once",),
    sources=("google/adk-python#7151", "langchain-ai/langgraph#6663"),
)
def runs_at_most_once(history: History) -> Evaluations:
    """An approved call must not run more than once.

    A call whose execution returned is not executed again; one that raised or was cancelled, or that returned after its
    caller had left, only after a new approval, unless the code of a user's agent tries again in the same turn what
    raised.
    If two branches of one save both ran a call, that is only a warning, since an agent without state cannot know of the
    other branch; if one live session or one durable store ran it twice, that is a failure. If only the application
    keeps the state, and the process died before the turn of the first run was saved, nobody can know of that run:
    another one needs an approval of its own. The same holds if the process died in the middle of storing what the run
    returned, or the disk was full, and the turn failed. If the store has lost the turn of a run, or shows what it held
    before, the call may run once more, if what the store holds then approves it.

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

    Passes, a retry of a user's agent:
        attached
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 !! no connection
        run c1 -> paid 5
        done

    Fails, nobody has asked the framework to try again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 !! no connection
        run c1 -> paid 5
        done

    Fails, a retry of a user's agent after it has returned:
        attached
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
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

    Passes, the process died before its application had saved the turn, and it was approved again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        crash outcome
        restore a
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, the process died, and its durable store asks again:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        crash outcome
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, the process died while it stored the result, and it was approved again:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        crash write c1
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, the process died while it stored the result, and nobody was asked again:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        crash write c1
        restore a:
        go
        run c1 -> paid 5
        done

    Fails, the disk was full, and nobody learned of it:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        full
        run c1 -> paid 5
        done
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, the store has lost the run, and it was approved again:
        mode native.sqlite
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

    Fails, the store has lost one run, and the call runs twice after that:
        mode native.sqlite
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save a
        approve c1
        go
        run c1 -> paid 5
        done
        stale
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
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
        if not call.executions or not (call.is_gated or call.requests):
            continue
        again = next(_unapproved_repetitions(history, call), None)
        if again is None:
            yield OK
            continue
        first, second, why = again
        yield Failure(call=call, expected="1 run", actual=why, witness=(first.n, first.ended or 0, second.n))
    yield from _executions_on_two_branches(history)


_ENDINGS = {"raised": "raised", "cancelled": "was cancelled"}


def _unapproved_repetitions(history: History, call: RecordedCall) -> Iterator[tuple[Execution, Execution, str]]:
    """Yield the executions that follow another one without a new approval."""
    for first, second in zip(call.executions, call.executions[1:], strict=False):
        is_unnoticed = first.how == "returned" and outlives_its_turn(call, first)
        if first.how in ("raised", "asked", "cancelled") or is_unnoticed or _is_unstored(call, first):
            ended = first.ended or 0
            approved = any(
                decision.approves and decision.is_in_force(second.n) for decision in _decisions_after(call, ended)
            )
            if not approved and first.how != "asked" and not is_tried_again(history, first, second):
                ending = f"it {_ENDINGS.get(first.how, first.how)}"
                if first.how == "returned":
                    ending = "its caller had left" if is_unnoticed else "it was not stored"
                yield first, second, f"it runs again after {ending}, and was not approved again"
        elif first.ended is not None and first.ended < second.n:
            yield first, second, f"{len(call.executions)} runs"
        else:
            yield first, second, "it starts again while it runs"


def _is_unstored(call: RecordedCall, execution: Execution) -> bool:
    """Return whether what an execution returned could not be stored, and its turn failed for that reason."""
    turn = execution.turn
    return turn is not None and turn.failed and turn.unstored_from in ("", call.label)


def _decisions_after(call: RecordedCall, n: int) -> Iterator[RecordedDecision]:
    return (decision for decision in call.decisions if decision.handed_in_at is not None and decision.handed_in_at > n)


def _executions_on_two_branches(history: History) -> Evaluations:
    durable = is_durable(history)
    seen: dict[tuple[str, str, int], Execution] = {}
    for call in history.calls:
        for execution in call.executions:
            if execution.how != "returned":
                continue
            first = seen.setdefault((call.session, call.label, call.n), execution)
            if first.branch == execution.branch or was_forgotten(history, first, execution):
                continue
            if not durable and first.turn is not None and first.turn.crashed:
                seen[call.session, call.label, call.n] = execution
                continue
            yield Failure(
                call=call,
                expected="1 run",
                actual="a run in each of two histories that began with the same save",
                witness=(first.n, execution.n),
                level="must" if durable else "should",
            )


@check(
    "ungated-runs-once",
    severity="double-effect",
    needs=("tool.start", "tool.end", "turn.end"),
    implies=("result-delivered-once",),
    sources=("langchain-ai/langgraph#7561",),
)
def ungated_runs_once(history: History) -> Evaluations:
    """A call that needs no approval must run once, whatever becomes of its siblings.

    It may wait until its siblings were answered. It need not run if the turn fails visibly, or the one in which it
    would run after its siblings, if the caller left that one before the model was told, if the turn has come to a limit
    of the application, if the tool is gone or the arguments do not fit, if a new message or a cancellation closed the
    whole reply, if a standing rejection covers its tool, if a guardrail of the user's own may have answered, or if it
    is a hand-over and another one of its reply was carried out. One that raised may run again when the turn failed, or
    if the code of a user's agent tries again.

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

    Passes, it waits for its sibling, and the turn in which it would run fails:
        send Go
        model c1 pay(amount=5); c2 read(path=a); c3 read(path=b)
        pause c1
        reject c1
        go
        run c2 -> text
        fail LimitReached: no more tool calls

    Passes, its tool was rejected for good when another call of it needed approval:
        tool pay(amount: integer) when amount > 100
        send Pay
        model c1 pay(amount=500)
        pause c1
        never c1
        go
        tell c1 rejected
        model c2 pay(amount=5)
        tell c2 rejected
        done

    Fails, it never runs:
        send Read a
        model c1 read(path=a)
        tell c1 skipped
        done

    Passes, a retry of a user's agent:
        attached
        send Read a
        model c1 read(path=a)
        run c1 !! no connection
        run c1 -> text
        done

    Passes, a user's agent hides the tool from its model:
        attached
        send Read a
        offers pay
        model c1 read(path=a)
        tell c1 unknown tool
        model c2 read(path=b)
        run c2 -> text
        done

    Passes, the turn has come to its limit, and the framework ends it:
        limits tool_calls=1
        send Read a and b
        model c1 read(path=a)
        run c1 -> text
        model c2 read(path=b)
        finish No more calls.

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
        # `only-gated-asked` judges an ungated call that surfaces.
        if call.declaration is None or call.is_gated or call.requests:
            continue
        if call.executions:
            yield _find_repetition(history, call)
        elif call.decision is not None and call.decision.rejects:
            # Its tool was rejected for good before, when the condition of the gate held.
            yield OK
        elif any(change.n < call.n for change, _ in list_moved_decisions(history, call, "never")):
            # A change of the save has made a rejection for good of another tool one of its tool.
            yield OK
        elif not _is_excused_from_execution(history, call):
            witness = (call.n, *(delivery.n for delivery in call.deliveries[:1]))
            yield Failure(call=call, expected="1 run", actual="no run", witness=witness)


def _is_excused_from_execution(history: History, call: RecordedCall) -> bool:
    if call.turn is None or call.turn.outcome not in ("paused", "finished"):
        return True
    # The model may name a tool that only another agent has.
    if not _has_tool(call):
        return True
    if _has_failed_behind_siblings(history, call) or has_reached_limit(history, call.turn):
        return True
    if _hands_over(call) and any(_hands_over(one) and one.executions for one in sibling_calls(history, call)):
        return True
    if _is_changed_behind_siblings(history, call) or _is_not_shown_yet(history, call):
        return True
    return cannot_run(history, call, None) or has_pending_siblings(history, call) or was_dropped(history, call)


def _is_not_shown_yet(history: History, call: RecordedCall) -> bool:
    """Return whether a call hands over, which the next request to a model shows, and none has come in its branch."""
    where = (call.session, call.branch)
    return _hands_over(call) and all(
        (each.session, each.branch) != where or each.n < call.n for each in history.exchanges
    )


def _is_changed_behind_siblings(history: History, call: RecordedCall) -> bool:
    """Return whether it can no longer run since a change that came while it may have waited for a sibling."""
    if not any(sibling.requests for sibling in sibling_calls(history, call)):
        return False
    told = call.deliveries[0].n if call.deliveries else END_POSITION
    if was_rewritten_between(history, call.n, told, call.session) or is_tool_missing(history, call, call.tool, told):
        return True
    return not arguments_fit_exactly(call.arguments, history.parameters_at(call, told))


def _hands_over(call: RecordedCall) -> bool:
    return call.declaration is not None and call.declaration.hands_over_to is not None


def _has_tool(call: RecordedCall) -> bool:
    return call.declaration is not None and call.declaration.agent == call.agent


def _has_failed_behind_siblings(history: History, call: RecordedCall) -> bool:
    """Return whether a call whose siblings had been asked about had no turn left to run in.

    The last turn failed before the model was told of it, or its caller left before that.
    """
    turns = [turn for turn in history.turns if is_on_branch(turn, call) and not turn.refused]
    asked = any(sibling.requests for sibling in sibling_calls(history, call))
    if not asked or not turns:
        return False
    # The model is told that it did not run.
    told = call.deliveries[0].n if call.deliveries else None
    if told is not None:
        return any(turn.cut_off_at is not None and call.n < turn.cut_off_at < told for turn in turns)
    return turns[-1].failed


def _find_repetition(history: History, call: RecordedCall) -> Failure | None:
    for first, second in zip(call.executions, call.executions[1:], strict=False):
        failed = first.turn is not None and first.turn.failed
        if first.how == "asked" or (first.how != "returned" and failed) or is_tried_again(history, first, second):
            continue
        return Failure(
            call=call,
            expected="1 run",
            actual=f"{len(call.executions)} runs",
            witness=(first.n, first.ended or 0, second.n),
        )
    return None
