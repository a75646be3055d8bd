"""
The matrix: what came of each scenario on each agent, as text.

    scenario                         reference  pydantic_ai  openai_agents
                                                2.68.0       0.24.0
    basics · 9                       9 ✓        9 ✓          8 ✓  1 -
    parallel · 7                     7 ✓        6 ✓  1 ✗     7 ✓
      one-approved-one-rejected      ✓          ✗ 3/12       ✓
    all · 16                         16 ✓       15 ✓  1 ✗    15 ✓  1 -

    ✓ all checks hold   ✗ fails   - not applicable

A family has a row with counts; those of its scenarios that did not simply pass follow it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from .finding import cut
from .subject import ALL_VARIANTS, agent_said, place_of
from .whole import Report

State = Literal["harness-error", "fail", "unknown", "warning", "waived", "pass", "not-applicable"]

SYMBOLS: Mapping[State, tuple[str, str]] = {
    "pass": ("✓", "all checks hold"),
    "waived": ("w", "fails, and is waived"),
    "warning": ("!", "a `should` does not hold"),
    "fail": ("✗", "fails"),
    "unknown": ("?", "cannot be decided"),
    "harness-error": ("E", "the harness failed"),
    "not-applicable": ("-", "not applicable"),
}
"""What stands for each state, and what it means; in the order in which counts are given."""

_STATES: Mapping[str, State] = {state: state for state in SYMBOLS if state != "not-applicable"}
_WORST: tuple[State, ...] = ("harness-error", "fail", "unknown", "warning", "waived", "pass", "not-applicable")
_GAP = "  "
_NARROWEST = 24


@dataclass(slots=True)
class Cell:
    """What came of one scenario on one agent: the worst state, in how many of how many runs."""

    states: dict[str, State] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """The worst state of all runs."""
        if not self.states:
            return "not-applicable"
        return min(self.states.values(), key=_WORST.index)

    @property
    def said(self) -> str:
        """The state with the runs that have it: `✗ 3/12`."""
        symbol = SYMBOLS[self.state][0]
        if self.state in ("pass", "not-applicable"):
            return symbol
        runs = [state for variant, state in self.states.items() if variant != ALL_VARIANTS]
        concerned = sum(state == self.state for state in runs)
        return f"{symbol} {concerned}/{len(runs)}" if concerned else f"{symbol} together"


def cells(report: Report) -> dict[str, dict[str, Cell]]:
    """Gives what came of everything: by scenario, then by agent."""
    found: dict[str, dict[str, Cell]] = {}
    for line in report.not_applicable:
        found.setdefault(line.scenario, {})[line.agent] = Cell()
    for verdict in report.verdicts:
        cell = found.setdefault(verdict.scenario, {}).setdefault(verdict.agent, Cell())
        state = _STATES.get(verdict.status, "pass")
        before = cell.states.get(verdict.variant)
        if before is None or _WORST.index(state) < _WORST.index(before):
            cell.states[verdict.variant] = state
    return dict(sorted(found.items()))


def agents_of(report: Report) -> list[str]:
    """Gives the agents of a report in its order."""
    named = [each.agent for each in report.header.agents]
    seen = sorted({line.agent for line in report.verdicts} | {line.agent for line in report.not_applicable})
    return list(dict.fromkeys([*named, *seen]))


def matrix(report: Report, width: int = 120) -> str:
    """
    Gives the matrix, no line longer than *width* where that can be; it ends without a line feed.

    Agents that do not fit beside each other stand in a table of their own.
    """
    table = cells(report)
    rows = list(_rows(table, agents_of(report)))
    used = {cell.state for row in table.values() for cell in row.values()}
    legend = "   ".join(f"{symbol} {meaning}" for state, (symbol, meaning) in SYMBOLS.items() if state in used)
    return "\n\n".join([laid_out(rows, _headings(report), width), *([legend] if legend else [])])


Row = list[str]


def laid_out(rows: Sequence[Row], headings: Sequence[Row], width: int) -> str:
    """Gives rows below their headings, as several tables below each other where one would be too wide."""
    return "\n\n".join("\n".join(_aligned(part, width)) for part in _split(rows, headings, width))


def _headings(report: Report) -> list[Row]:
    versions = {each.agent: each.version for each in report.header.agents}
    names = [agent_said(agent, None, place_of(agent)) for agent in agents_of(report)]
    second = [versions.get(agent) or "" for agent in agents_of(report)]
    return [["scenario", *names], ["", *second]] if any(second) else [["scenario", *names]]


def _rows(table: Mapping[str, Mapping[str, Cell]], agents: Sequence[str]) -> Iterator[Row]:
    families: dict[str, list[str]] = {}
    for scenario in table:
        families.setdefault(scenario.rpartition("/")[0], []).append(scenario)
    for family, scenarios in families.items():
        yield [f"{family or 'scenarios'} · {len(scenarios)}", *(_counted(table, scenarios, agent) for agent in agents)]
        for scenario in scenarios:
            row = [table[scenario].get(agent) for agent in agents]
            if any(cell is not None and cell.state not in ("pass", "not-applicable") for cell in row):
                yield [f"  {scenario.rpartition('/')[2]}", *(cell.said if cell is not None else "" for cell in row)]
    if len(families) > 1:
        yield [f"all · {len(table)}", *(_counted(table, list(table), agent) for agent in agents)]


def _counted(table: Mapping[str, Mapping[str, Cell]], scenarios: Sequence[str], agent: str) -> str:
    states = Counter(table[scenario][agent].state for scenario in scenarios if agent in table[scenario])
    return _GAP.join(f"{states[state]} {symbol}" for state, (symbol, _) in SYMBOLS.items() if states[state])


def _split(rows: Sequence[Row], headings: Sequence[Row], width: int) -> Iterator[list[Row]]:
    """Divides a table that is too wide into several, each with the first column."""
    everything = [*headings, *rows]
    widths = [max(len(row[column]) for row in everything) for column in range(len(headings[0]))]
    start = 1
    while start < len(widths):
        end, room = start + 1, width - min(widths[0], max(_NARROWEST, width // 3)) - widths[start] - len(_GAP)
        while end < len(widths) and room >= widths[end] + len(_GAP):
            room -= widths[end] + len(_GAP)
            end += 1
        yield [[row[0], *row[start:end]] for row in everything]
        start = end


def _aligned(rows: Sequence[Row], width: int) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rest = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
    widths[0] = min(widths[0], max(_NARROWEST, width - rest))
    for row in rows:
        texts = [cut(row[0], widths[0]).ljust(widths[0])]
        texts += [text.ljust(size) for text, size in zip(row[1:], widths[1:], strict=True)]
        yield _GAP.join(texts).rstrip()
