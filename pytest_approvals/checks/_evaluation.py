"""Evaluation of journals: verdicts of all checks, and the root causes among the failures."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from dataclasses import replace

from pytest_approvals.checks._check import Check
from pytest_approvals.checks._registry import CHECKS, implied_checks
from pytest_approvals.checks._verdicts import SHOWN_STATUSES, Finding, Verdict, rank_severity
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history


def judge(subject: History | Iterable[Event], checks: Iterable[Check] | None = None) -> list[Verdict]:
    """Return all verdicts on one journal.

    A check that holds, or that the journal cannot decide, gives one verdict; one that does not hold gives one for each
    call concerned. A check that guards the run counts only if no other check explains what went wrong.

    Args:
        subject: The journal, or the history that was read from it.
        checks: All of `CHECKS` by default; those that compare several journals are left out.
    """
    history = subject if isinstance(subject, History) else read_history(subject)
    chosen = CHECKS.values() if checks is None else checks
    verdicts: list[Verdict] = []
    guards: list[Check] = []
    for check in chosen:
        if check.guards:
            guards.append(check)
        elif check.function is not None:
            verdicts += check.judge(_copy_history(history) if check.is_foreign else history)
    # Guards come last, because they are silent if another check has something to report.
    is_explained = any(verdict.status in SHOWN_STATUSES for verdict in verdicts)
    for check in guards:
        verdicts += [check.constant_verdicts["not-applicable"]] if is_explained else check.judge(history)
    return verdicts


def judge_group(histories: Sequence[History], checks: Iterable[Check] | None = None) -> list[Verdict]:
    """Return the verdicts on the journals of one scenario in its variants on one agent.

    Runs that failed a check of their own differ for that reason; leave them out.
    """
    verdicts: list[Verdict] = []
    for check in CHECKS.values() if checks is None else checks:
        if check.group is not None:
            verdicts += check.judge_group([*map(_copy_history, histories)] if check.is_foreign else histories)
    return verdicts


def _copy_history(history: History) -> History:
    """Return a history of its own, so that a check that changes it takes nothing away from the others."""
    return read_history(copy.deepcopy(history.events))


def root_findings(verdicts: Sequence[Verdict]) -> list[Finding]:
    """Return the failures that do not follow from another failure, each with those that follow from it.

    The gravest comes first; of equal severity, they are in the order of the verdicts.

    A failure follows from that of another check that implies it, for the same call, or for a call of an agent that it
    runs. A warning explains no failure.
    """
    shown = [verdict for verdict in verdicts if verdict.status in SHOWN_STATUSES]
    # By identity: equal verdicts of two sessions or forks are still two.
    causes = {id(verdict): _find_cause(verdict, shown) for verdict in shown}
    roots = [verdict for verdict in shown if causes[id(verdict)] is None]
    findings = [_build_finding(root, shown, causes) for root in roots]
    return sorted(findings, key=lambda finding: rank_severity(finding.severity))


def mark_implied(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Return the same verdicts, with `implied_by` set on those that follow from another one."""
    shown = [verdict for verdict in verdicts if verdict.status in SHOWN_STATUSES]
    return [_with_cause(verdict, _find_cause(verdict, shown)) if verdict in shown else verdict for verdict in verdicts]


def _build_finding(root: Verdict, shown: Sequence[Verdict], causes: dict[int, Verdict | None]) -> Finding:
    implied = tuple(_with_cause(verdict, root) for verdict in shown if _find_root(verdict, causes) is root)
    return Finding(
        verdict=root,
        requirement=CHECKS[root.check].requirement if root.check in CHECKS else "",
        severity=CHECKS[root.check].severity if root.check in CHECKS else "mistold",
        implied=tuple(verdict for verdict in implied if verdict.check != root.check or verdict.label != root.label),
    )


def _find_root(verdict: Verdict, causes: dict[int, Verdict | None]) -> Verdict:
    cause = causes[id(verdict)]
    return verdict if cause is None else _find_root(cause, causes)


def _with_cause(verdict: Verdict, cause: Verdict | None) -> Verdict:
    return verdict if cause is None else replace(verdict, implied_by=cause.check)


def _find_cause(verdict: Verdict, shown: Sequence[Verdict]) -> Verdict | None:
    return next((other for other in shown if other is not verdict and _explains(other, verdict)), None)


def _explains(cause: Verdict, verdict: Verdict) -> bool:
    if cause.status == "warning" and verdict.status != "warning":
        return False
    if verdict.check not in implied_checks(cause.check) or (cause.session != verdict.session):
        return False
    if cause.label is None or verdict.label is None or cause.label == verdict.label:
        return True
    # Labels of nested calls begin with that of the call that runs their agent.
    return verdict.label.startswith(f"{cause.label}/") or cause.label.startswith(f"{verdict.label}/")
