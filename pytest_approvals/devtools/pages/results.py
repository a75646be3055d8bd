"""Results of the whole catalogue on the agents: a file for each in `docs/results/`, and the page `docs/results.md`.

    pytest-approvals run --agent NAME --strength 1 --report FILE
    python -m pytest_approvals.devtools.pages.results FILE…

The second command, in a checkout, replaces the file of each agent of these reports and writes the page from all files;
without a report it writes the page only. A file has one JSON value a line:

    {"agent": "agno", "framework": "agno", "version": "3.1.10", "runs": 2282, "scenarios": 256, "not_applicable": 110}
    {"check": "approval-before-execution", "scenarios": 231}
    {"scenario": "basics/approved", "check": "approved-runs", "status": "waived", "cause": "ID", "runs": 4, "of": 9}
    {"trait": "raising-tool", "values": ["fail", "model"]}

The first line is about the agent, the next ones say in how many scenarios a check was decided, others where it did not
hold, and the last ones what the agent chose to do. A failure without a cause has the address of its issue in its place.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pytest_approvals.agents.causes import Cause
from pytest_approvals.checks import CHECKS, parse_severity, rank_severity
from pytest_approvals.errors import UsageError
from pytest_approvals.reporting.files import read_report
from pytest_approvals.reporting.report import Report, ReportedAgent
from pytest_approvals.reporting.upstream import load_every_cause

FOLDER = Path("docs/results")
PAGE = Path("docs/results.md")

_OPEN = ("waived", "fail", "harness-error")
"""Statuses of a check that did not hold; a `warning` is about what an agent should do."""

_ORIGIN = re.compile(r"\((?:docs/findings/(?P<cause>[a-z0-9-]+)\.md|(?P<issue>https?://[^\s)]+))\)$")

_INTRODUCTION = """\
# Results

What the whole catalogue showed on each agent in its default flavour, at the release that this package pins, in
variants of strength 1. The numbers are of scenarios, not of runs: a check holds if it held in every run of all
scenarios that decide it. What does not hold has a cause in [the findings](findings/README.md), or is documented by the
framework. A warning is about what an agent should do, and is no failure.

The page is made of the files in [results](results/) by `python -m pytest_approvals.devtools.pages.results`, which also
writes these files from reports.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenResult:
    """A check that did not hold in a scenario.

    Attributes:
        status: `waived`, `fail`, `harness-error` or `warning`.
        cause: The id of its cause, or the address of an issue; empty if there is neither.
        runs, of: In how many runs it did not hold, of how many.
    """

    scenario: str
    check: str
    status: str
    cause: str
    runs: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentResults:
    """What the catalogue showed on one agent.

    Attributes:
        scenarios: How many scenarios it played.
        not_applicable: How many it cannot play.
        decided: In how many scenarios each check was decided.
        open: Where checks did not hold.
        traits: What it chose to do, by trait.
    """

    agent: str
    framework: str
    version: str
    runs: int
    scenarios: int
    not_applicable: int
    decided: Mapping[str, int]
    open: tuple[OpenResult, ...]
    traits: Mapping[str, tuple[str, ...]]


# --- from reports to files --------------------------------------------------------------------------------------------


def collect_results(report: Report) -> Iterator[AgentResults]:
    """Yield the results of each agent of a report.

    Raises:
        UsageError: The session that wrote it was cut off.
    """
    if not report.complete:
        raise UsageError("Invalid report: it has no footer, because its session was cut off; run the catalogue again")
    for agent in report.header.agents:
        yield _collect_agent(agent, report)


def _collect_agent(agent: ReportedAgent, report: Report) -> AgentResults:
    verdicts = [verdict for verdict in report.verdicts if verdict.agent == agent.agent]
    runs = {(verdict.scenario, verdict.variant) for verdict in verdicts if verdict.variant != "*"}
    per_scenario = Counter(scenario for scenario, _ in runs)
    decided: dict[str, set[str]] = {}
    failed: dict[tuple[str, str, str, str], set[str]] = {}
    for verdict in verdicts:
        if verdict.status != "not-applicable":
            decided.setdefault(verdict.check, set()).add(verdict.scenario)
        if verdict.status in (*_OPEN, "warning"):
            key = (verdict.scenario, verdict.check, verdict.status, _read_origin(verdict.waiver or ""))
            failed.setdefault(key, set()).add(verdict.variant)
    rows = [
        OpenResult(
            scenario=scenario,
            check=check,
            status=status,
            cause=cause,
            runs=per_scenario[scenario] if "*" in variants else len(variants),
            of=per_scenario[scenario],
        )
        for (scenario, check, status, cause), variants in sorted(failed.items())
    ]
    return AgentResults(
        agent=agent.agent,
        framework=agent.framework or "",
        version=agent.version or "",
        runs=len(runs),
        scenarios=len(per_scenario),
        not_applicable=sum(line.agent == agent.agent for line in report.not_applicable),
        decided={check: len(decided[check]) for check in sorted(decided)},
        open=tuple(rows),
        traits=next((line.traits for line in report.traits if line.agent == agent.agent), {}),
    )


def _read_origin(waiver: str) -> str:
    """Return the cause or the issue that a waiver names.

    >>> _read_origin("It is lost. (docs/findings/agno-json-loses-the-approval.md)")
    'agno-json-loses-the-approval'
    >>> _read_origin("Documented. (https://example.org/limits)")
    'https://example.org/limits'
    """
    found = _ORIGIN.search(waiver.strip())
    return (found["cause"] or found["issue"]) if found else ""


