"""Family `telling`: the model is told each result once, as the tool returned it, and each rejection."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.checks._check import OK, Evaluations, Failure
from pytest_approvals.checks._queries import was_trimmed_between
from pytest_approvals.checks._registry import check
from pytest_approvals.journal.arguments import are_same_values
from pytest_approvals.journal.history import (
    DeliveredResult,
    Exchange,
    Execution,
    History,
    RecordedCall,
    RecordedDecision,
)


@check(
    "result-delivered-once",
    severity="lost-effect",
    needs=("model.request", "tool.end"),
    implies=("model-input-well-formed", "rejection-told"),
    sources=("microsoft/agent-framework#7267", "agno-agi/agno#10461", "pydantic/pydantic-ai#6319"),
)
def result_delivered_once(history: History) -> Evaluations:
    """Each call that the model is shown must have exactly one result there, and the result of what ran must be told.

    A model that is not told what it did does it again. If the turn failed before the call became part of the history,
    the call may be missing there with its result; so may what the framework trimmed. An agent that took a conversation
    over may be told in words what the calls of the previous agent returned.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        approve c1
        go
        run c1 -> paid 5
        done

    Passes, a sub-agent that is given up for a new message:
        tool delegate(input: string) never runs helper
        tool pay(amount: integer) always of helper
        send Pay 5
        model o1 delegate(input=Pay 5)
        model @o1/helper o1/c1 pay(amount=5)
        pause o1/c1
        tell o1 not executed
        send Never mind
        done
        send Goodbye
        done

    Fails, a call without its result:
        send Go
        model c1 read(path=a)
        run c1 -> text
        untell c1
        done

    Fails, two results:
        send Go
        model c1 read(path=a)
        run c1 -> text
        tell c1 text
        done

    Fails, a result that is lost with its call:
        send Go
        model c1 pay(amount=5); c2 read(path=a)
        run c2 -> text
        pause c1
        forget c2
        forget c1
        send Never mind
        done
    """
    dangling = _first_unanswered_inputs(history)
    for call in history.calls:
        if not call.deliveries and not call.executions and id(call) not in dangling:
            continue
        second = next((delivery for delivery in call.deliveries if delivery.second), None)
        lost = _find_lost_result(history, call)
        if second is not None:
            first = call.deliveries[0]
            yield Failure(call=call, expected="1 result", actual="2 results", witness=(first.n, second.n))
        elif id(call) in dangling:
            actual = "none in the model's input"
            yield Failure(call=call, expected="1 result", actual=actual, witness=(call.n, dangling[id(call)].n))
        elif lost is not None:
            execution, exchange = lost
            actual = "neither call nor result in the model's input"
            yield Failure(call=call, expected="1 result", actual=actual, witness=(execution, exchange.n))
        else:
            yield OK


def _first_unanswered_inputs(history: History) -> dict[int, Exchange]:
    """Return the first model input in which each call has no result, by the identity of the call."""
    inputs: dict[int, Exchange] = {}
    for exchange in history.exchanges:
        for call in exchange.unanswered:
            inputs.setdefault(id(call), exchange)
    return inputs


def _find_lost_result(history: History, call: RecordedCall) -> tuple[int, Exchange] | None:
    """Return the position of the execution and the next model input, if that does not contain the call at all."""
    execution = call.first_return
    if (
        execution is None
        or execution.ended is None
        or call.kind == "hosted_mcp"
        or any(delivery.n >= execution.ended for delivery in call.deliveries)
    ):
        return None
    after = next(following_exchanges(history, call, execution.ended), None)
    # A failed turn may have been undone together with its calls.
    if after is None or (execution.turn is not None and execution.turn.failed):
        return None
    if was_trimmed_between(history, call.n, after.n, call.session) or after.reply is None:
        return None
    if after.agent != call.agent and _is_told_in_words(call, after):
        return None
    return execution.n, after


def _is_told_in_words(call: RecordedCall, exchange: Exchange) -> bool:
    """Return whether the agent that took a conversation over is told of a call in words, or need not be.

    It need not be told that it was handed over.
    """
    if call.declaration is not None and call.declaration.hands_over_to is not None:
        return True
    execution = call.first_return
    text = execution.end.result if execution is not None and execution.end is not None else None
    return isinstance(text, str) and any(text in (item.get("text") or "") for item in exchange.items)


def following_exchanges(history: History, call: RecordedCall, n: int) -> Iterator[Exchange]:
    """Yield the exchanges of a call's conversation, in its branch, after position *n*."""
    where = (call.conversation, call.session, call.branch)
    for exchange in history.exchanges:
        if exchange.n > n and (exchange.conversation, exchange.session, exchange.branch) == where:
            yield exchange


