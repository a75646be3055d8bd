"""What a run says of itself in a JUnit file: properties of its test case."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_approvals.checks.verdicts import FAILING

from .lines import VerdictLine
from .subject import Subject


def junit_properties(subject: Subject, lines: Iterable[VerdictLine], seed: int = 0) -> list[tuple[str, str]]:
    """
    Gives the properties of one run: what ran, and the checks that did not hold.

    Arguments:
        lines: The verdicts on this run.
    """
    by_status: dict[str, list[str]] = {}
    for line in lines:
        by_status.setdefault(line.status, []).append(line.check)
    failed = [check for status in sorted(FAILING) for check in by_status.get(status, ())]
    concerning = {"failed": failed, "warned": by_status.get("warning", []), "waived": by_status.get("waived", [])}
    given = [
        ("scenario", subject.scenario),
        ("agent", subject.agent),
        ("version", subject.version or ""),
        ("variant", subject.variant),
        ("seed", str(seed)),
        *((name, ", ".join(sorted(set(checks)))) for name, checks in concerning.items()),
        ("rerun", subject.rerun if failed else ""),
    ]
    return [(f"approvals.{name}", value) for name, value in given if value]
