"""
How things in a journal are said to people: values, calls, decisions.

Transcripts, findings and reports take their words from here and from `lines_of.py`, so that they read alike.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from .arguments import parsed
from .calls import CallSeen, Given
from .events import Decide

_VERBS = {
    "approve": "approves",
    "reject": "rejects",
    "edit": "approves",
    "always": "always approves",
    "never": "always rejects",
    "raw": "answers",
}
_DONE = {
    "approve": "approved",
    "reject": "rejected",
    "edit": "approved",
    "always": "always approved",
    "never": "always rejected",
    "raw": "answered",
}


def said(value: Any) -> str:
    """
    Says a value: compact JSON, keys sorted.

    >>> said({"b": [1, True], "a": "é"})
    '{"a": "é", "b": [1, true]}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def said_call(tool: str, arguments: Any) -> str:
    """
    Says a call: tool and arguments, sorted by name.

    >>> said_call("pay", {"to": "bob", "amount": 5})
    'pay(amount=5, to="bob")'
    >>> said_call("pay", '{"amount": ')
    'pay("{\\\\"amount\\\\": ")'
    """
    return f"{tool}({said_arguments(arguments)})"


def said_arguments(arguments: Any) -> str:
    """Says arguments alone; text that is no JSON object is quoted as it is."""
    given = parsed(arguments)
    if not isinstance(given, Mapping):
        return said(arguments)
    return ", ".join(f"{name}={said(given[name])}" for name in sorted(given))


def said_labels(labels: Iterable[str]) -> str:
    """Says several labels: `c1, c2`; `nothing` where there are none."""
    return ", ".join(labels) or "nothing"


def said_error(error: Sequence[str] | None) -> str:
    """Says an error by its type alone: messages differ between processes and releases."""
    return error[0].rpartition(".")[2] if error else "an error"


def said_times(count: int) -> str:
    """
    Says how often.

    >>> [said_times(count) for count in (0, 1, 2, 3)]
    ['not at all', 'once', 'twice', '3 times']
    """
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count} times")


def said_decision(event: Decide, about: str) -> str:
    """
    Says a decision as the caller makes it: `rejects c1: keep b`.

    Arguments:
        about: What it is about: a label, or what stands in the place of one.
    """
    return _decision(event, f"{_VERBS.get(event.verdict, event.verdict)} {about}")


def said_given(given: Given) -> str:
    """Says a decision as it was made: `rejected: keep b`."""
    return _decision(given.event, _DONE.get(given.verdict, given.verdict))


def _decision(event: Decide, said_so_far: str) -> str:
    if event.verdict == "raw":
        return f"{said_so_far} with {said(_raw_verdict(event.raw))}"
    if event.missing:
        return f"{said_so_far}, for want of an answer"
    if event.tool is not None:
        said_so_far += f" as {said_call(event.tool, event.arguments or {})}"
    elif event.arguments is not None:
        said_so_far += f" with {said_arguments(event.arguments) or 'no arguments'}"
    if event.shows is not None:
        said_so_far += f" as if it were {said_call(event.shows.get('tool', ''), event.shows.get('arguments'))}"
    return f"{said_so_far}: {event.reason}" if event.reason is not None else said_so_far


def _raw_verdict(raw: Any) -> Any:
    return raw["verdict"] if isinstance(raw, Mapping) and raw.keys() == {"verdict"} else raw


def said_fate(call: CallSeen, restores: Collection[int] = ()) -> str:
    """
    Says what became of a call, from being asked for to being told: `asked → approved → ran → told "ok"`.

    Arguments:
        restores: The positions at which saves were taken up: what is listed there was asked before.
    """
    return " → ".join((*_asking(call, restores), *_deciding(call), _running(call), _telling(call)))


def _asking(call: CallSeen, restores: Collection[int]) -> Iterable[str]:
    times = len({asked.q for asked in call.asked if asked.n not in restores})
    if times:
        yield "asked" if times == 1 else f"asked {said_times(times)}"
    else:
        yield "not asked" if call.gated else "not gated"


def _deciding(call: CallSeen) -> Iterable[str]:
    if call.decisions:
        yield " and then ".join(said_given(given) for given in call.decisions)
    elif standing := [given for given in call.standing if given.in_force(_end_of(call))]:
        yield f"{said_given(standing[-1])} before"
    elif call.asked:
        yield "undecided"


def _end_of(call: CallSeen) -> int:
    last = [run.n for run in call.runs] + [told.n for told in call.told]
    return max(last, default=call.n)


def _running(call: CallSeen) -> str:
    if not call.runs:
        return "not run"
    count = "ran" if len(call.runs) == 1 else f"ran {said_times(len(call.runs))}"
    ends = [_ended(call, run.how, run.error) for run in call.runs]
    other = [text for text in dict.fromkeys(_as_other(call, run) for run in call.runs) if text]
    return ", ".join((count, *other, *(end for end in ends if end)))


def _ended(call: CallSeen, how: str, error: Sequence[str] | None) -> str:
    if how == "raised":
        return f"raised {said_error(error)}"
    return {"asked": "asked again", "cancelled": "was cancelled", "open": "did not end"}.get(how, "")


def _as_other(call: CallSeen, run: Any) -> str:
    if said_call(run.tool, run.arguments) == said_call(call.tool, call.arguments):
        return ""
    return f"as {said_call(run.tool, run.arguments)}"


def _telling(call: CallSeen) -> str:
    if not call.told:
        return "not told"
    return "told " + " and then ".join(said(told.text) for told in call.told)
