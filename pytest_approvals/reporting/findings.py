"""Findings: their lines in the report, their printed form, and the summary.

The printed form is the same in every report:

    runs-at-most-once: an approved call must not run more than once
      parallel/partial-answer · openai_agents 0.24.0 (environment) · json, streaming, held · also in 23 variants
      severity  double-effect
      expected  1 run of c1 pay(amount=5)
      actual    2 runs
         7 caller  approves c1
         9 tool    c1 pay(amount=5) starts
        14 store   restored from json
        15 tool    c1 pay(amount=5) starts
      rerun  pytest-approvals run parallel/partial-answer --agent openai_agents==0.24.0 --serialize json ...

The summary has one finding for each agent and check; the smallest variant stands for all others.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from pytest_approvals.checks import SHOWN_STATUSES, Finding, Severity, Verdict, rank_severity
from pytest_approvals.errors.printable import LINE_WIDTH, escape_lines, escape_value, format_message, shorten
from pytest_approvals.journal.descriptions import EventDescriber
from pytest_approvals.journal.history import History
from pytest_approvals.reporting.report import Report, ReportHeader, VerdictLine, WitnessLine
from pytest_approvals.reporting.subject import ALL_VARIANTS, Subject, agent_location, format_agent

WITNESS_WIDTH = 120
"""Maximal width of a line of a witness."""

DETAIL_INDENT = "\n      "
"""What begins a further line of what was expected or what happened instead."""

_PREFIXES = {"warning": "warning: ", "unknown": "undecided: ", "harness-error": "harness error: ", "waived": "waived: "}


@dataclass(frozen=True, slots=True, kw_only=True)
class WitnessEvent:
    """One event that shows a finding: its position in the journal, and what it says."""

    n: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedFinding:
    """A finding with everything that is printed of it.

    Attributes:
        requirement: The sentence of the check.
        status: The status of the verdict; `waived` if a waiver covers it.
        severity: What a failure of the check can cost; None if the report does not say.
        tool: The tool of the call in the user's own code, and where it stands: `pay, shop/desk.py:12`.
        others: How often else the check failed: `23 variants`.
        elsewhere: Further scenarios in which it failed.
        notes: Further remarks: what follows from it, the reason of a waiver.
    """

    check: str
    requirement: str
    subject: Subject
    status: str = "fail"
    severity: Severity | None = None
    expected: str = ""
    actual: str = ""
    tool: str = ""
    witness: tuple[WitnessEvent, ...] = ()
    others: str = ""
    elsewhere: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, finding: Finding, subject: Subject, history: History | None) -> PrintedFinding:
        """Return the printed form of a finding.

        Args:
            finding: The finding.
            subject: What it is about.
            history: The journal that it was found in; None if it is about several.
        """
        verdict = finding.verdict
        implied = sorted({each.check for each in finding.implied})
        return cls(
            check=verdict.check,
            requirement=finding.requirement,
            subject=subject,
            status=verdict.status,
            severity=finding.severity,
            expected=verdict.expected,
            actual=verdict.actual,
            tool=_describe_tool(verdict, history) or "",
            witness=describe_witness(verdict, history) if history is not None else (),
            notes=(f"from it follow {', '.join(implied)}",) if implied else (),
        )

    def render(self) -> str:
        """Return the printed form: several lines, without a line feed at the end."""
        return "\n".join(map(_format_line, self._lines()))

    def _lines(self) -> Iterator[str]:
        requirement = self.requirement[:1].lower() + self.requirement[1:].rstrip(".")
        yield f"{_PREFIXES.get(self.status, '')}{self.check}: {requirement}"
        subject = self.subject
        also = f"also in {self.others}" if self.others else ""
        yield "  " + " · ".join(part for part in (subject.scenario, subject.agent_label, subject.mode, also) if part)
        if self.severity is not None:
            yield f"  severity  {self.severity}"
        if self.expected:
            yield f"  expected  {self.expected}"
        if self.actual:
            yield f"  actual    {self.actual}"
        if self.tool:
            yield f"  tool      {self.tool}"
        for event in self.witness:
            yield truncate(f"  {event.n:>4} {event.text}", WITNESS_WIDTH)
        if self.elsewhere:
            yield f"  also in   {', '.join(self.elsewhere)}"
        for note in self.notes:
            yield f"  note   {note}"
        if subject.rerun:
            yield f"  rerun  {subject.rerun}"


def _format_line(line: str) -> str:
    """Return a line as it may be printed; a line feed in it counts only if the next line is indented as a detail."""
    return DETAIL_INDENT.join(escape_value(shorten(part, LINE_WIDTH)) for part in line.split(DETAIL_INDENT))


def render_findings(findings: Iterable[PrintedFinding]) -> str:
    """Return the printed form of several findings, with an empty line between them."""
    return "\n\n".join(finding.render() for finding in findings)


def describe_witness(verdict: Verdict, history: History) -> tuple[WitnessEvent, ...]:
    """Describe the events that show a verdict.

    If several sentences describe an event, only those about the call of the verdict are used, if there are any.
    """
    sentences = EventDescriber(history)
    events = {event.n: event for event in history.events}
    witness = []
    for n in verdict.witness:
        if n in events:
            texts = _sentences_about(verdict.label, sentences.of(events[n]))
            # Each sentence begins with its side, 7 characters wide; only the first one keeps it.
            witness.append(WitnessEvent(n=n, text=texts[0] + "".join(f"; {text[8:]}" for text in texts[1:])))
    return tuple(witness)


def _describe_tool(verdict: Verdict, history: History | None) -> str | None:
    call = history.find_call(verdict.label, verdict.session) if history is not None and verdict.label else None
    if call is None or call.declaration is None or not call.declaration.place:
        return None
    return f"{call.tool}, {call.declaration.place}"


def _sentences_about(label: str | None, sentences: Sequence[str]) -> Sequence[str]:
    if label is None or len(sentences) == 1:
        return sentences
    # Not `\b`: labels contain `#` and `/`, and c1 is another call than c1#2 and o1/c1.
    named = re.compile(rf"(?<![\w/#-]){re.escape(label)}(?![\w/#-])")
    return [text for text in sentences if named.search(text)] or sentences


def truncate(line: str, width: int) -> str:
    """Cut a line that is too long.

    >>> truncate("a long line", 8)
    'a long …'
    """
    return line if len(line) <= width else line[: width - 1] + "…"


def to_verdict_line(
    verdict: Verdict, subject: Subject, history: History | None = None, *, waiver: str | None = None
) -> VerdictLine:
    """Return a verdict as a line of the report, with everything that is printed of it if it is shown.

    Args:
        verdict: The verdict.
        subject: What it is about.
        history: The journal that was judged; None if the check judged several.
        waiver: Why a failure is waived, with the issue.
    """
    if verdict.status not in SHOWN_STATUSES:
        return VerdictLine(
            scenario=subject.scenario,
            agent=subject.agent,
            version=subject.version,
            variant=subject.variant,
            check=verdict.check,
            status=verdict.status,
        )
    witness = describe_witness(verdict, history) if history is not None else ()
    return VerdictLine(
        scenario=subject.scenario,
        agent=subject.agent,
        version=subject.version,
        variant=subject.variant,
        check=verdict.check,
        status="waived" if waiver is not None else verdict.status,
        label=verdict.label,
        call=verdict.call or None,
        expected=verdict.expected,
        actual=verdict.actual,
        tool=_describe_tool(verdict, history),
        witness=tuple(WitnessLine(n=event.n, text=event.text) for event in witness),
        implied_by=verdict.implied_by,
        waiver=waiver,
        mode=subject.mode,
        rerun=subject.rerun or None,
    )


def finding_from_line(line: VerdictLine, header: ReportHeader, implied: Iterable[str] = ()) -> PrintedFinding:
    """Return the printed form of a line.

    Args:
        line: The line.
        header: The header of the report, which describes the checks.
        implied: The checks whose failures follow from this one.
    """
    known = header.checks.get(line.check)
    notes = [f"from it follow {', '.join(sorted(set(implied)))}"] if implied else []
    if line.implied_by is not None:
        notes.append(f"it follows from {line.implied_by}")
    if line.waiver is not None:
        notes.append(f"waived: {line.waiver}")
    return PrintedFinding(
        check=line.check,
        requirement=known.requirement if known is not None else "a check that the report does not describe",
        subject=subject_from_line(line),
        status=line.status,
        severity=known.severity if known is not None else None,
        expected=line.expected or "",
        actual=line.actual or "",
        tool=line.tool or "",
        witness=tuple(WitnessEvent(n=event.n, text=event.text) for event in line.witness),
        notes=tuple(notes),
    )


def subject_from_line(line: VerdictLine) -> Subject:
    """Return what a line is about."""
    return Subject(
        scenario=line.scenario,
        agent=line.agent,
        version=line.version,
        where=agent_location(line.agent),
        variant=line.variant,
        mode=line.mode or line.variant,
        rerun=line.rerun or "",
    )


MAX_LISTED_SCENARIOS = 6
"""How many further scenarios a finding lists."""

STATUS_ORDER = ("fail", "harness-error", "unknown", "warning", "waived")
"""The statuses that are shown, the worst first."""


def format_summary(report: Report) -> str:
    """Return all findings by agent, the stale waivers, the agents that were not judged, and a line of counts.

    The text ends without a line feed.
    """
    blocks = [block for agent in _reported_agents(report) for block in _agent_section(report, agent)]
    blocks += [*list_notices(report), *list_explorations(report)]
    return escape_lines("\n\n".join([*blocks, format_counts(report)]))


def list_notices(report: Report) -> list[str]:
    """Return the stale waivers and the agents that were not judged, as texts."""
    stale = [f"stale waiver: {format_waiver(line.waiver)}" for line in report.stale]
    absent = [f"not judged: {format_message(line.why)}" for line in report.absent]
    return stale + absent


def list_explorations(report: Report) -> Iterator[str]:
    """Yield a line for each agent that was explored: `explored reference: 1,000 stories · 2 distinct failures`."""
    for agent in sorted({line.agent for line in report.explored}):
        lines = [line for line in report.explored if line.agent == agent]
        found = len({name for line in lines for name in line.found})
        stories = sum(line.stories for line in lines)
        counts = {
            "story" if stories == 1 else "stories": stories,
            "went another way": sum(line.unexercised for line in lines),
            "that it cannot play": sum(line.skipped for line in lines),
            f"distinct failure{'' if found == 1 else 's'}": found,
            "of known causes": sum(line.known for line in lines),
        }
        shown = (f"{count:,} {what}" for what, count in counts.items() if count or what in ("story", "stories"))
        yield escape_value(f"explored {agent}: {' · '.join(shown)}")


def format_waiver(waiver: str) -> str:
    """Return a waiver on one line."""
    return escape_value(shorten(waiver, LINE_WIDTH))


def collect_findings(report: Report, agent: str) -> list[PrintedFinding]:
    """Return the findings about an agent: the gravest first; of equal severity, failures before warnings.

    What waivers cover comes last.
    """
    groups: dict[str, list[VerdictLine]] = {}
    for line in report.verdicts:
        if line.agent == agent and line.status in SHOWN_STATUSES and line.implied_by is None:
            groups.setdefault(line.check, []).append(line)
    checks = [*report.header.checks, *groups]
    return sorted(
        (_representative(report, lines) for lines in groups.values()),
        key=lambda finding: (*rank_finding(finding.status, finding.severity), checks.index(finding.check)),
    )


def rank_finding(status: str, severity: Severity | None) -> tuple[bool, int, int]:
    """Return by what findings are ordered: the gravest first, then by status; waived ones last."""
    return status == "waived", rank_severity(severity), STATUS_ORDER.index(status)


def rank_line(line: VerdictLine, header: ReportHeader) -> tuple[bool, int, int]:
    """Return by what the shown verdicts of a report are ordered; see `rank_finding`."""
    known = header.checks.get(line.check)
    return rank_finding(line.status, known.severity if known is not None else None)


def format_counts(report: Report) -> str:
    """Return the number of runs, and of verdicts by status: `812 runs · 700 remembered · 31,002 pass · 3 fail`."""
    footer = report.footer()
    order = ["pass", *STATUS_ORDER, "stale", "absent", "not-applicable", "not-observable"]
    known = sorted(footer.counts, key=lambda status: order.index(status) if status in order else len(order))
    words = [f"{footer.runs:,} run{'' if footer.runs == 1 else 's'}"]
    words += [f"{len(report.remembered):,} remembered"] if report.remembered else []
    words += [f"{footer.counts[status]:,} {status}" for status in known]
    return " · ".join(words) + ("" if report.complete else " · the report was cut off")


def _agent_section(report: Report, agent: str) -> Iterator[str]:
    findings = collect_findings(report, agent)
    if findings:
        known = next((each for each in report.header.agents if each.agent == agent), None)
        label = escape_value(format_agent(agent, known.version if known else None, agent_location(agent)))
        # What the harness could not play is nobody's issue there.
        is_theirs = any(finding.status != "harness-error" for finding in findings)
        issues = f" · issues go to {escape_value(known.issues)}" if is_theirs and known and known.issues else ""
        yield f"{label}: {len(findings)} finding{'' if len(findings) == 1 else 's'}{issues}"
        yield from (finding.render() for finding in findings)


def _reported_agents(report: Report) -> list[str]:
    return list(dict.fromkeys([each.agent for each in report.header.agents] + [line.agent for line in report.verdicts]))


def _worst_status(lines: Sequence[VerdictLine]) -> int:
    return min(STATUS_ORDER.index(line.status) for line in lines)


def _representative(report: Report, lines: Sequence[VerdictLine]) -> PrintedFinding:
    worst = _worst_status(lines)
    chosen = min((line for line in lines if STATUS_ORDER.index(line.status) == worst), key=_variant_size)
    runs = {(line.scenario, line.variant) for line in lines}
    scenarios = sorted({scenario for scenario, _ in runs} - {chosen.scenario})
    return replace(
        finding_from_line(chosen, report.header, _implied_checks(report, chosen)),
        others=_format_others(len(runs) - 1, len(scenarios)),
        elsewhere=_truncate_scenarios(scenarios),
    )


def _variant_size(line: VerdictLine) -> tuple[int, str, str, str]:
    # Variants are named by what differs from the plainest one, so the shortest name is the smallest variant.
    steps = 0 if line.variant == ALL_VARIANTS else line.variant.count("-")
    serialize = {"none": "0", "copy": "1", "json": "2"}.get(line.variant.partition("-")[0], "3")
    return steps, serialize + line.variant, line.scenario, line.label or ""


def _format_others(runs: int, scenarios: int) -> str:
    if not runs:
        return ""
    variants = f"{runs} variant{'' if runs == 1 else 's'}"
    return f"{variants} of {scenarios + 1} scenarios" if scenarios else variants


def _truncate_scenarios(scenarios: Sequence[str]) -> tuple[str, ...]:
    if len(scenarios) <= MAX_LISTED_SCENARIOS:
        return tuple(scenarios)
    return (*scenarios[:MAX_LISTED_SCENARIOS], f"and {len(scenarios) - MAX_LISTED_SCENARIOS} more")


def _implied_checks(report: Report, chosen: VerdictLine) -> list[str]:
    run = (chosen.scenario, chosen.agent, chosen.variant)
    return [
        line.check
        for line in report.verdicts
        if (line.scenario, line.agent, line.variant) == run
        and line.implied_by == chosen.check
        and line.label in (None, chosen.label)
    ]
