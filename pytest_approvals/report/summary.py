"""
The findings of a report, one an agent and check: the smallest variant stands for all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_approvals.checks.verdicts import SHOWN

from .finding import PrintedFinding
from .lines import VerdictLine
from .subject import ALL_VARIANTS, agent_said, place_of
from .verdicts import printed
from .whole import Report

LISTED = 6
"""How many further scenarios a finding names."""

GRAVITY = ("fail", "harness-error", "unknown", "warning", "waived")
"""The statuses that are shown, the gravest first."""


def summary(report: Report) -> str:
    """
    Gives all findings by agent, the stale waivers, the agents that were not judged, and a line of counts; it ends
    without a line feed.
    """
    blocks = [block for agent in _agents(report) for block in _of_agent(report, agent)]
    blocks += [f"stale waiver: {line.waiver}" for line in report.stale]
    blocks += [f"not judged: {line.why}" for line in report.absent]
    return "\n\n".join([*blocks, counts(report)])


def findings(report: Report, agent: str) -> list[PrintedFinding]:
    """Gives the findings about an agent: the failures first, each in the order of the checks."""
    groups: dict[str, list[VerdictLine]] = {}
    for line in report.verdicts:
        if line.agent == agent and line.status in SHOWN and line.implied_by is None:
            groups.setdefault(line.check, []).append(line)
    checks = [*report.header.checks, *groups]
    ordered = sorted(groups.values(), key=lambda lines: (_gravity(lines), checks.index(lines[0].check)))
    return [_representative(report, lines) for lines in ordered]


def counts(report: Report) -> str:
    """
    Counts runs, and verdicts by status: `812 runs · 31,002 pass · 3 fail`.
    """
    footer = report.footer()
    order = ["pass", *GRAVITY, "stale", "absent", "not-applicable", "not-observable"]
    known = sorted(footer.counts, key=lambda status: order.index(status) if status in order else len(order))
    words = [f"{footer.runs:,} run{'' if footer.runs == 1 else 's'}"]
    words += [f"{footer.counts[status]:,} {status}" for status in known]
    return " · ".join(words) + ("" if report.complete else " · the report was cut off")


def _of_agent(report: Report, agent: str) -> Iterator[str]:
    found = findings(report, agent)
    if found:
        known = next((each for each in report.header.agents if each.agent == agent), None)
        said = agent_said(agent, known.version if known else None, place_of(agent))
        issues = f" · issues go to {known.issues}" if known is not None and known.issues else ""
        yield f"{said}: {len(found)} finding{'' if len(found) == 1 else 's'}{issues}"
        yield from (finding.render() for finding in found)


def _agents(report: Report) -> list[str]:
    return list(dict.fromkeys([each.agent for each in report.header.agents] + [line.agent for line in report.verdicts]))


def _gravity(lines: Sequence[VerdictLine]) -> int:
    return min(GRAVITY.index(line.status) for line in lines)


def _representative(report: Report, lines: Sequence[VerdictLine]) -> PrintedFinding:
    gravest = _gravity(lines)
    chosen = min((line for line in lines if GRAVITY.index(line.status) == gravest), key=_size)
    runs = {(line.scenario, line.variant) for line in lines}
    scenarios = sorted({scenario for scenario, _ in runs} - {chosen.scenario})
    return replace(
        printed(chosen, report.header, _implied(report, chosen)),
        others=_others(len(runs) - 1, len(scenarios)),
        elsewhere=_listed(scenarios),
    )


def _size(line: VerdictLine) -> tuple[int, str, str, str]:
    """Variants are named by what differs from the plainest one, so the shortest name is the smallest variant."""
    steps = 0 if line.variant == ALL_VARIANTS else line.variant.count("-")
    serialize = {"none": "0", "copy": "1", "json": "2"}.get(line.variant.partition("-")[0], "3")
    return steps, serialize + line.variant, line.scenario, line.label or ""


def _others(runs: int, scenarios: int) -> str:
    if not runs:
        return ""
    variants = f"{runs} variant{'' if runs == 1 else 's'}"
    return f"{variants} of {scenarios + 1} scenarios" if scenarios else variants


def _listed(scenarios: Sequence[str]) -> tuple[str, ...]:
    if len(scenarios) <= LISTED:
        return tuple(scenarios)
    return (*scenarios[:LISTED], f"and {len(scenarios) - LISTED} more")


def _implied(report: Report, chosen: VerdictLine) -> list[str]:
    run = (chosen.scenario, chosen.agent, chosen.variant)
    return [
        line.check
        for line in report.verdicts
        if (line.scenario, line.agent, line.variant) == run
        and line.implied_by == chosen.check
        and line.label in (None, chosen.label)
    ]
