"""Family `asking`: every call that needs approval surfaces, once, as it is, and no other."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import MAIN, Condition
from pytest_approvals.checks._check import OK, Evaluations, Failure, Level
from pytest_approvals.checks._queries import (
    awaited_calls,
    cannot_run,
    has_moved_approval,
    has_pending_siblings,
    has_reached_limit,
    is_durable,
    is_tool_missing,
    outer_calls,
    sibling_calls,
    successful_cancellations,
    turns_on_branch,
    was_dropped,
    was_rewritten_between,
    was_shown_in_other_future,
)
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.arguments import (
    arguments_fit_exactly,
    arguments_match,
    arguments_satisfy,
    parse_arguments,
)
from pytest_approvals.journal.formatting import format_call
from pytest_approvals.journal.history import (
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
    RecordedTurn,
    SurfacedRequest,
)


@check(
    "every-gated-call-asked",
    severity="lost-request",
    needs=("model.answer", "turn.end"),
    implies=("approved-runs", "result-delivered-once"),
    sources=("microsoft/agent-framework#5535", "pydantic/pydantic-ai#6491", "langchain-ai/langchain#38838"),
)
def every_gated_call_asked(history: History) -> Evaluations:
    """Every call that needs approval must surface as a request.

    Nobody can decide about a call whose request nobody sees. By the end of its turn the call is asked about, or a
    standing decision covers it, or the turn failed visibly. The model may be answered instead if the tool is missing,
    the arguments do not fit, the policy failed, or a structured answer in the same reply ended the run; if a limit of
    the application ends the turn before that, the model is answered later. Requests of one reply may surface one after
    the other, and a standing decision about one of them may cover the next.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, one after the other:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        pause c2
        end left: c2

    Passes, one after the other, and a standing decision about the first covers the next:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        always c1
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Passes, one after the other, and the tool is gone when a standing decision about the first covers the next:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        save a
        without pay
        restore a: c1
        always c1
        go
        tell c1 There is no such tool.
        tell c2 There is no such tool.
        done

    Passes, one after the other, and the tool of the next is gone when its turn comes:
        tool pay(amount: integer) always
        tool refund(amount: integer) always
        send Pay
        model c1 pay(amount=5); c2 refund(amount=6)
        pause c1
        save a
        without refund
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        tell c1 paid 5
        tell c2 There is no such tool.
        done

    Passes, one after the other, and the tool of the next takes something else when its turn comes:
        tool pay(amount: integer) always
        tool refund(amount: integer) always
        send Pay
        model c1 pay(amount=5); c2 refund(amount=6)
        pause c1
        save a
        takes refund(amount: string)
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        tell c1 paid 5
        tell c2 The arguments do not fit.
        done

    Fails, the tool of the next is still there when its turn comes:
        tool pay(amount: integer) always
        tool refund(amount: integer) always
        send Pay
        model c1 pay(amount=5); c2 refund(amount=6)
        pause c1
        save a
        restore a: c1
        approve c1
        go
        run c1 -> paid 5
        tell c1 paid 5
        tell c2 There is no such tool.
        done

    Fails, nobody was asked about anything before the tool was gone:
        tool pay(amount: integer) always
        tool refund(amount: integer) always
        send Pay
        model c1 pay(amount=5); c2 refund(amount=6)
        finish
        save a
        without refund
        restore a
        go
        run c1 -> paid 5
        tell c1 paid 5
        tell c2 There is no such tool.
        done

    Passes, as with calls that a provider runs, which a standing rejection covers:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats); c2 search(query=dogs)
        pause c1
        never c1
        go
        respond c1 no
        respond c2 no
        done

    Fails, the next one does not run, and could:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        always c1
        go
        run c1 -> paid 5
        tell c2 lost
        done

    Passes, one after the other, and a new message closes the reply before the model fails:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        send Never mind
        tell c1 Not executed.
        tell c2 Not executed.
        down 500
        fail ModelDown: 500

    Passes, one after the other, and a new message closes the reply after the caller hung up:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1 Interrupted.
        tell c2 Not executed.
        send Never mind
        done

    Passes, one after the other, and the process dies in between:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        save a
        approve c1
        go
        start c1
        crash
        restore a: c1
        reject c1
        go
        tell c1 rejected
        pause c2
        end left: c2

    Fails, the turn in between fails for another reason:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        fail ValueError: no

    Fails, after the caller hung up, the model is told of it without a new message:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        approve c1
        go
        start c1
        hangup c1
        tell c1 Interrupted.
        tell c2 Not executed.
        go
        done

    Fails, a new message closes it that follows no failure:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        tell c2 Not executed.
        done
        send Never mind
        done

    Passes, the arguments do not fit and the model is told:
        send Pay
        model c1 pay(amount=much)
        tell c1 amount must be an integer
        model Sorry.
        finish Sorry.

    Passes, a rejection ends the turn, and the model is not asked again:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=much)
        pause c1
        reject c1
        go
        finish

    Passes, the turn fails:
        send Pay
        model c1 pay(amount=5); c1#2 pay(amount=6)
        fail ModelBehaviorError: two calls with one id

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        tell c1 pending
        done

    Passes, it does not fit, and the limit of replies ends the turn:
        limits model_replies=1
        send Pay
        model c1 pay(amount=much)
        finish Stopped at 1 reply.

    Fails, it does not fit, and the turn ends although nothing was rejected:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=much)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        finish

    Fails, it does not fit, and the model is told nothing of it:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=much)
        pause c1
        reject c1
        go
        tell c1 rejected
        done

    Fails, it runs unasked when another one is approved:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        run c2 -> paid 6
        done

    Fails, a call whose id was used before is told as rejected by somebody:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 The user rejected this call.
        model c1#2@c1 pay(amount=6)
        tell c1#2 The user rejected this call.
        done

    Fails, it runs unasked:
        send Pay 5
        model c1 pay(amount=5)
        run c1 -> paid 5
        done
    """
    for call in history.calls:
        turn = call.turn
        if turn is None or turn.outcome in ("timeout", "open") or not call.is_gated:
            continue
        if call.requests or turn.failed or _has_decision(history, call, turn) or _is_answered(history, call):
            yield OK
        elif not _is_requested_later(history, call):
            actual = "none; it runs" if call.executions else "none"
            witness = (call.n, *(execution.n for execution in call.executions[:1]), turn.ended)
            yield Failure(call=call, expected="a request about it", actual=actual, witness=witness)


def _is_requested_later(history: History, call: RecordedCall) -> bool:
    """Return whether the reply was never completed: the caller left or dropped it, or the last turn failed or hangs.

    Another call of it was being asked about by then.
    """
    if call.executions or not any(awaited.requests for awaited in awaited_calls(history, call)):
        return False
    turns = turns_on_branch(history, call)
    has_failed = turns[-1].failed and (turns[-1].crashed or _need_not_be_asked(history, call))
    around = (call, *outer_calls(history, call))
    is_closed = was_dropped(history, call) or any(_was_told_by_message(turn, one) for turn in turns for one in around)
    is_cut_off = turns[-1].outcome in ("timeout", "open") and (
        any(run.how in ("open", "cancelled") for run in turns[-1].executions) or _need_not_be_asked(history, call)
    )
    return has_failed or is_closed or is_cut_off or has_pending_siblings(history, call)


def _was_told_by_message(turn: RecordedTurn, call: RecordedCall) -> bool:
    """Return whether a turn with a new message told the model of a call, and failed after that or followed a failure.

    What is open after a turn that failed, it does not list.
    """
    places = [delivery.n for delivery in call.deliveries] + [n for n, _ in call.approval_responses]
    told = any(turn.start.n < n < turn.ended for n in places)
    before = turn.previous
    follows_failure = before is not None and before.failed and not before.refused
    return (turn.failed or follows_failure) and turn.start.text is not None and told


def _has_decision(history: History, call: RecordedCall, turn: RecordedTurn) -> bool:
    is_covered = call.decision_at(turn.ended) is not None or has_moved_approval(history, call, turn.ended)
    return is_covered or _is_decided_with_sibling(history, call)


def _is_decided_with_sibling(history: History, call: RecordedCall) -> bool:
    """Return whether a standing decision about a call that it waits for covered a call before it was asked about.

    That is the decision in force where it ran first, or where the model was told of it if it did not run.
    """
    places = [execution.n for execution in call.executions] + [delivery.n for delivery in call.deliveries]
    places += [n for n, _ in call.approval_responses]
    n = min(places, default=0)
    decision = call.decision_at(n)
    if decision is None or (call.executions and not decision.approves):
        return False
    if decision.approves and not call.executions and not cannot_run(history, call, decision):
        return False
    return any(decision.is_about(awaited) for awaited in awaited_calls(history, call))


def _is_answered(history: History, call: RecordedCall) -> bool:
    """Return whether the model is told that a call could not even be asked about, or was asked nothing since then."""
    if call.executions or not _need_not_be_asked(history, call):
        return False
    is_told = any(not (call.occurrence > 1 and _names_rejection(each.text)) for each in call.deliveries)
    is_told = is_told or _may_be_told_by_another_name(history, call)
    return is_told or (_is_asked_nothing_more(history, call) and _may_end_its_turn(history, call))


def _names_rejection(text: str | None) -> bool:
    """Return whether a text says that a person rejected a call."""
    return _REJECTED_BY_PERSON.search(text or "") is not None


_REJECTED_BY_PERSON = re.compile(
    r"(?:user|human|person|operator)\W+(?:\w+\W+)?(?:reject|den[iy]|declin)|"
    r"(?:reject|deni|declin)\w*\W+by\W+(?:the\W+|a\W+)?(?:user|human|person|operator)",
    re.IGNORECASE,
)


def _may_end_its_turn(history: History, call: RecordedCall) -> bool:
    """Return whether a turn may end with the reply of a call: another one of it was rejected, or a limit reached."""
    is_rejected = any(decision.rejects for other in awaited_calls(history, call) for decision in other.decisions)
    return is_rejected or (call.turn is not None and has_reached_limit(history, call.turn))


def _is_asked_nothing_more(history: History, call: RecordedCall) -> bool:
    """Return whether the model was not asked again since the reply with a call."""
    exchanges = [each for turn in turns_on_branch(history, call) for each in turn.exchanges]
    return [each.answer for each in exchanges if each.conversation == call.conversation][-1:] == [call.answer]


def _may_be_told_by_another_name(history: History, call: RecordedCall) -> bool:
    """Return whether the model is shown a call that it did not make, and a change of the save may have made it of this.

    Nothing else tells that it is this one, if the model gave it no id or the agent knows it by an id of its own.
    """
    return any(
        exchange.unknown_calls
        and was_rewritten_between(history, call.n, exchange.n, call.session)
        and (call.id is None or all(item.get("id") != call.id for item in exchange.items))
        for turn in turns_on_branch(history, call)
        for exchange in turn.exchanges
    )


def _need_not_be_asked(history: History, call: RecordedCall) -> bool:
    """Return whether the model may be told at once what is wrong with a call."""
    raised = any(gate.raised is not None for gate in call.gates)
    repeated = call.occurrence > 1 or any(sibling.id == call.id for sibling in sibling_calls(history, call))
    ended = call.answer.answer is not None
    # The model may name a tool that only another agent has.
    elsewhere = call.declaration is not None and call.declaration.agent != call.agent
    return raised or repeated or ended or elsewhere or cannot_run(history, call, None) or _is_too_late(history, call)


def _is_too_late(history: History, call: RecordedCall) -> bool:
    """Return whether a call could not run any more when its turn came behind another one that was asked about."""
    if not call.deliveries or not any(awaited.requests for awaited in awaited_calls(history, call)):
        return False
    n = call.deliveries[0].n
    if is_tool_missing(history, call, call.tool, n):
        return True
    return not arguments_fit_exactly(call.arguments, history.parameters_at(call, n))


@check(
    "policy-fails-closed",
    severity="unapproved-effect",
    needs=("tool.start", "caller.decide"),
    implies=("approval-before-execution", "every-gated-call-asked"),
    sources=("langchain-ai/langchain#38838", "vercel/ai#15947"),
)
def policy_fails_closed(history: History) -> Evaluations:
    """A call whose policy failed, or could not judge it, must not run without approval.

    A policy that raises has not said yes; nor has one that was asked about arguments that it cannot read.

    Passes:
        tool pay(amount: integer) raises
        send Pay 5
        model c1 pay(amount=5)
        gate c1 raises
        pause c1
        reject c1
        go
        tell c1 rejected
        done

    Passes, the turn fails:
        tool pay(amount: integer) raises
        send Pay 5
        model c1 pay(amount=5)
        gate c1 raises
        fail ConditionRaised: no

    Fails:
        tool pay(amount: integer) raises
        send Pay 5
        model c1 pay(amount=5)
        gate c1 raises
        run c1 -> paid 5
        done

    Fails, unreadable arguments:
        tool pay(amount: integer) when amount > 100
        send Pay
        model c1 pay(amount)
        run c1 pay() -> paid
        done
    """
    for call in history.calls:
        why = _closing_reason(call)
        if why is None:
            continue
        execution = next((execution for execution in call.executions if not _was_decided(call, execution)), None)
        if execution is None:
            yield OK
        else:
            witness = (call.n, *(gate.n for gate in call.gates if gate.n < execution.n), execution.n)
            yield Failure(call=call, expected="no run without approval", actual=f"it runs; {why}", witness=witness)


def _closing_reason(call: RecordedCall) -> str | None:
    if call.declaration is None or not isinstance(call.declaration.approval, Condition):
        return None
    if any(gate.raised is not None for gate in call.gates):
        return "the policy raised"
    if any(gate.answer is False for gate in call.gates):
        return None
    condition, arguments = call.declaration.approval, parse_arguments(call.arguments)
    # Such a condition reads no arguments.
    if condition.argument is None:
        return None
    readable = isinstance(arguments, Mapping) and condition.argument in arguments
    return None if readable else "the policy could not judge its arguments"


def _was_decided(call: RecordedCall, execution: Execution) -> bool:
    decision = call.decision_at(execution.n)
    return decision is not None and (decision.approves or decision.rejects)


@check(
    "only-gated-asked",
    severity="cosmetic",
    level="should",
    needs=("turn.end",),
    sources=("pydantic/pydantic-ai#3350",),
)
def only_gated_asked(history: History) -> Evaluations:
    """A person should not be asked about a call that needs no approval.

    People who are asked about everything stop reading. A framework may ask to be safe where a condition has judged what
    the model wrote, and the tool takes something else: a default, or a value that is converted.

    Passes, the tool takes another value than the condition has judged:
        tool pay(amount: number) when amount > 5
        send Pay 3
        model c1 pay(amount=3)
        pause c1
        approve c1
        go
        run c1 pay(amount=3.0) -> paid 3
        done

    Warns, the tool takes the value that the condition has judged:
        tool pay(amount: integer) when amount > 5
        send Pay 3
        model c1 pay(amount=3)
        pause c1
        approve c1
        go
        run c1 -> paid 3
        done

    Passes:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Warns:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        pause c1, c2
        approve c1
        approve c2
        go
        run c1 -> paid 5
        run c2 -> text
        done
    """
    for call in history.calls:
        if not call.requests or call.declaration is None:
            continue
        request = call.requests[0]
        has_asked = any(execution.how == "asked" and execution.n < request.n for execution in call.executions)
        if call.may_be_gated or has_asked or _is_converted(call):
            yield OK
        else:
            yield Failure(call=call, expected="no request", actual="a request", witness=(call.n, request.n))


def _is_converted(call: RecordedCall) -> bool:
    """Return whether a tool with a condition may take other values than the condition has judged."""
    if call.declaration is None or not isinstance(call.declaration.approval, Condition):
        return False
    arguments = parse_arguments(call.arguments)
    if not isinstance(arguments, Mapping):
        return True
    return any(
        name not in arguments or not _is_taken_as_written(arguments[name], declared.get("type"))
        for name, declared in call.parameters.items()
    )


def _is_taken_as_written(value: Any, declared: str | None) -> bool:
    """Return whether a parameter of a type certainly takes a value as it is; objects may be made of what JSON holds."""
    return type(value) in _WRITTEN_TYPES.get(declared or "", ())


_WRITTEN_TYPES: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (float,),
    "boolean": (bool,),
    "null": (type(None),),
}


@check(
    "asked-once",
    severity="mistold",
    needs=("turn.end", "caller.decide"),
    implies=("nothing-left-pending", "run-ends"),
    sources=("openai/openai-agents-python#2487", "openai/openai-agents-python#5141"),
)
def asked_once(history: History) -> Evaluations:
    """A person must not be asked again about a call that they decided, or that was cancelled.

    Listing a request that is still pending is not asking. A request may come back when the decision was refused or
    made from a changed copy, when the turn failed, or when the tool asks again in its middle. A cancellation closes
    each open request, also those of sub-agents. A standing approval that does not even hold for the next call of its
    tool in the same turn is a warning: the person had decided that, too.

    Passes:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        approve c1
        go
        run c1 -> paid 5
        pause c2
        approve c2
        go
        run c2 -> paid 6
        done

    Passes, the tool asks again:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 ??
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Fails, it was cancelled:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        cancel
        send Was it paid?
        pause c1
        end left: c1

    Warns, the next call of a tool that was approved for always:
        send Pay
        model c1 pay(amount=5)
        pause c1
        always c1
        go
        run c1 -> paid 5
        model c2 pay(amount=6)
        pause c2
        approve c2
        go
        run c2 -> paid 6
        done

    Passes, an approved call has failed, and waits for a decision to be tried once more:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        start c1
        raises c1 the bank is down
        pause c1
        reject c1
        go
        tell c1 Not executed: the bank is down, and the user rejected another attempt.
        done
    """
    for call in history.calls:
        standing = _find_ignored_approval(history, call)
        if standing is not None:
            actual = "it is asked about, though its tool was approved for good"
            witness = (standing.n, call.n, call.requests[0].n)
            yield Failure(call=call, expected="no request", actual=actual, witness=witness, level="should")
        accepted = [decision for decision in call.decisions if _was_accepted(decision)]
        # What was decided from a changed copy of the request may count for nothing: the call waits as before.
        decision = next((decision for decision in accepted if decision.event.shows is None), None)
        again = _find_second_listing(history, call, decision.handed_in_at or 0) if decision is not None else None
        revived = _find_cancelled_listing(history, call)
        if decision is not None and again is not None:
            actual = "it is asked about again after it was decided"
            yield Failure(
                call=call, expected="1 request", actual=actual, witness=(call.requests[0].n, decision.n, again)
            )
        elif revived is not None:
            actual = "it is asked about again after it was cancelled"
            yield Failure(call=call, expected="no request", actual=actual, witness=revived)
        elif accepted:
            yield OK


def _find_ignored_approval(history: History, call: RecordedCall) -> RecordedDecision | None:
    """Return the standing approval that covered a call of its own turn, if a person was asked about it all the same.

    How long a standing approval holds differs by design, but it is none if it does not hold in the turn that takes it.
    """
    decision, turn = call.decision_at(call.n), call.turn
    if decision is None or turn is None or decision.verdict != "always" or decision.turn is not turn:
        return None
    has_asked = any(execution.how == "asked" for execution in call.executions)
    is_judged = bool(call.requests) and not has_asked and not turn.overlaps and _was_accepted(decision)
    return decision if is_judged else None


def _was_accepted(decision: RecordedDecision) -> bool:
    turn = decision.turn
    decides = decision.approves or decision.rejects
    return decides and not decision.refused and turn is not None and turn.outcome in ("paused", "finished")


def _find_second_listing(history: History, call: RecordedCall, n: int) -> int | None:
    """Return the end of the turn that asks again after position *n*.

    What its tool asks is another question, and so is whether a call that has failed is tried once more.
    """
    listed = sorted(listing for request in call.requests for listing, _ in request.listings)
    # Only the end of a turn asks; a restore and the end of the run merely list.
    ends = {turn.end.n for turn in history.turns if turn.end is not None and turn.start.n >= n}
    asking = [run.ended or 0 for run in call.executions if run.how in ("asked", "raised") and run.n > n]
    return next((end for end in listed if end in ends and not any(request < end for request in asking)), None)


def _find_cancelled_listing(history: History, call: RecordedCall) -> tuple[int, int] | None:
    """Return where an open request was cancelled, and the end of the turn that asks again."""
    for event in successful_cancellations(history):
        if event.session != call.session or not any(request.n < event.n for request in call.requests):
            continue
        again = _find_second_listing(history, call, event.n)
        # A save from before the cancellation has the request still.
        is_older = any(
            restore.save is not None and restore.save.event.n < event.n < restore.event.n < (again or 0)
            for restore in history.restores
            if restore.event.session == call.session
        )
        if again is not None and not is_older:
            return event.n, again
    return None


@check(
    "request-shows-the-call",
    severity="unapproved-effect",
    needs=("model.answer", "turn.end"),
    implies=("approval-before-execution", "every-gated-call-asked", "arguments-as-approved", "pending-survives"),
    sources=("openai/openai-agents-python#4257", "strands-agents/harness-sdk#3076"),
)
def request_shows_the_call(history: History) -> Evaluations:
    """A request must show the call that it is about: its tool, its arguments, and its id where it shows one.

    A person can only decide about what they see. What the tool does not take may be left out if it does not run with it
    either. What is shown again after a restore is the same, unless the save was changed: then it is what the save says.
    A call that asks in its middle, after an edit, is shown as it was edited; if it is shown as the model wrote it, that
    is a warning, since the person sees that the edit is gone.

    Passes:
        send Pay 5
        model c1 pay(amount="5")
        pause c1 pay(amount=5)
        approve c1
        go
        run c1 pay(amount=5) -> paid 5
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1 pay(amount=1)
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, the request leaves out what the tool does not take:
        tool pay(amount: integer) always
        send Pay 5
        model c1 pay(amount=5, currency=gold)
        pause c1 pay(amount=5)
        approve c1
        go
        run c1 pay(amount=5) -> paid 5
        done

    Fails, and the tool gets it:
        tool pay(amount: integer) always
        send Pay 5
        model c1 pay(amount=5, currency=gold)
        pause c1 pay(amount=5)
        approve c1
        go
        run c1 pay(amount=5, currency=gold) -> paid 5
        done

    Passes, after what was saved has been changed:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        rewrite 5 1
        restore save-1: c1 pay(amount=1)
        end left

    Passes, the tool takes text by now:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        takes pay(amount: string)
        restore save-1: c1 pay(amount="5")
        end left

    Fails, after a restore:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore save-1: c1 pay(amount=1)
        end left
    """
    for request in history.requests:
        if request.call is None:
            if not (_belongs_to_other_session(history, request) or _is_of_running_turn(history, request)):
                text = format_call(str(request.entry.get("tool")), request.entry.get("arguments"))
                actual = f"a request about {text}"
                expected = "a request about a call that the model made"
                yield Failure(expected=expected, actual=actual, witness=(request.n,), session=request.session)
            continue
        yield _compare_with_call(history, request.call, request)


def _is_of_running_turn(history: History, request: SurfacedRequest) -> bool:
    """Return whether a durable store has a call of a turn that runs in another process at the same time."""
    return is_durable(history) and any(
        call.turn is not None
        and call.n < request.n
        and (call.turn.end is None or request.n < call.turn.ended)
        and (call.id, call.tool) == (request.entry.get("call_id"), request.entry.get("tool"))
        and _shows_arguments(history, request.entry.get("arguments"), call, request.n)
        for call in history.calls
    )


def _compare_with_call(history: History, call: RecordedCall, request: SurfacedRequest) -> Failure | None:
    edited = next((decision.n for decision in call.decisions if decision.verdict == "edit"), None)
    for n, entry in request.listings:
        # From an edit, or a change of the save, on, it may show another call than the model made.
        if was_rewritten_between(history, call.n, n, call.session):
            break
        if edited is not None and n > edited:
            asked = _find_question(call, n)
            if asked is not None and not _shows_execution(history, entry, call, asked):
                expected = format_call(asked.tool, asked.arguments)
                actual = format_call(str(entry.get("tool")), entry.get("arguments"))
                level: Level | None = "should" if _shows_model_call(history, entry, call, n) else None
                witness = (asked.n, n)
                return Failure(call=call, expected=expected, actual=f"{actual} is shown", witness=witness, level=level)
            continue
        if was_shown_in_other_future(history, request, n, entry):
            continue
        if not _shows_model_call(history, entry, call, n):
            if _shows_other_worker(history, entry, call, n) or _shows_what_runs(entry, call):
                continue
            expected, actual = (
                format_call(call.tool, call.arguments),
                format_call(str(entry.get("tool")), entry.get("arguments")),
            )
            return Failure(call=call, expected=expected, actual=f"{actual} is shown", witness=(call.n, n))
        # Only requests say of what kind a tool is that the agent learns of when it runs; one that is gone has no kind.
        is_listed = call.declaration is not None and not call.declaration.unlisted
        if (is_listed and not is_tool_missing(history, call, call.tool, n)) and (
            entry.get("kind", "function") != call.kind or entry.get("server") != call.server
        ):
            expected = f"a request of kind {call.kind}" + (f" of {call.server}" if call.server else "")
            actual = f"one of kind {entry.get('kind')}" + (f" of {entry['server']}" if entry.get("server") else "")
            return Failure(call=call, expected=expected, actual=actual, witness=(call.n, n))
        if _names_another_helper(history, call, entry):
            expected, actual = f"a request of {call.agent}", f"one of {entry['agent']}"
            return Failure(call=call, expected=expected, actual=actual, witness=(call.n, n), level="should")
    return OK


def _shows_other_worker(history: History, entry: Mapping[str, Any], call: RecordedCall, n: int) -> bool:
    """Return whether a durable store shows what the tool has asked in another process, which runs the call."""
    others = [other for other in history.find_calls(call.label, call.session) if other.branch != call.branch]
    questions = ((other, _find_question(other, n)) for other in others if is_durable(history))
    return any(asked is not None and _shows_execution(history, entry, other, asked) for other, asked in questions)


def _names_another_helper(history: History, call: RecordedCall, entry: Mapping[str, Any]) -> bool:
    """Return whether a request names an agent that did not make the call, and is not the one that the caller talks to.

    A framework that does not say who asks names nobody, or the agent that the caller talks to.
    """
    agents = {known.agent for known in history.declarations.values()} - {MAIN, call.agent}
    return entry.get("agent") in agents and not (history.header is not None and history.header.attached)


def _find_question(call: RecordedCall, n: int) -> Execution | None:
    """Return the run in which the tool asked what is listed at position *n*; None if the call was edited since."""
    last = next((run for run in reversed(call.executions) if run.ended is not None and run.ended < n), None)
    if last is None or last.how != "asked":
        return None
    is_edited = any(decision.verdict == "edit" and last.n < decision.n < n for decision in call.decisions)
    return None if is_edited else last


def _shows_execution(history: History, entry: Mapping[str, Any], call: RecordedCall, execution: Execution) -> bool:
    parameters = history.parameters_at(call, execution.n, execution.tool)
    shown = arguments_match(entry.get("arguments"), execution.arguments, parameters)
    return entry.get("tool") == execution.tool and shown


def _shows_model_call(history: History, entry: Mapping[str, Any], call: RecordedCall, n: int) -> bool:
    return entry.get("tool") == call.tool and _shows_arguments(history, entry.get("arguments"), call, n)


def _shows_what_runs(entry: Mapping[str, Any], call: RecordedCall) -> bool:
    """Return whether a request leaves out the arguments that the tool does not take, and that no run of it had."""
    shown = entry.get("arguments")
    seen = [shown, *(run.arguments for run in call.executions)]
    if not all(isinstance(each, Mapping) and each.keys() <= call.parameters.keys() for each in seen):
        return False
    return entry.get("tool") == call.tool and arguments_satisfy(shown, call.arguments, call.parameters)


def _shows_arguments(history: History, arguments: Any, call: RecordedCall, n: int) -> bool:
    # An agent that was started with other types reads the arguments by those.
    types = (call.parameters, history.parameters_at(call, n))
    if any(arguments_match(arguments, call.arguments, parameters) for parameters in types):
        return True
    # Text that is not an object may be shown wrapped in one, and blank text as nothing.
    if isinstance(parse_arguments(call.arguments), Mapping) or not isinstance(call.arguments, str):
        return False
    text = call.arguments.strip()
    return text in str(arguments) if text else not arguments


def _belongs_to_other_session(history: History, request: SurfacedRequest) -> bool:
    entry = request.entry
    return any(
        call.session != request.session
        and call.tool == entry.get("tool")
        and arguments_match(entry.get("arguments"), call.arguments, call.parameters)
        for call in history.calls
    )


@check(
    "request-ids-unique",
    severity="lost-request",
    needs=("turn.end",),
    implies=("arguments-as-approved", "approval-before-execution", "asked-once", "approved-runs"),
    sources=("microsoft/agent-framework#7383", "openai/openai-agents-python#5141"),
)
def request_ids_unique(history: History) -> Evaluations:
    """Two open requests must differ in something by which they can be answered: their id, or the agent that asks.

    Otherwise one answer decides about two calls, or cannot say about which.

    Passes:
        send Pay
        model c1 pay(amount=5); c2 pay(amount=6)
        pause c1, c2
        reject c1
        reject c2
        go
        tell c1 rejected
        tell c2 rejected
        done

    Fails:
        send Pay
        model c1 pay(amount=5); c1#2 pay(amount=6)
        pause c1, c1#2
        end left
    """
    for turn in history.turns:
        seen: dict[tuple[Any, Any], Mapping[str, Any]] = {}
        for entry in turn.requests:
            first = seen.setdefault((entry.get("id"), entry.get("agent")), entry)
            if first is entry:
                yield OK
                continue
            actual = f"{first.get('label')} and {entry.get('label')} are both asked about as {entry.get('id')!r}"
            call = history.find_call(str(entry.get("label")), turn.session)
            yield Failure(call=call, expected="an id of its own", actual=actual, witness=(turn.ended,))
