"""What services show of a run or of stored conversations: JUnit XML, SARIF, and the code quality report of GitLab.

SARIF is version 2.1.0 (https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html), as GitHub's code scanning
reads it; for GitLab see https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal
from urllib.parse import quote
from xml.sax.saxutils import escape as escape_xml
from xml.sax.saxutils import quoteattr

from pytest_approvals.errors.printable import escape_lines
from pytest_approvals.reporting.findings import STATUS_ORDER, finding_from_line, list_notices, rank_line
from pytest_approvals.reporting.matrix import agent_names
from pytest_approvals.reporting.report import Report, VerdictLine, dump_json
from pytest_approvals.reporting.subject import ALL_VARIANTS

_ELEMENTS = {"fail": "failure", "unknown": "failure", "harness-error": "error"}
"""The element of each status that fails a run; all others are told as output."""

_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceFinding:
    """A finding as services know it.

    Attributes:
        rule: The check, or the rule of `lint`.
        level: How SARIF calls its weight: `error`, `warning`, or `note` for what is waived or only noticed.
        text: What was found.
        file: The file that it is in, relative to where the command ran.
        line: The line in the file; None for the file as a whole.
        subject: What tells it from others of its rule and file, whatever the words and lines are.
        waiver: Why it is waived; None if it is not.
    """

    rule: str
    level: Literal["error", "warning", "note"]
    text: str
    file: str
    line: int | None = None
    subject: str = ""
    waiver: str | None = None

    @property
    def fingerprint(self) -> str:
        """What stays the same while the finding does."""
        return hashlib.sha256(repr((self.rule, self.file, self.subject)).encode(errors="replace")).hexdigest()


def collect_service_findings(report: Report) -> list[ServiceFinding]:
    """Return the findings of a report, the gravest first; those that follow from others are left out."""
    shown = [line for line in report.verdicts if line.status in STATUS_ORDER and line.implied_by is None]
    ordered = sorted(
        shown,
        key=lambda line: (*rank_line(line, report.header), line.scenario, line.agent, line.variant, line.check),
    )
    return [
        ServiceFinding(
            rule=line.check,
            level="note" if line.status == "waived" else "warning" if line.status == "warning" else "error",
            text=finding_from_line(line, report.header).render(),
            file=f"scenarios/{line.scenario}.approval.yaml",
            subject=f"{line.agent} {line.variant} {line.label or ''}",
            waiver=line.waiver,
        )
        for line in ordered
    ]


# --- SARIF ------------------------------------------------------------------------------------------------------------


def render_sarif(findings: Iterable[ServiceFinding], rules: Mapping[str, str]) -> str:
    """Return findings as a SARIF log; it ends with a line feed.

    Args:
        findings: The findings.
        rules: What each rule requires, by name; rules without a finding are listed, too.
    """
    known = dict(rules)
    results = []
    for finding in findings:
        known.setdefault(finding.rule, finding.rule)
        results.append(_describe_result(finding, list(known).index(finding.rule)))
    driver = {
        "name": "pytest-approvals",
        "version": version("pytest-approvals"),
        "rules": [{"id": rule, "shortDescription": {"text": escape_lines(text)}} for rule, text in known.items()],
    }
    log = {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}],
    }
    return f"{dump_json(log)}\n"


def _describe_result(finding: ServiceFinding, index: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(finding.file, safe="/:", errors="replace")}}
    if finding.line is not None:
        place["region"] = {"startLine": max(1, finding.line)}
    result: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": index,
        "level": finding.level,
        "message": {"text": escape_lines(finding.text)},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"finding/v1": finding.fingerprint},
    }
    if finding.waiver is not None:
        result["suppressions"] = [{"kind": "external", "justification": escape_lines(finding.waiver)}]
    return result


def render_report_sarif(report: Report) -> str:
    """Return the findings of a report as a SARIF log."""
    rules = {slug: check.requirement for slug, check in report.header.checks.items()}
    return render_sarif(collect_service_findings(report), rules)


# --- GitLab -----------------------------------------------------------------------------------------------------------

_GITLAB_SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}


def render_gitlab(findings: Iterable[ServiceFinding]) -> str:
    """Return findings as a code quality report of GitLab; it ends with a line feed."""
    listed = [
        {
            "description": escape_lines(finding.text),
            "check_name": finding.rule,
            "fingerprint": finding.fingerprint,
            "severity": _GITLAB_SEVERITIES[finding.level],
            "location": {"path": escape_lines(finding.file), "lines": {"begin": max(1, finding.line or 1)}},
        }
        for finding in findings
    ]
    return f"{dump_json(listed)}\n"


def render_report_gitlab(report: Report) -> str:
    """Return the findings of a report as a code quality report of GitLab."""
    return render_gitlab(collect_service_findings(report))


# --- JUnit ------------------------------------------------------------------------------------------------------------


def render_findings_junit(findings: Iterable[ServiceFinding], name: str) -> str:
    """Return findings as JUnit XML, a test case for each; it ends with a line feed.

    Args:
        findings: The findings.
        name: The name of the suite.
    """
    cases = []
    failures = 0
    for number, finding in enumerate(findings, 1):
        fails = finding.level == "error"
        failures += fails
        text = f"{finding.file}:{finding.line or 1}: {finding.text}"
        told = _element("failure", text, message=finding.rule) if fails else _output(text)
        cases.append(_case(finding.file, f"{finding.rule} {number}", [told]))
    suite = _wrap("testsuite", cases, name=name, tests=len(cases), failures=failures)
    return _join_suites([suite])


def render_junit(report: Report) -> str:
    """Return the report as JUnit XML; it ends with a line feed."""
    suites = [suite for agent in agent_names(report) for suite in _suite(report, agent)]
    texts = enumerate(_notices(report), 1)
    notices = [_case("report", str(number), [_element("failure", text)]) for number, text in texts]
    if notices:
        suites.append(_wrap("testsuite", notices, name="report", tests=len(notices), failures=len(notices)))
    return _join_suites(suites)


def _join_suites(suites: Iterable[str]) -> str:
    return "\n".join(['<?xml version="1.0" encoding="utf-8"?>', "<testsuites>", *suites, "</testsuites>", ""])


def _notices(report: Report) -> list[str]:
    cut = [] if report.complete else ["the report was cut off: the session did not come to its end"]
    return [*cut, *list_notices(report)]


def _suite(report: Report, agent: str) -> Iterator[str]:
    runs: dict[tuple[str, str], list[VerdictLine]] = {}
    for line in report.verdicts:
        if line.agent == agent:
            runs.setdefault((line.scenario, line.variant), []).append(line)
    skipped = sorted(line.scenario for line in report.not_applicable if line.agent == agent)
    if not runs and not skipped:
        return
    cases, counts = [], {"failure": 0, "error": 0}
    for (scenario, variant), lines in sorted(runs.items()):
        elements = [*_elements(report, lines)]
        for kind in counts:
            counts[kind] += any(element.startswith(f"<{kind} ") for element in elements)
        cases.append(_case(scenario, "all variants together" if variant == ALL_VARIANTS else variant, elements))
    cases += [_case(scenario, "not applicable", ["<skipped/>"]) for scenario in skipped]
    yield _wrap(
        "testsuite",
        cases,
        name=agent,
        tests=len(cases),
        failures=counts["failure"],
        errors=counts["error"],
        skipped=len(skipped),
    )


def _elements(report: Report, lines: list[VerdictLine]) -> Iterator[str]:
    shown = [line for line in lines if line.status in STATUS_ORDER and line.implied_by is None]
    told = []
    ordered = sorted(shown, key=lambda line: (*rank_line(line, report.header), line.check, line.label or ""))
    for line in ordered:
        text = finding_from_line(line, report.header).render()
        if line.status in _ELEMENTS:
            yield _element(_ELEMENTS[line.status], text, message=line.check)
        else:
            told.append(text)
    if told:
        text = "\n\n".join(told)
        yield _output(text)


def _case(scenario: str, name: str, elements: list[str]) -> str:
    return _wrap("testcase", elements, classname=scenario, name=name)


def _element(kind: str, text: str, message: str = "") -> str:
    return f"<{kind} message={_quote(message or text)}>{_escape(text)}</{kind}>"


def _output(text: str) -> str:
    return f"<system-out>{_escape(text)}</system-out>"


def _wrap(kind: str, inner: list[str], **attributes: object) -> str:
    said = "".join(f" {name}={_quote(str(value))}" for name, value in attributes.items())
    return "\n".join([f"<{kind}{said}>", *inner, f"</{kind}>"])


def _escape(text: str) -> str:
    # XML has no characters for most control codes, not even as references.
    return escape_xml(escape_lines(text))


def _quote(text: str) -> str:
    return quoteattr(escape_lines(text))
