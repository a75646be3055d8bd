"""Markdown report, for a summary of a CI job or a comment: the matrix as a table, the findings as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_approvals.errors.printable import escape_lines, escape_value
from pytest_approvals.reporting.findings import collect_findings, format_counts, list_explorations
from pytest_approvals.reporting.matrix import SYMBOLS, Cell, agent_names, collect_cells
from pytest_approvals.reporting.report import Report
from pytest_approvals.reporting.subject import agent_location, format_agent

_ADDRESS = re.compile(r"https?://[^\s<>]+")


def render_markdown(report: Report) -> str:
    """Return the report as Markdown; it ends with a line feed."""
    return escape_lines("\n".join(_blocks(report)) + "\n")


def _blocks(report: Report) -> Iterator[str]:
    yield "# Tool approvals\n"
    yield format_counts(report) + "\n"
    yield from _agents(report)
    yield from _matrix(report)
    for agent in agent_names(report):
        findings = collect_findings(report, agent)
        if findings:
            yield f"## {_escape_markdown(format_agent(agent, _agent_version(report, agent), agent_location(agent)))}\n"
        for finding in findings:
            yield f"### {_escape_markdown(finding.check)}\n"
            yield f"{_fence(finding.render())}\n"
    yield from _traits(report)
    if report.stale:
        yield "## Stale waivers\n"
        yield from (f"- {_escape_markdown(line.waiver)}" for line in report.stale)
    if report.absent:
        yield "## Not judged\n"
        yield from (f"- {_escape_markdown(line.why)}" for line in report.absent)
    if report.explored:
        yield "## Explored\n"
        yield from (f"- {_escape_markdown(text)}" for text in list_explorations(report))


def _agents(report: Report) -> Iterator[str]:
    for each in report.header.agents:
        label = format_agent(each.agent, each.version, agent_location(each.agent))
        details = [format_code(each.where) if each.where else "", _issues_link(each.issues)]
        yield " · ".join(part for part in (f"- {_escape_markdown(label)}", *details) if part)
    yield ""


def _issues_link(address: str) -> str:
    # Adapters of others name the address.
    return f"issues: <{address}>" if _ADDRESS.fullmatch(address) else ""


def _traits(report: Report) -> Iterator[str]:
    """Yield the design choices of each agent, which are neither right nor wrong."""
    if report.traits:
        yield "## Traits\n"
    for line in sorted(report.traits, key=lambda line: line.agent):
        yield f"### {_escape_markdown(line.agent)}\n"
        yield from (
            f"- {_escape_markdown(name)}: {_escape_markdown(', '.join(values))}" for name, values in line.traits.items()
        )
        yield ""


def _matrix(report: Report) -> Iterator[str]:
    agents = agent_names(report)
    yield (
        "| scenario | "
        + " | ".join(_escape_markdown(format_agent(agent, _agent_version(report, agent))) for agent in agents)
        + " |"
    )
    yield "|---" * (len(agents) + 1) + "|"
    table = collect_cells(report)
    for scenario, row in table.items():
        cells = (_format_cell(row.get(agent)) for agent in agents)
        yield f"| {_escape_markdown(scenario)} | {' | '.join(cells)} |"
    used = {cell.state for row in table.values() for cell in row.values()}
    legend = (f"{symbol} {meaning}" for state, (symbol, meaning) in SYMBOLS.items() if state in used)
    yield f"\n{' · '.join(legend)}\n"


def _format_cell(cell: Cell | None) -> str:
    return cell.said if cell is not None else ""


def _agent_version(report: Report, agent: str) -> str | None:
    return next((each.version for each in report.header.agents if each.agent == agent), None)


def _escape_markdown(text: str) -> str:
    """Escape the characters of a text that Markdown would interpret."""
    text = escape_value(text)
    # The backslash first, or those of the other escapes would be escaped again.
    for character in "\\`*_{}[]<>|~&!":
        text = text.replace(character, f"\\{character}")
    return f"\\{text}" if text.startswith("#") else text


def format_code(text: str) -> str:
    """Return text as a code span."""
    fence = _make_fence(text, 1)
    # Blanks keep a backtick of the text from the fence, and are not shown.
    blank = " " * (len(fence) > 1)
    return f"{fence}{blank}{escape_value(text)}{blank}{fence}"


def _make_fence(text: str, shortest: int) -> str:
    """Return more backticks than follow each other in a text."""
    return "`" * max([shortest, *(len(run) + 1 for run in re.findall("`+", text))])


def _fence(text: str) -> str:
    """Return text between fences that do not occur in it."""
    fence = _make_fence(text, 3)
    return f"{fence}text\n{text}\n{fence}"
