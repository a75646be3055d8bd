"""The results of the catalogue: files made of reports, and the page made of the files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.pages.results import (
    AgentResults,
    OpenResult,
    collect_results,
    format_page,
    format_results,
    parse_results,
    read_every_results,
)
from pytest_approvals.errors import UsageError
from pytest_approvals.reporting.report import (
    NotApplicableLine,
    Report,
    ReportedAgent,
    ReportHeader,
    TraitsLine,
    VerdictLine,
)
from pytest_approvals.reporting.upstream import load_every_cause

DOCS = Path(__file__).parents[3] / "docs"
CAUSES = load_every_cause()
CAUSE = "agno-json-loses-the-approval"


def _verdict(scenario: str, variant: str, check: str, status: str = "pass", waiver: str | None = None) -> VerdictLine:
    return VerdictLine.from_dict(
        {
            "scenario": scenario,
            "agent": "agno",
            "variant": variant,
            "check": check,
            "status": status,
            "waiver": waiver,
        }
    )


WAIVED = f"It is lost. (docs/findings/{CAUSE}.md)"
REPORT = Report(
    header=ReportHeader(
        package="0.1.0", python="3.11.7", agents=(ReportedAgent(agent="agno", framework="agno", version="3.1.10"),)
    ),
    verdicts=[
        _verdict("basics/approved", "none-held", "approved-runs"),
        _verdict("basics/approved", "json-held", "approved-runs", "waived", WAIVED),
        _verdict("basics/approved", "json-held", "runs-at-most-once"),
        _verdict("basics/approved", "*", "same-outcome-in-every-mode", "fail"),
        _verdict("basics/rejected", "none-held", "runs-at-most-once", "not-applicable"),
        _verdict("basics/rejected", "none-held", "approved-runs"),
        _verdict("basics/rejected", "none-held", "reason-told", "warning"),
    ],
    not_applicable=[NotApplicableLine(scenario="nested/helper", agent="agno", missing=("nested",))],
    traits=[TraitsLine(agent="agno", traits={"raising-tool": ("fail", "model")})],
)


@pytest.fixture(name="results")
def _results() -> AgentResults:
    (results,) = collect_results(REPORT)
    return results


class TestCollectResults:
    def test_counts_runs_and_scenarios(self, results: AgentResults) -> None:
        """A verdict on all variants together is no run."""
        assert (3, 2, 1) == (results.runs, results.scenarios, results.not_applicable)

    def test_counts_the_scenarios_that_decide_a_check(self, results: AgentResults) -> None:
        """One to which it does not apply decides nothing."""
        assert 1 == results.decided["runs-at-most-once"]
        assert 2 == results.decided["approved-runs"]

    def test_a_waived_failure_has_its_cause_and_its_runs(self, results: AgentResults) -> None:
        """The number of runs is that of its scenario."""
        expected = OpenResult(
            scenario="basics/approved", check="approved-runs", status="waived", cause=CAUSE, runs=1, of=2
        )
        assert expected in results.open

    def test_a_failure_of_all_variants_together_is_one_of_all_runs(self, results: AgentResults) -> None:
        """And one that nobody waived has no cause."""
        (together,) = (row for row in results.open if row.check == "same-outcome-in-every-mode")
        assert ("fail", "", 2, 2) == (together.status, together.cause, together.runs, together.of)

    def test_refuses_a_report_that_was_cut_off(self) -> None:
        """Its numbers would be too small."""
        with pytest.raises(UsageError, match="it has no footer"):
            list(collect_results(Report(header=REPORT.header, complete=False)))


class TestFormatPage:
    def test_lists_what_holds(self, results: AgentResults) -> None:
        """With the requirement, and how many scenarios decide it."""
        line = f"- {CHECKS['runs-at-most-once'].requirement} (`runs-at-most-once`, 1)"
        assert line in format_page([results], CAUSES).splitlines()

    def test_a_check_that_failed_once_is_not_among_what_holds(self, results: AgentResults) -> None:
        """Although it held in another scenario."""
        assert f"- {CHECKS['approved-runs'].requirement}" not in format_page([results], CAUSES)

    def test_a_failure_that_nobody_looked_at_comes_first(self, results: AgentResults) -> None:
        """Then the causes, by their severity."""
        page = format_page([results], CAUSES)
        assert page.index("- Nobody has looked at it yet (`same-outcome-in-every-mode`; 1 scenario)") < page.index(
            f"- [{CAUSES[CAUSE].title}](findings/{CAUSE}.md): bug, lost-effect (`approved-runs`; 1 scenario)"
        )

    def test_ends_with_warnings_and_traits(self, results: AgentResults) -> None:
        """Neither is a failure."""
        warnings, traits = format_page([results], CAUSES).split("\n\n")[-2:]
        assert "Warnings: `reason-told` in 1." == warnings
        assert "[Traits](checks.md#traits): raising-tool: fail or model.\n" == traits


def test_a_file_is_read_as_it_was_written(results: AgentResults) -> None:
    """One JSON value a line."""
    assert results == parse_results(format_results(results))


def test_the_page_is_current(monkeypatch: pytest.MonkeyPatch) -> None:
    """`python -m pytest_approvals.devtools.pages.results` renews it."""
    monkeypatch.chdir(DOCS.parent)
    every = read_every_results()

    assert every
    assert format_page(every, CAUSES) == (DOCS / "results.md").read_text(encoding="utf-8")


def test_the_files_name_causes_that_are_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cause that was removed or renamed is missed; then the catalogue is to be run again."""
    monkeypatch.chdir(DOCS.parent)
    named = {row.cause for results in read_every_results() for row in results.open}
    assert set() == {cause for cause in named if cause and "://" not in cause} - CAUSES.keys()
