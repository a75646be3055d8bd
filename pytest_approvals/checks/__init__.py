"""
What must hold of every recorded run: the checks, a family a file, and how journals are judged with them.

    judge(events)              all verdicts on one journal
    judge_group(histories)     those on the journals of one scenario's variants
    weakest(verdicts)          the findings: failures that do not follow from another one
    explain(slug)              what a check requires and why, with examples
    CHECKS                     all checks by slug
"""

from __future__ import annotations

from pytest_approvals.errors import UsageError

from . import (
    asking,
    asking_requests,
    decisions,
    decisions_others,
    ending,
    ending_answers,
    ending_sessions,
    execution,
    execution_arguments,
    execution_once,
    harness,
    state,
    state_outcome,
    state_stream,
    telling,
    telling_hangups,
    telling_history,
    telling_inputs,
    telling_results,
)
from .check import CHECKS, OK, Check, Evaluations, Failure, check, group_check
from .judging import check_named, consequences, explain, explained, judge, judge_group, weakest
from .verdicts import FAILING, SHOWN, Finding, Status, Verdict, counted, worst

__all__ = [
    "CHECKS",
    "FAILING",
    "OK",
    "SHOWN",
    "Check",
    "Evaluations",
    "Failure",
    "Finding",
    "Status",
    "Verdict",
    "check",
    "check_named",
    "consequences",
    "counted",
    "explain",
    "explained",
    "group_check",
    "judge",
    "judge_group",
    "weakest",
    "worst",
]

_FAMILIES = (
    *(execution, execution_once, execution_arguments),
    *(asking, asking_requests),
    *(telling, telling_results, telling_inputs, telling_history, telling_hangups),
    *(state, state_stream, state_outcome),
    *(decisions, decisions_others),
    *(ending, ending_answers, ending_sessions),
    harness,
)


def _in_order() -> None:
    """Sorts `CHECKS` by family, and makes sure that what checks imply exists and explains nothing in a circle."""
    places = {family.__name__.rpartition(".")[2]: place for place, family in enumerate(_FAMILIES)}
    modules = {slug: _module(known) for slug, known in CHECKS.items()}
    ordered = sorted(CHECKS.items(), key=lambda item: places[modules[item[0]]])
    CHECKS.clear()
    CHECKS.update(ordered)
    for slug, known in CHECKS.items():
        unknown = [implied for implied in known.implies if implied not in CHECKS]
        if unknown:
            raise UsageError(f"check {slug!r} implies checks that do not exist: {', '.join(unknown)}")
        if slug in consequences(slug):
            raise UsageError(f"check {slug!r} implies itself, over {', '.join(known.implies)}")


def _module(known: Check) -> str:
    function = known.function or known.group
    return function.__module__.rpartition(".")[2] if function is not None else ""


_in_order()
