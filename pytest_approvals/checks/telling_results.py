"""Whether what the model is told of a call is what the tool returned, however the framework writes it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.journal.calls import CallSeen, Execution, Told
from pytest_approvals.journal.history import History

from .check import OK, Evaluations, Failure, check

_UNREADABLE = "<not JSON: "
"""How a journal marks a value that JSON cannot hold."""


@check(
    "result-matches-its-call",
    needs=("model.request", "tool.end"),
    sources=("langchain-ai/langgraph#8579", "pydantic/pydantic-ai#7815"),
)
def result_matches_its_call(history: History) -> Evaluations:
    """
    What the model is told as the result of a call must be what that call's run returned.

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
        for told in call.told:
            returned = [run for run in call.runs if run.how == "returned" and run.n < told.n and run.end is not None]
            if returned and all((run.ended or 0) > told.n for run in returned):
                yield _too_early(call, told, returned[-1])
            elif returned:
                yield _other_result(call, told, [run.result for run in returned], returned[-1].n)
            elif not call.runs:
                yield _foreign_result(history, call, told)


def _other_result(call: CallSeen, told: Told, results: list[object], n: int) -> Failure | None:
    if any(conveys(told.text, result) for result in results):
        return OK
    return Failure(
        call=call, expected=repr(results[-1]), actual=f"the model is told {told.text!r}", witness=(n, told.n)
    )


def _too_early(call: CallSeen, told: Told, run: Execution) -> Failure | None:
    """While a call runs, the model may be told that it does, but not what it returns."""
    if run.result is None or not conveys(told.text, run.result):
        return OK
    actual = f"the model is told {told.text!r} while it still runs"
    return Failure(call=call, expected="a result after the run", actual=actual, witness=(run.n, told.n))


def _foreign_result(history: History, call: CallSeen, told: Told) -> Failure | None:
    """A call that never ran cannot have what another one returned."""
    for run in history.executions:
        if _is_other(run, call) and tells_of(told.text, run.result):
            actual = f"the model is told {told.text!r}, which {run.call.label if run.call else ''} returned"
            return Failure(call=call, expected="no result: it did not run", actual=actual, witness=(run.n, told.n))
    return OK


def _is_other(run: Execution, call: CallSeen) -> bool:
    other = run.call
    returned = run.how == "returned" and run.session == call.session
    return returned and other is not None and other.label != call.label


def conveys(text: str | None, result: Any) -> bool:
    """
    Says whether *text* says *result*: as text, as JSON, or as Python writes it.

    Nothing conveys everything of nothing: a tool that returned None may be reported in any words.

    >>> conveys('{"paid":5}', {"paid": 5}), conveys("paid 6", "paid 5")
    (True, False)
    """
    if result is None:
        return True
    if text is None:
        return False
    if isinstance(result, str) and result.strip() in text:
        return True
    if _is_json_of(text, result):
        return True
    return all(_says(text, leaf) for leaf in _leaves(result))


def tells_of(text: str | None, result: Any) -> bool:
    """Says whether *text* is exactly *result*, and *result* long enough that this is no accident."""
    return isinstance(result, str) and len(result) > 3 and text is not None and text.strip() == result.strip()


def _is_json_of(text: str, result: Any) -> bool:
    try:
        return bool(json.loads(text) == result)
    except ValueError:
        return False


def _leaves(result: Any) -> Iterator[Any]:
    if isinstance(result, Mapping):
        for key, value in result.items():
            yield key
            yield from _leaves(value)
    elif isinstance(result, list | tuple):
        for value in result:
            yield from _leaves(value)
    else:
        yield result


def _says(text: str, leaf: Any) -> bool:
    if isinstance(leaf, str):
        return leaf.startswith(_UNREADABLE) or leaf.strip() in text or json.dumps(leaf)[1:-1] in text
    if leaf is None or isinstance(leaf, bool):
        return str(leaf).lower() in text.lower() or json.dumps(leaf) in text
    return str(leaf) in text or json.dumps(leaf) in text or f"{leaf:g}" in text
