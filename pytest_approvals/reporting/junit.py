"""JUnit report: a test case for each run, with its findings, for services that show results of tests."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape as escape_xml
from xml.sax.saxutils import quoteattr

from pytest_approvals.errors.printable import escape_lines
from pytest_approvals.reporting.findings import STATUS_ORDER, finding_from_line, list_notices, rank_line
from pytest_approvals.reporting.matrix import agent_names
from pytest_approvals.reporting.report import Report, VerdictLine
from pytest_approvals.reporting.subject import ALL_VARIANTS

_ELEMENTS = {"fail": "failure", "unknown": "failure", "harness-error": "error"}
"""The element of each status that fails a run; all others are told as output."""


def render_junit(report: Report) -> str:
    """Return the report as JUnit XML; it ends with a line feed."""
    suites = [suite for agent in agent_names(report) for suite in _suite(report, agent)]
    texts = enumerate(_notices(report), 1)
    notices = [_case("report", str(number), [_element("failure", text)]) for number, text in texts]
    if notices:
        suites.append(_wrap("testsuite", notices, name="report", tests=len(notices), failures=len(notices)))
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
        yield f"<system-out>{_escape(text)}</system-out>"


def _case(scenario: str, name: str, elements: list[str]) -> str:
    return _wrap("testcase", elements, classname=scenario, name=name)


def _element(kind: str, text: str, message: str = "") -> str:
    return f"<{kind} message={_quote(message or text)}>{_escape(text)}</{kind}>"


def _wrap(kind: str, inner: list[str], **attributes: object) -> str:
    said = "".join(f" {name}={_quote(str(value))}" for name, value in attributes.items())
    return "\n".join([f"<{kind}{said}>", *inner, f"</{kind}>"])


def _escape(text: str) -> str:
    # XML has no characters for most control codes, not even as references.
    return escape_xml(escape_lines(text))


def _quote(text: str) -> str:
    return quoteattr(escape_lines(text))
