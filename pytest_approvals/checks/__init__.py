"""Checks: what must hold of every recorded run, and how journals are judged.

judge(events)              all verdicts on one journal
judge_group(histories)     those on the journals of one scenario's variants
root_findings(verdicts)    the failures that do not follow from another one
check(slug, ...)           the decorator that makes a check of a function; see `_registry.py`
explain(slug)              what a check requires and why, with examples
observe_traits(history)    design choices of the agent that are neither right nor wrong
CHECKS, TRAITS             all checks and all traits by name
"""

from __future__ import annotations

from pytest_approvals.checks._check import OK, Check, Evaluations, Example, Failure
from pytest_approvals.checks._evaluation import judge, judge_group, mark_implied, root_findings
from pytest_approvals.checks._families import FAMILIES
from pytest_approvals.checks._registry import (
    CHECKS,
    check,
    explain,
    find_check,
    group_check,
    implied_checks,
    sort_checks,
)
from pytest_approvals.checks._traits import TRAITS, Trait, merge_traits, observe_traits
from pytest_approvals.checks._verdicts import (
    EFFECTS,
    FAILING_STATUSES,
    SEVERITIES,
    SHOWN_STATUSES,
    CheckFailed,
    Finding,
    Severity,
    Status,
    Verdict,
    count_statuses,
    is_failing,
    parse_severity,
    rank_severity,
    worst_status,
)

__all__ = [
    "CHECKS",
    "EFFECTS",
    "FAILING_STATUSES",
    "OK",
    "SEVERITIES",
    "SHOWN_STATUSES",
    "TRAITS",
    "Check",
    "CheckFailed",
    "Evaluations",
    "Example",
    "Failure",
    "Finding",
    "Severity",
    "Status",
    "Trait",
    "Verdict",
    "check",
    "count_statuses",
    "explain",
    "find_check",
    "group_check",
    "implied_checks",
    "is_failing",
    "judge",
    "judge_group",
    "mark_implied",
    "merge_traits",
    "observe_traits",
    "parse_severity",
    "rank_severity",
    "root_findings",
    "worst_status",
]

sort_checks(FAMILIES)