@check(
    "rejection-told",
    severity="mistold",
    needs=("model.request", "caller.decide"),
    implies=("reason-told", "model-input-well-formed"),
    sources=("microsoft/autogen#7956", "openai/openai-agents-python#4409"),
)
def rejection_told(history: History) -> Evaluations:
    """The model must be told that a call was rejected, when it is asked next.

    It waits for an answer to its call; without one it cannot go on, or believes that the call succeeded.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        tell c1 The call was denied.
        done

    Passes, a hosted call:
        tool search(query) always hosted web
        rules responses
        send Search
        model c1 search(query=cats)
        pause c1
        reject c1
        go
        respond c1 no
        done

    Fails:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1
        go
        forget c1
        done
    """
    for call, decision, exchange in _rejected_calls(history):
        if call.kind == "hosted_mcp":
            is_told = any(
                n <= exchange.n and not approved
                for n, approved in call.approval_responses
                if n > (decision.handed_in_at or 0)
            )
        else:
            is_told = any(delivery.n <= exchange.n and (delivery.text or "").strip() for delivery in call.deliveries)
            # If the caller gave an empty reason, that may be all that the model is told.
            is_told = is_told or (decision.event.reason == "" and bool(call.deliveries))
        if is_told:
            yield OK
        else:
            actual = "it is told nothing about it" if not call.deliveries else "it is told an empty text"
            expected = "the model is told of the rejection"
            yield Failure(call=call, expected=expected, actual=actual, witness=(decision.n, exchange.n))


def _rejected_calls(history: History) -> Iterator[tuple[RecordedCall, RecordedDecision, Exchange]]:
    """Yield rejected calls with the rejection and the next request to their model."""
    for call in history.calls:
        decision = call.decision
        if decision is None or not decision.rejects or decision.handed_in_at is None or call.first_return is not None:
            continue
        exchange = next(following_exchanges(history, call, max(decision.handed_in_at, call.n)), None)
        if exchange is None or was_trimmed_between(history, decision.handed_in_at, exchange.n, call.session):
            continue
        if decision.turn is not None and not decision.turn.failed:
            yield call, decision, exchange


@check(
    "reason-told",
    severity="mistold",
    level="should",
    needs=("model.request", "caller.decide"),
    sources=("microsoft/autogen#7387", "openai/openai-agents-python#4409"),
)
def reason_told(history: History) -> Evaluations:
    """The model should be told the reason that the person gave.

    With it, it can do better; without it, it tries again.

    Passes:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied: over the limit
        done

    Warns:
        send Pay 5
        model c1 pay(amount=5)
        pause c1
        reject c1 over the limit
        go
        tell c1 Denied
        done
    """
    for call, decision, exchange in _rejected_calls(history):
        reason = decision.event.reason
        if not reason or call.kind == "hosted_mcp":
            continue
        texts = [delivery.text or "" for delivery in call.deliveries if delivery.n <= exchange.n]
        if any(_collapse_whitespace(reason) in _collapse_whitespace(text) for text in texts):
            yield OK
        elif texts:
            witness = (decision.n, exchange.n)
            yield Failure(call=call, expected=f"{reason!r} in what it is told", actual=repr(texts[-1]), witness=witness)


def _collapse_whitespace(text: str) -> str:
    return " ".join(text.split())


_PLACEHOLDER_PREFIX = "<not JSON: "
"""How a journal marks a value that JSON cannot hold."""