def format_results(results: AgentResults) -> str:
    """Return the text of the file of an agent."""
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in _list_lines(results))


def _list_lines(results: AgentResults) -> Iterator[Mapping[str, object]]:
    names = ("agent", "framework", "version", "runs", "scenarios", "not_applicable")
    yield {name: getattr(results, name) for name in names}
    for check, scenarios in results.decided.items():
        yield {"check": check, "scenarios": scenarios}
    yield from (asdict(row) for row in results.open)
    for trait, values in results.traits.items():
        yield {"trait": trait, "values": list(values)}


def parse_results(text: str) -> AgentResults:
    """Read the file of an agent."""
    first, *others = (json.loads(line) for line in text.splitlines())
    return AgentResults(
        **first,
        decided={line["check"]: line["scenarios"] for line in others if line.keys() == {"check", "scenarios"}},
        open=tuple(OpenResult(**line) for line in others if "status" in line),
        traits={line["trait"]: tuple(line["values"]) for line in others if "trait" in line},
    )


# --- the page ---------------------------------------------------------------------------------------------------------


def format_page(every: Sequence[AgentResults], causes: Mapping[str, Cause]) -> str:
    """Return the page: a table of the agents, and a section about each."""
    blocks = [_INTRODUCTION, "\n".join(_format_table(every))]
    blocks += ["\n".join(_format_agent(results, causes)) for results in every]
    return "\n\n".join(block.rstrip("\n") for block in blocks) + "\n"


def _format_table(every: Iterable[AgentResults]) -> Iterator[str]:
    columns = ["agent", "release", "runs", "scenarios", "cannot play", "checks that hold", "open causes"]
    yield "| " + " | ".join(columns) + " |"
    yield "|---" * len(columns) + "|"
    for results in every:
        numbers = (results.runs, results.scenarios, results.not_applicable)
        holding = f"{len(_list_holding(results))} of {len(results.decided)}"
        counted = len({row.cause for row in results.open if row.status in _OPEN})
        release = f"{results.framework} {results.version}".strip()
        cells = [f"[{results.agent}](#{results.agent})", release, *map(str, numbers), holding, str(counted)]
        yield "| " + " | ".join(cells) + " |"


def _list_holding(results: AgentResults) -> list[str]:
    broken = {row.check for row in results.open}
    return [check for check in results.decided if check not in broken]


def _format_agent(results: AgentResults, causes: Mapping[str, Cause]) -> Iterator[str]:
    yield f"## {results.agent}"
    yield ""
    yield "What holds, with the number of scenarios that decide it:"
    yield ""
    for check in _list_holding(results):
        yield f"- {CHECKS[check].requirement} (`{check}`, {results.decided[check]})"
    yield from _format_open(results, causes)
    warnings = Counter(row.check for row in results.open if row.status == "warning")
    if warnings:
        shown = ", ".join(f"`{check}` in {count}" for check, count in sorted(warnings.items()))
        yield from ("", f"Warnings: {shown}.")
    if results.traits:
        shown = ", ".join(f"{trait}: {' or '.join(values)}" for trait, values in results.traits.items())
        yield from ("", f"[Traits](checks.md#traits): {shown}.")


def _format_open(results: AgentResults, causes: Mapping[str, Cause]) -> Iterator[str]:
    by_cause: dict[str, list[OpenResult]] = {}
    for row in results.open:
        if row.status in _OPEN:
            by_cause.setdefault(row.cause, []).append(row)
    if not by_cause:
        return
    yield from ("", "What does not hold, the gravest first:", "")
    for cause, rows in sorted(by_cause.items(), key=lambda entry: _rank_cause(entry[0], causes)):
        checks = ", ".join(f"`{check}`" for check in sorted({row.check for row in rows}))
        scenarios = len({row.scenario for row in rows})
        count = f"{scenarios} scenario{'s' if scenarios > 1 else ''}"
        yield f"- {_describe_cause(cause, causes)} ({checks}; {count})"


def _rank_cause(cause: str, causes: Mapping[str, Cause]) -> tuple[int, str]:
    known = causes.get(cause)
    return (rank_severity(parse_severity(known.severity)) if known else 99 if cause else -1, cause)


def _describe_cause(cause: str, causes: Mapping[str, Cause]) -> str:
    if not cause:
        return "Nobody has looked at it yet"
    if cause not in causes:
        return f"Documented by the framework, or known to it: <{cause}>"
    known = causes[cause]
    return f"[{known.title}](findings/{cause}.md): {known.cause_class}, {known.severity}"


def read_every_results() -> list[AgentResults]:
    """Return the results of all agents whose files are there."""
    return [parse_results(path.read_text(encoding="utf-8")) for path in sorted(FOLDER.glob("*.jsonl"))]


def main(words: Sequence[str]) -> None:
    """Write the files of the agents of reports, and the page."""
    FOLDER.mkdir(exist_ok=True)
    for word in words:
        for results in collect_results(read_report(Path(word))):
            (FOLDER / f"{results.agent}.jsonl").write_text(format_results(results), encoding="utf-8")
    PAGE.write_text(format_page(read_every_results(), load_every_cause()), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
