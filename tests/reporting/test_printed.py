"""Everything that is printed of runs and verdicts, as it is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from syrupy.assertion import SnapshotAssertion

from pytest_approvals.checks import Finding, Verdict
from pytest_approvals.journal.events import Header
from pytest_approvals.journal.history import History
from pytest_approvals.reporting.findings import (
    PrintedFinding,
    collect_findings,
    describe_witness,
    finding_from_line,
    format_counts,
    format_summary,
    render_findings,
    subject_from_line,
)
from pytest_approvals.reporting.html import render_html
from pytest_approvals.reporting.markdown import render_markdown
from pytest_approvals.reporting.matrix import format_matrix
from pytest_approvals.reporting.report import Report, ReportedAgent, ReportHeader, VerdictLine
from pytest_approvals.reporting.subject import Subject, format_mode, format_rerun_command
from pytest_approvals.scenario.model import Variant

STORED = Variant(serialize="json", stream=True)


@pytest.fixture
def finding(twice: Verdict) -> Finding:
    requirement = "An approved call must not run more than once."
    return Finding(verdict=twice, requirement=requirement, severity="double-effect")


@pytest.fixture
def subject() -> Subject:
    variant = {name: getattr(STORED, name) for name in Variant.__slots__}
    header = Header(
        scenario="parallel/partial-answer", agent="openai_agents==0.24.0", version="0.24.0", variant=variant
    )
    return Subject.of(header)


class TestFinding:
    def test_a_finding(self, finding: Finding, subject: Subject, history: History, snapshot: SnapshotAssertion) -> None:
        """Requirement, where, expected, actual, the witness, and the command that shows it again."""
        assert snapshot == replace(PrintedFinding.of(finding, subject, history), others="23 variants").render()

    def test_a_finding_of_ones_own_test(self, finding: Finding, history: History, snapshot: SnapshotAssertion) -> None:
        """A person's own test is run again with pytest, in this environment."""
        header = Header(scenario="tests/test_refund.py::test_waits", agent="pydantic_ai", version="2.68.0")
        subject = Subject.of(header, rerun="pytest tests/test_refund.py::test_waits")

        assert snapshot == PrintedFinding.of(finding, subject, history).render()

    def test_what_follows_from_it_is_a_note(
        self, finding: Finding, subject: Subject, history: History, snapshot: SnapshotAssertion
    ) -> None:
        """Failures that follow from another one are not told by themselves."""
        follows = (Verdict(check="told-once", status="fail"), Verdict(check="asked-once", status="fail"))

        assert (
            snapshot == PrintedFinding.of(replace(finding, implied=follows), subject, history).render().splitlines()[-2]
        )

    @pytest.mark.parametrize("status", ["fail", "warning", "unknown", "harness-error", "waived"])
    def test_anything_but_a_failure_says_so(self, subject: Subject, status: str, snapshot: SnapshotAssertion) -> None:
        """The first line says what kind of finding it is."""
        text = PrintedFinding(check="asked-once", requirement="It must.", subject=subject, status=status).render()

        assert snapshot == text.splitlines()[0]

    def test_several_stand_apart(self, subject: Subject) -> None:
        """An empty line divides findings."""
        one = PrintedFinding(check="a", requirement="It must.", subject=subject)

        assert f"{one.render()}\n\n{one.render()}" == render_findings([one, one])

    def test_a_witness_says_what_concerns_the_call(self, twice: Verdict, history: History) -> None:
        """Of a reply with two calls only the one that the finding is about is told."""
        assert ["model   calls c1 pay(amount=5)"] == [event.text for event in describe_witness(twice, history)][:1]

    def test_a_witness_without_a_call_says_it_all(self, twice: Verdict, history: History) -> None:
        """Where no call is concerned, an event is told whole, on one line."""
        told = [event.text for event in describe_witness(replace(twice, label=None), history)]

        assert 'model   calls c1 pay(amount=5); calls c2 mail(to="ann")' == told[0]

    def test_positions_that_are_not_there_are_passed_over(self, twice: Verdict, history: History) -> None:
        """A verdict on another journal breaks nothing."""
        assert () == describe_witness(replace(twice, witness=(900,)), history)

    def test_long_lines_are_cut(self, subject: Subject, twice: Verdict, history: History) -> None:
        """No line of a witness is longer than a terminal is wide."""
        finding = Finding(verdict=twice, requirement="It must.")
        printed = PrintedFinding.of(finding, subject, history)
        long = replace(printed, witness=(replace(printed.witness[0], text="x" * 300),))

        assert 120 == max(len(line) for line in long.render().splitlines() if "xxx" in line)


