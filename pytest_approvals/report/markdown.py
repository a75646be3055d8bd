"""The report as Markdown, for a summary of a CI job or a comment: the matrix as a table, the findings as text."""

from __future__ import annotations

from collections.abc import Iterator

from .matrix import SYMBOLS, Cell, agents_of, cells
from .subject import agent_said, place_of
from .summary import counts, findings
from .whole import Report


def markdown(report: Report) -> str:
    """Gives the report as Markdown; it ends with a line feed."""
    return "\n".join(_blocks(report)) + "\n"


def _blocks(report: Report) -> Iterator[str]:
    yield "# Tool approvals\n"
    yield counts(report) + "\n"
    yield from _agents(report)
    yield from _matrix(report)
    for agent in agents_of(report):
        found = findings(report, agent)
        if found:
            yield f"## {_text(agent_said(agent, _version(report, agent), place_of(agent)))}\n"
        for finding in found:
            yield f"### {finding.check}\n"
            yield f"{_fenced(finding.render())}\n"
    if report.stale:
        yield "## Stale waivers\n"
        yield from (f"- {_text(line.waiver)}" for line in report.stale)
    if report.absent:
        yield "## Not judged\n"
        yield from (f"- {_text(line.why)}" for line in report.absent)


def _agents(report: Report) -> Iterator[str]:
    for each in report.header.agents:
        said = agent_said(each.agent, each.version, place_of(each.agent))
        what = [f"`{each.where}`" if each.where else "", f"issues: <{each.issues}>" if each.issues else ""]
        yield " · ".join(part for part in (f"- {_text(said)}", *what) if part)
    yield ""


def _matrix(report: Report) -> Iterator[str]:
    agents = agents_of(report)
    yield "| scenario | " + " | ".join(_text(agent_said(agent, _version(report, agent))) for agent in agents) + " |"
    yield "|---" * (len(agents) + 1) + "|"
    table = cells(report)
    for scenario, row in table.items():
        said = (_said(row.get(agent)) for agent in agents)
        yield f"| {_text(scenario)} | {' | '.join(said)} |"
    used = {cell.state for row in table.values() for cell in row.values()}
    legend = (f"{symbol} {meaning}" for state, (symbol, meaning) in SYMBOLS.items() if state in used)
    yield f"\n{' · '.join(legend)}\n"


def _said(cell: Cell | None) -> str:
    return cell.said if cell is not None else ""


def _version(report: Report, agent: str) -> str | None:
    return next((each.version for each in report.header.agents if each.agent == agent), None)


def _text(text: str) -> str:
    """Keeps characters of names from being read as Markdown."""
    for character in "\\`*_{}[]<>|":
        text = text.replace(character, f"\\{character}")
    return text


def _fenced(text: str) -> str:
    """Puts text between fences that do not occur in it."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text}\n{fence}"