@check(
    "result-matches-its-call",
    severity="mistold",
    needs=("model.request", "tool.end"),
    sources=("langchain-ai/langgraph#8579", "pydantic/pydantic-ai#7815"),
)
def result_matches_its_call(history: History) -> Evaluations:
    """What the model is told as the result of a call must be what that call's run returned.

    Results that are swapped between calls, made up, or taken from elsewhere mislead the model about what was done.

    Passes:
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        done

    Fails:
        send Go
        model c1 read(path=a); c2 read(path=b)
        run c1 -> text of a
        run c2 -> text of b
        untell c1
        untell c2
        tell c1 text of b
        tell c2 text of a
        done

    Fails, a result of a call that never ran:
        send Go
        model c1 pay(amount=5); c2 read(path=b)
        run c2 -> text of b
        pause c1
        reject c1
        go
        tell c1 text of b
        done
    """
    for call in history.calls:
        for delivery in call.deliveries:
            returned = [
                execution
                for execution in call.executions
                if execution.how == "returned" and execution.n < delivery.n and execution.end is not None
            ]
            if returned and all((execution.ended or 0) > delivery.n for execution in returned):
                yield _find_early_result(call, delivery, returned[-1])
            elif returned:
                yield _compare_results(call, delivery, [execution.result for execution in returned], returned[-1].n)
            elif not call.executions:
                yield _find_foreign_result(history, call, delivery)


def _compare_results(call: RecordedCall, delivery: DeliveredResult, results: list[object], n: int) -> Failure | None:
    if any(conveys_result(delivery.text, result) for result in results):
        return OK
    return Failure(
        call=call, expected=repr(results[-1]), actual=f"the model is told {delivery.text!r}", witness=(n, delivery.n)
    )


def _find_early_result(call: RecordedCall, delivery: DeliveredResult, execution: Execution) -> Failure | None:
    """Return a failure if the result is told while the call still runs; that it runs may be told."""
    if execution.result is None or not conveys_result(delivery.text, execution.result):
        return OK
    actual = f"the model is told {delivery.text!r} while it still runs"
    return Failure(call=call, expected="a result after the run", actual=actual, witness=(execution.n, delivery.n))


def _find_foreign_result(history: History, call: RecordedCall, delivery: DeliveredResult) -> Failure | None:
    """Return a failure if a call that never ran is given what another one returned."""
    for execution in history.executions:
        if _returned_for_other_call(execution, call) and equals_result(delivery.text, execution.result):
            actual = (
                f"the model is told {delivery.text!r}, which {execution.call.label if execution.call else ''} returned"
            )
            return Failure(
                call=call, expected="no result: it did not run", actual=actual, witness=(execution.n, delivery.n)
            )
    return OK


def _returned_for_other_call(execution: Execution, call: RecordedCall) -> bool:
    other = execution.call
    returned = execution.how == "returned" and execution.session == call.session
    return returned and other is not None and other.label != call.label


def conveys_result(text: str | None, result: Any) -> bool:
    """Return whether *text* says *result*: as text, as JSON, or as Python writes it.

    A tool that returned None may be reported in any words.

    >>> conveys_result('{"paid":5}', {"paid": 5}), conveys_result("paid 6", "paid 5")
    (True, False)
    """
    if result is None:
        return True
    if text is None:
        return False
    if isinstance(result, str) and result.strip() in text:
        return True
    if _is_json_equal(text, result):
        return True
    return all(_contains_leaf(text, leaf) for leaf in _iterate_leaves(result))


def equals_result(text: str | None, result: Any) -> bool:
    """Return whether *text* is exactly *result*, and *result* is long enough to rule out chance."""
    return isinstance(result, str) and len(result) > 3 and text is not None and text.strip() == result.strip()


def _is_json_equal(text: str, result: Any) -> bool:
    try:
        return are_same_values(json.loads(text), result)
    except (ValueError, RecursionError):
        return False


def _iterate_leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield key
            yield from _iterate_leaves(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from _iterate_leaves(value)
    else:
        yield result


def _contains_leaf(text: str, leaf: Any) -> bool:
    if isinstance(leaf, str):
        return leaf.startswith(_PLACEHOLDER_PREFIX) or leaf.strip() in text or json.dumps(leaf)[1:-1] in text
    if leaf is None or isinstance(leaf, bool):
        return str(leaf).lower() in text.lower() or json.dumps(leaf) in text
    if str(leaf) in text or json.dumps(leaf) in text:
        return True
    # A whole number may be too large for a fraction.
    return abs(leaf) < sys.float_info.max and f"{leaf:g}" in text