class TestSubject:
    @pytest.mark.parametrize(
        ("variant", "words"),
        [
            (Variant(), "none, held"),
            (STORED, "json, streaming, held"),
            (
                Variant(serialize="json", stream=True, chunking="split", source="rebuilt"),
                "json, streaming split, rebuilt",
            ),
            (Variant(serialize="json", resume="fresh", history="append"), "json, fresh process, history append, held"),
            (Variant(oracle="reject_all", protocol="chat"), "none, held, oracle reject_all, chat"),
        ],
    )
    def test_a_variant_in_words(self, variant: Variant, words: str) -> None:
        """Only what differs from the base variant is said, besides what the state goes through and who answers."""
        assert words == format_mode(variant)

    def test_a_command_that_pins_everything_that_differs(self) -> None:
        """The command runs this variant and no other."""
        variant = Variant(
            serialize="json",
            resume="cold",
            history="append",
            stream=True,
            source="rebuilt",
            oracle="random:7",
            chunking="ids_first",
        )

        assert (
            "pytest-approvals run a/b --agent 'langgraph@../lang graph' --serialize json --resume cold "
            "--history append --stream on --answer rebuilt --oracle random:7 --chunking ids_first"
        ) == format_rerun_command("a/b", "langgraph@../lang graph", variant)

    def test_a_command_for_all_variants(self) -> None:
        """What concerns all variants together is run again in all of them."""
        assert "pytest-approvals run a/b --agent reference" == format_rerun_command("a/b", "reference")


class TestSummary:
    def test_a_summary(self, report: Report, snapshot: SnapshotAssertion) -> None:
        """A finding an agent and check, with the smallest variant; stale waivers; counts."""
        assert snapshot == format_summary(report)

    def test_the_smallest_variant_stands_for_the_others(self, report: Report) -> None:
        """Of all runs in which a check failed the plainest is shown, in the first scenario."""
        (once,) = collect_findings(report, "openai_agents==0.24.0")

        assert ("parallel/partial-answer", "json-held", "3 variants of 2 scenarios", ("parallel/two",)) == (
            once.subject.scenario,
            once.subject.variant,
            once.others,
            once.elsewhere,
        )

    def test_many_scenarios_are_counted(self, report: Report, failing: VerdictLine) -> None:
        """No more than six further scenarios are named."""
        report.verdicts = [replace(failing, scenario=f"a/{n:02}") for n in range(10)]

        (once,) = collect_findings(report, failing.agent)

        assert ("a/01", "a/06", "and 3 more") == (once.elsewhere[0], *once.elsewhere[-2:])

    @pytest.mark.parametrize(("status", "is_named"), [("fail", True), ("harness-error", False)])
    def test_a_tracker_is_named_for_findings_only(
        self, report: Report, failing: VerdictLine, status: str, is_named: bool
    ) -> None:
        """What the harness could not play is no issue of the framework."""
        report.verdicts = [replace(failing, agent="pydantic_ai", status=status)]

        assert is_named is ("issues go to" in format_summary(report))

    def test_the_gravest_finding_comes_first(self, report: Report, failing: VerdictLine) -> None:
        """The severity counts more than must and should, and both more than the order of the checks."""
        report.verdicts = [
            replace(failing, check=check, status=status)
            for check, status in (
                ("reason-told", "warning"),
                ("same-outcome-in-every-mode", "fail"),
                ("result-delivered-once", "warning"),
            )
        ]

        assert [
            ("result-delivered-once", "warning"),
            ("same-outcome-in-every-mode", "fail"),
            ("reason-told", "warning"),
        ] == [(finding.check, finding.status) for finding in collect_findings(report, failing.agent)]

    def test_a_report_without_severities_is_ordered_by_status(self, report: Report, failing: VerdictLine) -> None:
        """Reports of earlier releases say no severity of a check, and none is printed."""
        checks = {slug: replace(check, severity=None) for slug, check in report.header.checks.items()}
        report.header = replace(report.header, checks=checks)
        warned = replace(failing, status="warning")
        report.verdicts = [warned, replace(failing, check="reason-told")]
        findings = collect_findings(report, failing.agent)

        assert ["fail", "warning"] == [finding.status for finding in findings]
        assert "severity" not in findings[0].render()

    def test_a_report_that_was_cut_off_says_so(self, report: Report) -> None:
        """Counts of a report without a footer are no whole counts."""
        report.complete = False

        assert format_counts(report).endswith(" · the report was cut off")

    def test_nothing_at_all(self) -> None:
        """An empty report has counts."""
        assert "0 runs" == format_summary(Report(header=ReportHeader(package="0.1.0", python="3.11.7")))


