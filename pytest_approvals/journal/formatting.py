"""Formatting of values, calls and decisions for people.

Transcripts, findings and reports take their words from here and from `descriptions.py`, so that they read alike.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from pytest_approvals.journal.arguments import parse_arguments
from pytest_approvals.journal.events import DecisionMade
from pytest_approvals.journal.history import RecordedCall, RecordedDecision

_VERBS = {
    "approve": "approves",
    "reject": "rejects",
    "edit": "approves",
    "always": "always approves",
    "never": "always rejects",
    "raw": "answers",
}
_PARTICIPLES = {
    "approve": "approved",
    "reject": "rejected",
    "edit": "approved",
    "always": "always approved",
    "never": "always rejected",
    "raw": "answered",
}


def format_value(value: Any) -> str:
    """Return a value as compact JSON, keys sorted.

    >>> format_value({"b": [1, True], "a": "é"})
    '{"a": "é", "b": [1, true]}'
    """
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def format_call(tool: str, arguments: Any) -> str:
    r"""Return a call: tool and arguments, sorted by name.

    >>> format_call("pay", {"to": "bob", "amount": 5})
    'pay(amount=5, to="bob")'
    >>> format_call("pay", '{"amount": ')
    'pay("{\\"amount\\": ")'
    """
    return f"{tool}({format_arguments(arguments)})"


def format_arguments(arguments: Any) -> str:
    """Return arguments alone, sorted by name; text that is not a JSON object is quoted as it is."""
    parsed = parse_arguments(arguments)
    if not isinstance(parsed, Mapping):
        return format_value(arguments)
    return ", ".join(f"{name}={format_value(parsed[name])}" for name in sorted(parsed))


def format_labels(labels: Iterable[str]) -> str:
    """Return several labels: `c1, c2`; `nothing` if there are none."""
    return ", ".join(labels) or "nothing"


def format_error(error: Sequence[str] | None) -> str:
    """Return the type of an error alone: messages differ between processes and releases."""
    # The module of an exception class differs between releases, its name hardly ever.
    return error[0].rpartition(".")[2] if error else "an error"


def format_count(count: int) -> str:
    """Return how often something happened.

    >>> [format_count(count) for count in (0, 1, 2, 3)]
    ['not at all', 'once', 'twice', '3 times']
    """
    return {0: "not at all", 1: "once", 2: "twice"}.get(count, f"{count} times")


def format_decision(event: DecisionMade, about: str) -> str:
    """Return a decision as the caller makes it: `rejects c1: keep b`.

    Args:
        event: The decision.
        about: What it is about: a label, or a description of it.
    """
    return _format_decision_details(event, f"{_VERBS.get(event.verdict, event.verdict)} {about}")


def format_recorded_decision(decision: RecordedDecision) -> str:
    """Return a decision as it was made: `rejected: keep b`."""
    return _format_decision_details(decision.event, _PARTICIPLES.get(decision.verdict, decision.verdict))


def _format_decision_details(event: DecisionMade, text: str) -> str:
    if event.verdict == "raw":
        return f"{text} with {format_value(_raw_verdict(event.raw))}"
    if event.missing:
        return f"{text}, for want of an answer"
    if event.tool is not None:
        text += f" as {format_call(event.tool, event.arguments or {})}"
    elif event.arguments is not None:
        text += f" with {format_arguments(event.arguments) or 'no arguments'}"
    if event.shows is not None:
        text += f" as if it were {format_call(event.shows.get('tool', ''), event.shows.get('arguments'))}"
    return f"{text}: {event.reason}" if event.reason is not None else text


def _raw_verdict(raw: Any) -> Any:
    return raw["verdict"] if isinstance(raw, Mapping) and raw.keys() == {"verdict"} else raw


def format_call_lifecycle(call: RecordedCall, restores: Collection[int] = ()) -> str:
    """Return the history of a call, from being asked for to being told: `asked → approved → ran → told "ok"`.

    Args:
        call: The call.
        restores: The positions of restores: what is listed there was asked before.
    """
    return " → ".join(
        (
            *_describe_requests(call, restores),
            *_describe_decisions(call),
            _describe_executions(call),
            _describe_deliveries(call),
        )
    )


def _describe_requests(call: RecordedCall, restores: Collection[int]) -> Iterable[str]:
    times = len({request.q for request in call.requests if request.n not in restores})
    if times:
        yield "asked" if times == 1 else f"asked {format_count(times)}"
    else:
        yield "not asked" if call.is_gated else "not gated"


def _describe_decisions(call: RecordedCall) -> Iterable[str]:
    if call.decisions:
        yield " and then ".join(format_recorded_decision(decision) for decision in call.decisions)
    elif standing := [decision for decision in call.standing_decisions if decision.is_in_force(_last_position(call))]:
        yield f"{format_recorded_decision(standing[-1])} before"
    elif call.requests:
        yield "undecided"


def _last_position(call: RecordedCall) -> int:
    last = [execution.n for execution in call.executions] + [delivery.n for delivery in call.deliveries]
    return max(last, default=call.n)


def _describe_executions(call: RecordedCall) -> str:
    if not call.executions:
        return "not run"
    count = "ran" if len(call.executions) == 1 else f"ran {format_count(len(call.executions))}"
    ends = [_describe_execution_end(call, execution.how, execution.error) for execution in call.executions]
    other = [
        text for text in dict.fromkeys(_describe_changed_call(call, execution) for execution in call.executions) if text
    ]
    return ", ".join((count, *other, *(end for end in ends if end)))


def _describe_execution_end(call: RecordedCall, how: str, error: Sequence[str] | None) -> str:
    if how == "raised":
        return f"raised {format_error(error)}"
    return {"asked": "asked again", "cancelled": "was cancelled", "open": "did not end"}.get(how, "")


def _describe_changed_call(call: RecordedCall, execution: Any) -> str:
    if format_call(execution.tool, execution.arguments) == format_call(call.tool, call.arguments):
        return ""
    return f"as {format_call(execution.tool, execution.arguments)}"


def _describe_deliveries(call: RecordedCall) -> str:
    if not call.deliveries:
        return "not told"
    return "told " + " and then ".join(format_value(delivery.text) for delivery in call.deliveries)


def format_streamed_id(label: str, number: int) -> str:
    """Return the id of a call in one chunk of a stream that gives it another one in each; no other call has it.

    >>> format_streamed_id("o1/c1#2", 3)
    'o1-c1-2-3'
    """
    # Providers refuse an id with other characters.
    return f"{_NO_PART_OF_AN_ID.sub('-', label)}-{number}"


_NO_PART_OF_AN_ID = re.compile(r"[^A-Za-z0-9_-]")
