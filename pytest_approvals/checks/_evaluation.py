"""How journals are judged, and which of the failures stand for themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_approvals.checks._check import CHECKS, Check
from pytest_approvals.checks._verdicts import SHOWN_STATUSES, Finding, Verdict
from pytest_approvals.errors import UnknownName
from pytest_approvals.journal.events import Event
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history


def judge(subject: History | Iterable[Event], checks: Iterable[Check] | None = None) -> list[Verdict]:
    """
    Takes all verdicts on one journal.

    A check that holds, or that the journal cannot decide, gives one verdict; one that does not hold gives one for each
    call concerned. What a check that guards the run says counts only where no other check says why.

    Arguments:
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
            verdicts += check.judge(history)
    explained = any(verdict.status in SHOWN_STATUSES for verdict in verdicts)
    for check in guards:
        verdicts += [check.plain["not-applicable"]] if explained else check.judge(history)
    return verdicts


def judge_group(histories: Sequence[History], checks: Iterable[Check] | None = None) -> list[Verdict]:
    """
    Takes the verdicts on the journals that one scenario left in its variants on one agent.

    Runs that failed a check of their own differ for that reason; leave them out.
    """
    chosen = CHECKS.values() if checks is None else checks
    return [verdict for check in chosen if check.group is not None for verdict in check.judge_group(histories)]


def root_findings(verdicts: Sequence[Verdict]) -> list[Finding]:
    """
    Gives the findings: of what does not hold, only that which does not follow from something else that does not hold.

    A failure follows from that of another check that implies it, for the same call, or for a call of an agent that it
    runs. A warning explains no failure.
    """
    bad = [verdict for verdict in verdicts if verdict.status in SHOWN_STATUSES]
    causes = {id(verdict): _find_cause(verdict, bad) for verdict in bad}
    roots = [verdict for verdict in bad if causes[id(verdict)] is None]
    return [_build_finding(root, bad, causes) for root in roots]


def mark_implied(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """Gives the same verdicts, those that follow from another one with the slug that they follow from."""
    bad = [verdict for verdict in verdicts if verdict.status in SHOWN_STATUSES]
    return [_with_cause(verdict, _find_cause(verdict, bad)) if verdict in bad else verdict for verdict in verdicts]


def _build_finding(root: Verdict, bad: Sequence[Verdict], causes: dict[int, Verdict | None]) -> Finding:
    implied = tuple(_with_cause(verdict, root) for verdict in bad if _find_root(verdict, causes) is root)
    return Finding(
        verdict=root,
        requirement=CHECKS[root.check].requirement if root.check in CHECKS else "",
        implied=tuple(verdict for verdict in implied if verdict.check != root.check or verdict.label != root.label),
    )


def _find_root(verdict: Verdict, causes: dict[int, Verdict | None]) -> Verdict:
    cause = causes[id(verdict)]
    return verdict if cause is None else _find_root(cause, causes)


def _with_cause(verdict: Verdict, cause: Verdict | None) -> Verdict:
    from dataclasses import replace

    return verdict if cause is None else replace(verdict, implied_by=cause.check)


def _find_cause(verdict: Verdict, bad: Sequence[Verdict]) -> Verdict | None:
    return next((other for other in bad if other is not verdict and _explains(other, verdict)), None)


def _explains(cause: Verdict, verdict: Verdict) -> bool:
    if cause.status == "warning" and verdict.status != "warning":
        return False
    if verdict.check not in implied_checks(cause.check) or (cause.session != verdict.session):
        return False
    if cause.label is None or verdict.label is None or cause.label == verdict.label:
        return True
    return verdict.label.startswith(f"{cause.label}/") or cause.label.startswith(f"{verdict.label}/")


def implied_checks(slug: str) -> frozenset[str]:
    """Gives the checks whose failures follow from a failure of this one, directly or over others."""
    if slug not in _implied_checks:
        found: set[str] = set()
        waiting = [slug]
        while waiting:
            check = CHECKS.get(waiting.pop())
            fresh = [each for each in check.implies if each not in found] if check is not None else []
            found.update(fresh)
            waiting += fresh
        _implied_checks[slug] = frozenset(found)
    return _implied_checks[slug]


_implied_checks: dict[str, frozenset[str]] = {}


def find_check(slug: str) -> Check:
    """
    Gives a check.

    Errors:
        UnknownName: None has that slug.
    """
    if slug not in CHECKS:
        raise UnknownName("check", slug, CHECKS)
    return CHECKS[slug]


def explain(slug: str) -> str:
    """
    Gives all that is known of a check, as text.

    Errors:
        UnknownName: None has that slug.
    """
    check = find_check(slug)
    facts = [
        ("implies", ", ".join(check.implies)),
        ("needs", ", ".join(check.needs)),
        ("sources", ", ".join(check.sources)),
    ]
    lines = [f"{check.slug} ({check.level}, {check.family})", "", check.requirement, "", check.why, ""]
    lines += [f"{name}: {what}" for name, what in facts if what]
    for example in check.examples:
        caption = f", {example.caption}" if example.caption else ""
        verb = {"pass": "passes", "fail": "fails", "warning": "warns"}[example.status]
        lines += ["", f"{verb}{caption}:", *(f"    {line}" for line in example.lines.splitlines())]
    return "\n".join(lines) + "\n"
