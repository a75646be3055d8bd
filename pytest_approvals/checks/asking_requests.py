"""How is asked: about the call as it is, once, and so that it can be answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_approvals.journal.arguments import parsed, same_arguments
from pytest_approvals.journal.calls import Asked, CallSeen, Given
from pytest_approvals.journal.history import History
from pytest_approvals.journal.wording import said_call

from .check import OK, Evaluations, Failure, check
from .circumstances import rewritten_between


@check(
    "asked-once",
    needs=("turn.end", "caller.decide"),
    implies=("nothing-left-pending", "run-ends"),
    sources=("openai/openai-agents-python#2487", "openai/openai-agents-python#5141"),
)
def asked_once(history: History) -> Evaluations:
    """
    A person must not be asked again about a call that they decided.

    Listing a request that is still pending is not asking. A request may come back when the decision was refused, when
    the turn failed, or when the tool asks again in its middle.

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
    """
    for call in history.calls:
        given = next((given for given in call.decisions if _was_taken(given)), None)
        if given is None:
            continue
        again = _listed_again(history, call, given)
        if again is None:
            yield OK
        else:
            actual = "it is asked about again after it was decided"
            yield Failure(call=call, expected="1 request", actual=actual, witness=(call.asked[0].n, given.n, again))


def _was_taken(given: Given) -> bool:
    turn = given.turn
    decides = given.approves or given.rejects
    return decides and not given.refused and turn is not None and turn.outcome in ("paused", "finished")


def _listed_again(history: History, call: CallSeen, given: Given) -> int | None:
    """Gives the end of the turn that asks again; listings after a restore and at the end are not asking."""
    taken = given.taken or 0
    listed = sorted(n for asked in call.asked for n, _ in asked.listed if n > taken)
    if not listed:
        return None
    ends = {turn.end.n for turn in history.turns if turn.end is not None}
    asking = [run.ended or 0 for run in call.runs if run.how == "asked" and run.n > taken]
    return next((n for n in listed if n in ends and not any(asked < n for asked in asking)), None)


@check(
    "request-shows-the-call",
    needs=("model.answer", "turn.end"),
    implies=("approval-before-execution", "every-gated-call-asked", "arguments-as-approved", "pending-survives"),
    sources=("openai/openai-agents-python#4257", "strands-agents/harness-sdk#3076"),
)
def request_shows_the_call(history: History) -> Evaluations:
    """
    A request must show the call that it is about: its tool, its arguments, and its id where it shows one.

    A person can only decide about what they see. What is shown again after a restore is the same, unless somebody
    changed what was saved: then it is what the save says.

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

    Passes, after what was saved has been changed:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        rewrite 5 1
        restore save-1: c1 pay(amount=1)
        end left

    Fails, after a restore:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        save
        restore save-1: c1 pay(amount=1)
        end left
    """
    for asked in history.requests:
        if asked.call is None:
            if not _of_another_session(history, asked):
                text = said_call(str(asked.entry.get("tool")), asked.entry.get("arguments"))
                actual = f"a request about {text}"
                expected = "a request about a call that the model made"
                yield Failure(expected=expected, actual=actual, witness=(asked.n,), session=asked.session)
            continue
        yield _misrepresented(history, asked.call, asked)


def _misrepresented(history: History, call: CallSeen, asked: Asked) -> Failure | None:
    edited = next((given.n for given in call.decisions if given.verdict == "edit"), None)
    for n, entry in asked.listed:
        if (edited is not None and n > edited) or rewritten_between(history, call.n, n, call.session):
            break
        if entry.get("tool") != call.tool or not _shows(entry.get("arguments"), call):
            expected, actual = (
                said_call(call.tool, call.arguments),
                said_call(str(entry.get("tool")), entry.get("arguments")),
            )
            return Failure(call=call, expected=expected, actual=f"{actual} is shown", witness=(call.n, n))
        if entry.get("kind", "function") != call.kind or entry.get("server") != call.server:
            expected = f"a request of kind {call.kind}" + (f" of {call.server}" if call.server else "")
            actual = f"one of kind {entry.get('kind')}" + (f" of {entry['server']}" if entry.get("server") else "")
            return Failure(call=call, expected=expected, actual=actual, witness=(call.n, n))
    return OK


def _shows(arguments: Any, call: CallSeen) -> bool:
    if same_arguments(arguments, call.arguments, call.parameters):
        return True
    given = parsed(call.arguments)
    if isinstance(given, Mapping) or not isinstance(call.arguments, str):
        return False
    return call.arguments.strip() in str(arguments) or not call.arguments.strip()


def _of_another_session(history: History, asked: Asked) -> bool:
    entry = asked.entry
    return any(
        call.session != asked.session
        and call.tool == entry.get("tool")
        and same_arguments(entry.get("arguments"), call.arguments, call.parameters)
        for call in history.calls
    )


@check(
    "request-ids-unique",
    needs=("turn.end",),
    implies=("arguments-as-approved", "approval-before-execution", "asked-once", "approved-runs"),
    sources=("microsoft/agent-framework#7383", "openai/openai-agents-python#5141"),
)
def request_ids_unique(history: History) -> Evaluations:
    """
    Two open requests must differ in something by which they can be answered: their id, or the agent that asks.

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
        if not turn.requests or turn.end is None:
            continue
        seen: dict[tuple[Any, Any], Mapping[str, Any]] = {}
        for entry in turn.requests:
            first = seen.setdefault((entry.get("id"), entry.get("agent")), entry)
            if first is entry:
                yield OK
                continue
            actual = f"{first.get('label')} and {entry.get('label')} are both asked about as {entry.get('id')!r}"
            call = history.call(str(entry.get("label")), turn.session)
            yield Failure(call=call, expected="an id of its own", actual=actual, witness=(turn.end.n,))
