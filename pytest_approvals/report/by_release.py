"""
What fails in which release of an agent, as text.

    openai_agents                0.19.4  0.20.0  0.21.0 - 0.22.3  0.23.1 - 0.24.0
    every-gated-call-asked       ✗ 2     ✓       ✓                ✓
    sessions-isolated            ✗ 3     ✗ 3     ✗ 3              ✓

A number counts the scenarios. Releases that follow each other and do not differ share a column; checks that hold in all
of them are left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from pytest_approvals.agents import AgentSpec
from pytest_approvals.versions import release_order

from .matrix import SYMBOLS, State, laid_out
from .whole import Report

_CONCERNED: tuple[State, ...] = ("harness-error", "fail", "unknown", "warning", "waived")
_HOLDS = SYMBOLS["pass"][0]

Failed = Mapping[str, Mapping[State, set[str]]]
"""Of one agent: by check and state the scenarios."""


def by_release(report: Report, width: int = 120) -> str:
    """
    Gives a table for each agent that took part in several releases, no line longer than *width* where that can be; it
    ends without a line feed.
    """
    tables = [_table(report, base, specs, width) for base, specs in _released(report)]
    used = {line.status for line in report.verdicts}
    legend = "   ".join(f"{symbol} {meaning}" for state, (symbol, meaning) in SYMBOLS.items() if state in used)
    return "\n\n".join([*tables, legend])


def _released(report: Report) -> Iterator[tuple[str, list[AgentSpec]]]:
    specs = [AgentSpec.parse(each.agent) for each in report.header.agents]
    known = sorted(
        (spec for spec in specs if spec.version), key=lambda spec: (spec.base, release_order(spec.version or ""))
    )
    for base, several in groupby(known, key=lambda spec: spec.base):
        yield base, list(several)


def _table(report: Report, base: str, specs: Sequence[AgentSpec], width: int) -> str:
    failed = {str(spec): _failed(report, str(spec)) for spec in specs}
    checks = [slug for slug in report.header.checks if any(slug in one for one in failed.values())]
    columns = [
        (_span([spec.version or "" for spec in same]), dict(cells)) for cells, same in _alike(specs, failed, checks)
    ]
    if not checks:
        return f"{base} {columns[0][0]}: all checks hold"
    rows = [[slug, *(cells[slug] for _, cells in columns)] for slug in checks]
    return laid_out(rows, [[base, *(span for span, _ in columns)]], width)


def _alike(
    specs: Sequence[AgentSpec], failed: Mapping[str, Failed], checks: Sequence[str]
) -> Iterator[tuple[tuple[tuple[str, str], ...], list[AgentSpec]]]:
    """Gives the releases with what is said of each check, those together that follow each other and are alike."""
    said = {str(spec): tuple((slug, _said(failed[str(spec)].get(slug, {}))) for slug in checks) for spec in specs}
    for cells, same in groupby(specs, key=lambda spec: said[str(spec)]):
        yield cells, list(same)


def _failed(report: Report, agent: str) -> Failed:
    found: dict[str, dict[State, set[str]]] = {}
    for line in report.verdicts:
        if line.agent == agent and line.implied_by is None and line.status in _CONCERNED:
            found.setdefault(line.check, {}).setdefault(line.status, set()).add(line.scenario)
    return found


def _said(states: Mapping[State, set[str]]) -> str:
    worst = next((state for state in _CONCERNED if state in states), None)
    return _HOLDS if worst is None else f"{SYMBOLS[worst][0]} {len(states[worst])}"


def _span(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} - {versions[-1]}"
