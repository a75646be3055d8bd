"""Matrices as text: scenarios by agents, and checks by releases.

The matrix has the result of each scenario on each agent:

    scenario                         reference  pydantic_ai  openai_agents
                                                2.68.0       0.24.0
    basics · 9                       9 ✓        9 ✓          8 ✓  1 -
    parallel · 7                     7 ✓        6 ✓  1 ✗     7 ✓
      one-approved-one-rejected      ✓          ✗ 3/12       ✓
    all · 16                         16 ✓       15 ✓  1 ✗    15 ✓  1 -

    ✓ all checks hold   ✗ fails   - not applicable

A family has a row with counts; those of its scenarios that did not simply pass follow it.

The release matrix has the checks that fail in the releases of an agent:

    openai_agents                0.19.4  0.20.0  0.21.0 - 0.22.3  0.23.1 - 0.24.0
    every-gated-call-asked       ✗ 2     ✓       ✓                ✓
    sessions-isolated            ✗ 3     ✗ 3     ✗ 3              ✓

The gravest checks come first. A number counts the scenarios. Consecutive releases that do not differ share a column;
checks that hold in all of them are left out. The traits that differ between the releases follow, each with what was
seen.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

from pytest_approvals.agents.spec import AgentSpec, release_sort_key
from pytest_approvals.checks import rank_severity
from pytest_approvals.errors.printable import escape_value, shorten
from pytest_approvals.reporting.findings import truncate
from pytest_approvals.reporting.report import Report
from pytest_approvals.reporting.subject import ALL_VARIANTS, agent_location, format_agent

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
"""The symbol of each state and its meaning, in the order in which counts are printed."""

_STATES: Mapping[str, State] = {state: state for state in SYMBOLS if state != "not-applicable"}
_WORST_FIRST: tuple[State, ...] = ("harness-error", "fail", "unknown", "warning", "waived", "pass", "not-applicable")
_COLUMN_GAP = "  "
_MIN_FIRST_COLUMN = 24


@dataclass(slots=True)
class Cell:
    """The result of one scenario on one agent: the worst state, in how many of how many runs."""

    states: dict[str, State] = field(default_factory=dict)

    @property
    def state(self) -> State:
        """The worst state of all runs."""
        if not self.states:
            return "not-applicable"
        return min(self.states.values(), key=_WORST_FIRST.index)

    @property
    def said(self) -> str:
        """The state with the runs that have it: `✗ 3/12`."""
        symbol = SYMBOLS[self.state][0]
        if self.state in ("pass", "not-applicable"):
            return symbol
        runs = [state for variant, state in self.states.items() if variant != ALL_VARIANTS]
        concerned = sum(state == self.state for state in runs)
        return f"{symbol} {concerned}/{len(runs)}" if concerned else f"{symbol} together"


def collect_cells(report: Report) -> dict[str, dict[str, Cell]]:
    """Return all results: by scenario, then by agent."""
    table: dict[str, dict[str, Cell]] = {}
    for line in report.not_applicable:
        table.setdefault(line.scenario, {})[line.agent] = Cell()
    for verdict in report.verdicts:
        cell = table.setdefault(verdict.scenario, {}).setdefault(verdict.agent, Cell())
        state = _STATES.get(verdict.status, "pass")
        before = cell.states.get(verdict.variant)
        if before is None or _WORST_FIRST.index(state) < _WORST_FIRST.index(before):
            cell.states[verdict.variant] = state
    return dict(sorted(table.items()))


def agent_names(report: Report) -> list[str]:
    """Return the agents of a report, in its order."""
    named = [each.agent for each in report.header.agents]
    seen = sorted({line.agent for line in report.verdicts} | {line.agent for line in report.not_applicable})
    return list(dict.fromkeys([*named, *seen]))


def format_matrix(report: Report, width: int = 120) -> str:
    """Return the matrix; it ends without a line feed.

    No line is longer than *width* if that is possible: agents that do not fit into a table get a further one.
    """
    table = collect_cells(report)
    rows = list(_rows(table, agent_names(report)))
    used = {cell.state for row in table.values() for cell in row.values()}
    legend = "   ".join(f"{symbol} {meaning}" for state, (symbol, meaning) in SYMBOLS.items() if state in used)
    return "\n\n".join([format_table(rows, _headings(report), width), *([legend] if legend else [])])


TableRow = list[str]


def format_table(rows: Sequence[TableRow], headings: Sequence[TableRow], width: int) -> str:
    """Return rows below their headings, as several tables if one would be too wide."""
    rows, headings = ([[escape_value(shorten(cell)) for cell in row] for row in part] for part in (rows, headings))
    return "\n\n".join("\n".join(_align_columns(part, width)) for part in _split_table(rows, headings, width))


def _headings(report: Report) -> list[TableRow]:
    versions = {each.agent: each.version for each in report.header.agents}
    names = [format_agent(agent, None, agent_location(agent)) for agent in agent_names(report)]
    second = [versions.get(agent) or "" for agent in agent_names(report)]
    return [["scenario", *names], ["", *second]] if any(second) else [["scenario", *names]]


def _rows(table: Mapping[str, Mapping[str, Cell]], agents: Sequence[str]) -> Iterator[TableRow]:
    families: dict[str, list[str]] = {}
    for scenario in table:
        families.setdefault(scenario.rpartition("/")[0], []).append(scenario)
    for family, scenarios in families.items():
        yield [
            f"{family or 'scenarios'} · {len(scenarios)}",
            *(_count_states(table, scenarios, agent) for agent in agents),
        ]
        for scenario in scenarios:
            row = [table[scenario].get(agent) for agent in agents]
            if any(cell is not None and cell.state not in ("pass", "not-applicable") for cell in row):
                yield [f"  {scenario.rpartition('/')[2]}", *(cell.said if cell is not None else "" for cell in row)]
    if len(families) > 1:
        yield [f"all · {len(table)}", *(_count_states(table, list(table), agent) for agent in agents)]


def _count_states(table: Mapping[str, Mapping[str, Cell]], scenarios: Sequence[str], agent: str) -> str:
    states = Counter(table[scenario][agent].state for scenario in scenarios if agent in table[scenario])
    return _COLUMN_GAP.join(f"{states[state]} {symbol}" for state, (symbol, _) in SYMBOLS.items() if states[state])


def _split_table(rows: Sequence[TableRow], headings: Sequence[TableRow], width: int) -> Iterator[list[TableRow]]:
    """Split a table that is too wide into several, each with the first column."""
    everything = [*headings, *rows]
    widths = [max(len(row[column]) for row in everything) for column in range(len(headings[0]))]
    start = 1
    while start < len(widths):
        # At least one agent a table; the first column may be cut to a third of the width for more of them.
        end, room = (
            start + 1,
            width - min(widths[0], max(_MIN_FIRST_COLUMN, width // 3)) - widths[start] - len(_COLUMN_GAP),
        )
        while end < len(widths) and room >= widths[end] + len(_COLUMN_GAP):
            room -= widths[end] + len(_COLUMN_GAP)
            end += 1
        yield [[row[0], *row[start:end]] for row in everything]
        start = end


def _align_columns(rows: Sequence[TableRow], width: int) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rest = sum(widths[1:]) + len(_COLUMN_GAP) * (len(widths) - 1)
    widths[0] = min(widths[0], max(_MIN_FIRST_COLUMN, width - rest))
    for row in rows:
        texts = [truncate(row[0], widths[0]).ljust(widths[0])]
        texts += [text.ljust(size) for text, size in zip(row[1:], widths[1:], strict=True)]
        yield _COLUMN_GAP.join(texts).rstrip()


_REPORTED_STATES: tuple[State, ...] = ("harness-error", "fail", "unknown", "warning", "waived")
_PASS_SYMBOL = SYMBOLS["pass"][0]

FailedScenarios = Mapping[str, Mapping[State, set[str]]]
"""The scenarios in which an agent failed, by check and state."""


def format_release_matrix(report: Report, width: int = 120) -> str:
    """Return a table for each agent that took part in several releases; it ends without a line feed.

    No line is longer than *width* if that is possible.
    """
    tables = [_release_table(report, base, specs, width) for base, specs in _group_releases(report)]
    used = {line.status for line in report.verdicts}
    legend = "   ".join(f"{symbol} {meaning}" for state, (symbol, meaning) in SYMBOLS.items() if state in used)
    return "\n\n".join([*tables, legend])


def _group_releases(report: Report) -> Iterator[tuple[str, list[AgentSpec]]]:
    specs = [AgentSpec.parse(each.agent) for each in report.header.agents]
    known = sorted(
        (spec for spec in specs if spec.version), key=lambda spec: (spec.base, release_sort_key(spec.version or ""))
    )
    for base, several in groupby(known, key=lambda spec: spec.base):
        yield base, list(several)


def _release_table(report: Report, base: str, specs: Sequence[AgentSpec], width: int) -> str:
    failed = {str(spec): _failures_of(report, str(spec)) for spec in specs}
    known = report.header.checks
    shown = (slug for slug in known if any(slug in failures for failures in failed.values()))
    checks = sorted(shown, key=lambda slug: rank_severity(known[slug].severity))
    cells = {
        str(spec): {slug: _format_states(failed[str(spec)].get(slug, {})) for slug in checks}
        | _changed_traits(report, specs, spec)
        for spec in specs
    }
    columns = [
        (_version_range([spec.version or "" for spec in same]), shown)
        for shown, same in ((cells[str(same[0])], same) for same in _group_equal_releases(specs, cells))
    ]
    names = list(columns[0][1])
    if not names:
        return escape_value(f"{base} {columns[0][0]}: all checks hold")
    rows = [[name, *(shown[name] for _, shown in columns)] for name in names]
    return format_table(rows, [[base, *(span for span, _ in columns)]], width)


def _group_equal_releases(specs: Sequence[AgentSpec], cells: Mapping[str, object]) -> Iterator[list[AgentSpec]]:
    """Yield the consecutive releases that have the same cells."""
    for _, same in groupby(specs, key=lambda spec: cells[str(spec)]):
        yield list(same)


def _changed_traits(report: Report, specs: Sequence[AgentSpec], spec: AgentSpec) -> dict[str, str]:
    """Return what a release shows of the traits that differ between these releases."""
    seen = {line.agent: line.traits for line in report.traits}
    # A release without a line was not observed, and shows no difference.
    known = [seen[str(each)] for each in specs if str(each) in seen]
    names = dict.fromkeys(name for traits in known for name in traits)
    changed = [name for name in names if len({traits.get(name, ()) for traits in known}) > 1]
    return {name: ", ".join(seen.get(str(spec), {}).get(name, ())) or "not seen" for name in changed}


def _failures_of(report: Report, agent: str) -> FailedScenarios:
    failures: dict[str, dict[State, set[str]]] = {}
    for line in report.verdicts:
        if line.agent == agent and line.implied_by is None and line.status in _REPORTED_STATES:
            failures.setdefault(line.check, {}).setdefault(line.status, set()).add(line.scenario)
    return failures


def _format_states(states: Mapping[State, set[str]]) -> str:
    worst = next((state for state in _REPORTED_STATES if state in states), None)
    return _PASS_SYMBOL if worst is None else f"{SYMBOLS[worst][0]} {len(states[worst])}"


def _version_range(versions: Sequence[str]) -> str:
    return versions[0] if len(versions) == 1 else f"{versions[0]} - {versions[-1]}"
