"""
What must hold of every recorded run: the checks, a family a file, and how journals are judged with them.

    judge(events)              all verdicts on one journal
    judge_group(histories)     those on the journals of one scenario's variants
    weakest(verdicts)          the findings: failures that do not follow from another one
    explain(slug)              what a check requires and why, with examples
    CHECKS                     all checks by slug
"""

from __future__ import annotations

from pytest_approvals.checks._check import CHECKS, OK, Check, Evaluations, Failure, check, group_check
from pytest_approvals.checks._evaluation import (
    explain,
    find_check,
    implied_checks,
    judge,
    judge_group,
    mark_implied,
    root_findings,
)
from pytest_approvals.checks._families import (
    asking,
    decisions,
    ending,
    execution,
    execution_arguments,
    harness,
    state,
    state_outcome,
    telling,
    telling_inputs,
)
from pytest_approvals.checks._verdicts import (
    FAILING_STATUSES,
    SHOWN_STATUSES,
    Finding,
    Status,
    Verdict,
    count_statuses,
    worst_status,
)
from pytest_approvals.errors import UsageError

__all__ = [
    "CHECKS",
    "FAILING_STATUSES",
    "OK",
    "SHOWN_STATUSES",
    "Check",
    "Evaluations",
    "Failure",
    "Finding",
    "Status",
    "Verdict",
    "check",
    "find_check",
    "implied_checks",
    "count_statuses",
    "explain",
    "mark_implied",
    "group_check",
    "judge",
    "judge_group",
    "root_findings",
    "worst_status",
]

_FAMILIES = (
    *(execution, execution, execution_arguments),
    *(asking, asking),
    *(telling, telling, telling_inputs, telling_inputs, telling_inputs),
    *(state, state, state_outcome),
    *(decisions, decisions),
    *(ending, ending, ending),
    harness,
)


def _sort_checks() -> None:
    """Sorts `CHECKS` by family, and makes sure that what checks imply exists and explains nothing in a circle."""
    places = {family.__name__.rpartition(".")[2]: place for place, family in enumerate(_FAMILIES)}
    modules = {slug: _module_of(known) for slug, known in CHECKS.items()}
    ordered = sorted(CHECKS.items(), key=lambda item: places[modules[item[0]]])
    CHECKS.clear()
    CHECKS.update(ordered)
    for slug, known in CHECKS.items():
        unknown = [implied for implied in known.implies if implied not in CHECKS]
        if unknown:
            raise UsageError(f"check {slug!r} implies checks that do not exist: {', '.join(unknown)}")
        if slug in implied_checks(slug):
            raise UsageError(f"check {slug!r} implies itself, over {', '.join(known.implies)}")


def _module_of(known: Check) -> str:
    function = known.function or known.group
    return function.__module__.rpartition(".")[2] if function is not None else ""


_sort_checks()
