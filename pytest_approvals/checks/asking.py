"""What is asked: every call that needs approval, and no other."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_approvals.agent_side.conditions import Condition
from pytest_approvals.journal.arguments import parsed
from pytest_approvals.journal.calls import CallSeen, Execution
from pytest_approvals.journal.history import History
from pytest_approvals.journal.turns import TurnSeen

from .check import OK, Evaluations, Failure, check
from .circumstances import cannot_run, siblings, waits_for_siblings, was_dropped


@check(
    "every-gated-call-asked",
    needs=("model.answer", "turn.end"),
    implies=("approved-runs", "result-delivered-once"),
    sources=("microsoft/agent-framework#5535", "pydantic/pydantic-ai#6491", "langchain-ai/langchain#38838"),
)
def every_gated_call_asked(history: History) -> Evaluations:
    """
    Every call that needs approval must surface as a request.

    A request that nobody sees is a call that nobody can decide about. By the end of its turn the call is asked about,
    or a standing decision covers it, or the turn failed visibly. The model may be answered instead where the tool is
    not there, the arguments do not fit, the policy failed, or a structured answer beside the call ended the run.
    Requests of one reply may surface one after the other.

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

    Passes, the arguments do not fit and the model is told:
        send Pay
        model c1 pay(amount=much)
        tell c1 amount must be an integer
        model Sorry.
        finish Sorry.

    Passes, the turn fails:
        send Pay
        model c1 pay(amount=5); c1#2 pay(amount=6)
        fail ModelBehaviorError: two calls with one id

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        tell c1 pending
        done

    Fails, it runs unasked:
        send Pay 5
        model c1 pay(amount=5)
        run c1 -> paid 5
        done
    """
    for call in history.calls:
        turn = call.turn
        if turn is None or turn.outcome in ("timeout", "open") or not call.gated:
            continue
        if call.asked or turn.failed or _is_covered(call, turn) or _is_answered(history, call):
            yield OK
        elif not _comes_later(history, call):
            actual = "none; it runs" if call.runs else "none"
            witness = (call.n, *(run.n for run in call.runs[:1]), turn.end.n if turn.end else 0)
            yield Failure(call=call, expected="a request about it", actual=actual, witness=witness)


def _comes_later(history: History, call: CallSeen) -> bool:
    """Whether the caller left, or dropped the reply, while another call of it was being asked about."""
    if call.runs or not any(sibling.asked for sibling in siblings(history, call)):
        return False
    return waits_for_siblings(history, call) or was_dropped(history, call)


def _is_covered(call: CallSeen, turn: TurnSeen) -> bool:
    return turn.end is not None and call.decision_at(turn.end.n) is not None


def _is_answered(history: History, call: CallSeen) -> bool:
    """Whether the model is told that a call could not even be asked about."""
    if call.runs or not call.told:
        return False
    raised = any(gate.raised is not None for gate in call.gates)
    repeated = call.occurrence > 1 or any(sibling.id == call.id for sibling in siblings(history, call))
    ended = call.answer.answer is not None
    return raised or repeated or ended or cannot_run(history, call, None)


@check(
    "policy-fails-closed",
    needs=("tool.start", "caller.decide"),
    implies=("approval-before-execution", "every-gated-call-asked"),
    sources=("langchain-ai/langchain#38838", "vercel/ai#15947"),
)
def policy_fails_closed(history: History) -> Evaluations:
    """
    A call whose policy failed, or could not judge it, must not run without approval.

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
        why = _why_closed(call)
        if why is None:
            continue
        run = next((run for run in call.runs if not _is_approved(call, run)), None)
        if run is None:
            yield OK
        else:
            witness = (call.n, *(gate.n for gate in call.gates if gate.n < run.n), run.n)
            yield Failure(call=call, expected="no run without approval", actual=f"it runs; {why}", witness=witness)


def _why_closed(call: CallSeen) -> str | None:
    if call.declared is None or not isinstance(call.declared.approval, Condition):
        return None
    if any(gate.raised is not None for gate in call.gates):
        return "the policy raised"
    if any(gate.answer is False for gate in call.gates):
        return None
    condition, arguments = call.declared.approval, parsed(call.arguments)
    if condition.answers or condition.raises:
        return None
    readable = isinstance(arguments, Mapping) and condition.argument in arguments
    return None if readable else "the policy could not judge its arguments"


def _is_approved(call: CallSeen, run: Execution) -> bool:
    given = call.decision_at(run.n)
    return given is not None and (given.approves or given.rejects)


@check("only-gated-asked", level="should", needs=("turn.end",), sources=("pydantic/pydantic-ai#3350",))
def only_gated_asked(history: History) -> Evaluations:
    """
    A person should not be asked about a call that needs no approval.

    Who is asked about everything stops reading.

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
        if not call.asked or call.declared is None:
            continue
        asked = call.asked[0]
        if call.may_be_gated or any(run.how == "asked" and run.n < asked.n for run in call.runs):
            yield OK
        else:
            yield Failure(call=call, expected="no request", actual="a request", witness=(call.n, asked.n))
