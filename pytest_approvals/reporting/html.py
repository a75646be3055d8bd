"""HTML report: one self-contained file with the matrix, the findings, and each scenario's verdicts and transcripts.

It needs no JavaScript; what can be unfolded is made of `details`.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from string import Template

from pytest_approvals.errors.printable import escape_lines
from pytest_approvals.reporting.findings import (
    STATUS_ORDER,
    collect_findings,
    finding_from_line,
    format_counts,
    list_explorations,
    list_notices,
    rank_line,
)
from pytest_approvals.reporting.matrix import SYMBOLS, Cell, agent_names, collect_cells
from pytest_approvals.reporting.report import Report, TranscriptLine, VerdictLine
from pytest_approvals.reporting.subject import ALL_VARIANTS, agent_location, format_agent

_PAGE = Template("""\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Tool approvals</title>
<style>
:root { color-scheme: light dark; --line: #8884; --good: #2a7; --bad: #d33; --doubtful: #c80; --quiet: #888; }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; }
table { border-collapse: collapse; }
th, td { border-bottom: 1px solid var(--line); padding: .2rem .8rem .2rem 0; text-align: left; vertical-align: top; }
thead th { position: sticky; top: 0; background: Canvas; }
pre { background: #8881; border-radius: .3rem; overflow-x: auto; padding: .6rem .8rem; }
summary { cursor: pointer; }
details { margin: .3rem 0; }
details details { margin-left: 1.2rem; }
.pass { color: var(--good); } .fail, .harness-error, .unknown { color: var(--bad); font-weight: bold; }
.warning { color: var(--doubtful); } .waived, .not-applicable { color: var(--quiet); }
</style>
</head>
<body>
<h1>Tool approvals</h1>
$body
</body>
</html>
""")


def render_html(report: Report) -> str:
    """Return the report as an HTML page."""
    return escape_lines(_PAGE.substitute(body="\n".join(_body(report))))


def _body(report: Report) -> Iterator[str]:
    yield f"<p>{escape(format_counts(report))}</p>"
    yield from _agents(report)
    yield "<h2>Matrix</h2>"
    yield from _matrix(report)
    yield "<h2>Findings</h2>"
    yield from _findings(report)
    yield from (f"<p>{escape(text)}</p>" for text in list_explorations(report))
    yield from _traits(report)
    yield "<h2>Scenarios</h2>"
    yield from _scenarios(report)


def _agents(report: Report) -> Iterator[str]:
    yield "<ul>"
    for each in report.header.agents:
        label = escape(format_agent(each.agent, each.version, agent_location(each.agent)))
        where = f" · <code>{escape(each.where)}</code>" if each.where else ""
        yield f"<li>{label}{where}{_issues_link(each.issues)}</li>"
    yield "</ul>"


def _issues_link(address: str) -> str:
    # Adapters of others name the address, and a link such as `javascript:` would run code.
    if not address.startswith(("https://", "http://")):
        return ""
    return f' · <a href="{escape(address)}" rel="noreferrer">issues</a>'


def _matrix(report: Report) -> Iterator[str]:
    agents = agent_names(report)
    yield "<table><thead><tr><th>scenario</th>"
    yield "".join(f"<th>{escape(format_agent(agent, None, agent_location(agent)))}</th>" for agent in agents)
    yield "</tr></thead><tbody>"
    for scenario, row in collect_cells(report).items():
        named = f'<a href="#{escape(scenario)}">{escape(scenario)}</a>'
        yield f"<tr><td>{named}</td>{''.join(_cell(row.get(agent)) for agent in agents)}</tr>"
    yield "</tbody></table>"
    legend = (f'<span class="{state}">{symbol}</span> {meaning}' for state, (symbol, meaning) in SYMBOLS.items())
    yield f"<p>{' · '.join(legend)}</p>"


def _cell(cell: Cell | None) -> str:
    return "<td></td>" if cell is None else f'<td class="{cell.state}">{escape(cell.said)}</td>'


def _findings(report: Report) -> Iterator[str]:
    texts = [finding.render() for agent in agent_names(report) for finding in collect_findings(report, agent)]
    texts += list_notices(report)
    if not texts:
        yield "<p>There are none.</p>"
    yield from (f"<pre>{escape(text)}</pre>" for text in texts)


def _traits(report: Report) -> Iterator[str]:
    """Yield the design choices of each agent, which are neither right nor wrong."""
    if report.traits:
        yield "<h2>Traits</h2>"
    for line in sorted(report.traits, key=lambda line: line.agent):
        choices = (f"<li>{escape(name)}: {escape(', '.join(values))}</li>" for name, values in line.traits.items())
        yield f"<h3>{escape(line.agent)}</h3><ul>{''.join(choices)}</ul>"


def _scenarios(report: Report) -> Iterator[str]:
    runs: dict[tuple[str, str], dict[str, list[VerdictLine]]] = {}
    for line in report.verdicts:
        runs.setdefault((line.scenario, line.agent), {}).setdefault(line.variant, []).append(line)
    transcripts = {(line.scenario, line.agent, line.variant): line for line in report.transcripts}
    for scenario in collect_cells(report):
        title = escape(report.header.scenarios.get(scenario, ""))
        yield f'<details id="{escape(scenario)}"><summary><b>{escape(scenario)}</b> {title}</summary>'
        for agent in agent_names(report):
            variants = runs.get((scenario, agent), {})
            if variants:
                count = len(variants) - (ALL_VARIANTS in variants)
                yield f"<details><summary>{escape(agent)} · variants: {count}</summary>"
                for variant, lines in sorted(variants.items()):
                    yield from _variant_details(report, variant, lines, transcripts.get((scenario, agent, variant)))
                yield "</details>"
        yield "</details>"


def _variant_details(
    report: Report, variant: str, lines: list[VerdictLine], told: TranscriptLine | None
) -> Iterator[str]:
    shown = sorted(
        (line for line in lines if line.status in STATUS_ORDER),
        key=lambda line: (*rank_line(line, report.header), line.check, line.label or ""),
    )
    passed = sorted({line.check for line in lines if line.status == "pass"})
    state = min((line.status for line in shown), key=STATUS_ORDER.index, default="pass")
    title = "all variants together" if variant == ALL_VARIANTS else variant
    yield f'<details><summary class="{state}">{escape(title)}</summary>'
    yield from (f"<pre>{escape(finding_from_line(line, report.header).render())}</pre>" for line in shown)
    if passed:
        yield f"<p>hold: {escape(', '.join(passed))}</p>"
    if told is not None:
        text = "\n".join(told.lines)
        yield f"<details><summary>transcript</summary><pre>{escape(text)}</pre></details>"
    yield "</details>"