class TestMatrix:
    def test_a_matrix(self, report: Report, snapshot: SnapshotAssertion) -> None:
        """Families with counts, the scenarios that did not simply pass, a legend of what occurs."""
        assert snapshot == format_matrix(report)

    def test_a_narrow_terminal(self, report: Report, snapshot: SnapshotAssertion) -> None:
        """Agents that do not fit stand in a table below; names are cut."""
        text = format_matrix(report, width=60)

        assert snapshot == text
        assert 60 >= max(len(line) for line in text.splitlines()[:-1])

    def test_one_family(self, report: Report, snapshot: SnapshotAssertion) -> None:
        """With one family there is no row for all."""
        report.verdicts = [line for line in report.verdicts if line.scenario == "basics/pay"]
        report.not_applicable = []

        assert snapshot == format_matrix(report)


class TestMarkdown:
    def test_markdown(self, report: Report, snapshot: SnapshotAssertion) -> None:
        """Agents, matrix and findings, with names that cannot be read as markup."""
        assert snapshot == render_markdown(report)

    def test_a_fence_in_a_finding_does_not_end_it(self, report: Report, failing: VerdictLine) -> None:
        """Text that holds a fence is put between longer ones."""
        report.verdicts = [replace(failing, actual="```")]

        assert render_markdown(report).count("````") == 2


class Outline(HTMLParser):
    """The elements of a page, and what it refers to."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.references: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.references += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


class TestHtml:
    def test_html(self, report: Report, snapshot: SnapshotAssertion) -> None:
        """From the matrix to a scenario, its agents and variants, verdicts and transcript."""
        assert snapshot == render_html(report)

    def test_it_needs_nothing_else(self, report: Report) -> None:
        """The page loads nothing, and every element is closed."""
        outline = Outline()
        outline.feed(render_html(report))

        assert ([], []) == (outline.open, outline.wrong)
        assert ["https://a.test/x"] == [each for each in outline.references if not each.startswith("#")]

    def test_text_is_no_markup(self, report: Report, failing: VerdictLine) -> None:
        """Whatever an agent or a scenario says is shown as text."""
        evil = "<script>alert(1)</script>"
        agent = ReportedAgent(agent=evil, where=evil, issues=f"javascript:{evil}")
        report.header = replace(report.header, agents=(agent,), scenarios={evil: evil})
        report.verdicts = [replace(failing, agent=evil, scenario=evil, actual=evil, mode=evil)]

        page = render_html(report)

        assert "<script" not in page
        assert "javascript:" not in page


class TestLinesPrinted:
    def test_a_line_of_the_report_prints_like_the_finding(
        self, finding: Finding, history: History, report: Report, failing: VerdictLine
    ) -> None:
        """What is made from the report is the text that was printed when it was found."""
        live = PrintedFinding.of(finding, subject_from_line(failing), history).render()

        assert live == finding_from_line(failing, report.header).render()

    def test_a_waived_line_says_why(self, report: Report) -> None:
        """The reason of a waiver is a note."""
        waived = next(line for line in report.verdicts if line.status == "waived")

        assert "  note   waived: known (a#1)" in finding_from_line(waived, report.header).render().splitlines()


Renders = Callable[[Report], str]


@pytest.mark.parametrize("render", [format_summary, format_matrix, render_markdown, render_html])
def test_the_order_of_lines_makes_no_difference(report: Report, render: Renders) -> None:
    """Reports whose lines came in another order are printed the same."""
    before = render(report)
    report.verdicts.reverse()
    report.transcripts.reverse()

    assert before == render(report)
