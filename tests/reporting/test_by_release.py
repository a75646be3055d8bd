"""The table of releases."""

from __future__ import annotations

from dataclasses import replace

from pytest_approvals.reporting.matrix import format_release_matrix
from pytest_approvals.reporting.report import (
    Report,
    ReportedAgent,
    ReportedCheck,
    ReportedStatus,
    ReportHeader,
    TraitsLine,
    VerdictLine,
)

TABLE = """\
frame                   1.2  1.9 - 1.10  2.0
every-gated-call-asked  ✗ 1  w 1         ✓
sessions-isolated       ✗ 2  ✓           ✗ 1

✓ all checks hold   w fails, and is waived   ✗ fails"""


def whole(
    *failures: tuple[str, str, str, ReportedStatus], versions: tuple[str, ...] = ("2.0", "1.10", "1.2", "1.9")
) -> Report:
    """A report about some releases: version, check, scenario and status of what does not hold."""
    agents = tuple(ReportedAgent(agent=f"frame=={version}") for version in versions)
    checks = {slug: ReportedCheck(requirement="It must.") for slug in ("every-gated-call-asked", "sessions-isolated")}
    report = Report(header=ReportHeader(package="1", python="3.11", agents=agents, checks=checks))
    for version, check, scenario, status in failures:
        line = VerdictLine(
            scenario=scenario, agent=f"frame=={version}", variant="none-held", check=check, status=status
        )
        report.add(line)
    return report


def test_releases_that_do_not_differ_share_a_column() -> None:
    """They stand in the order of their versions; a number counts scenarios."""
    report = whole(
        ("1.2", "every-gated-call-asked", "a/one", "fail"),
        ("1.2", "sessions-isolated", "a/one", "fail"),
        ("1.2", "sessions-isolated", "a/two", "fail"),
        ("1.9", "every-gated-call-asked", "a/one", "waived"),
        ("1.10", "every-gated-call-asked", "a/one", "waived"),
        ("2.0", "sessions-isolated", "a/one", "fail"),
        ("2.0", "every-gated-call-asked", "a/one", "pass"),
    )

    assert TABLE == format_release_matrix(report)


def test_the_gravest_check_comes_first() -> None:
    """Whatever their order in the report; one without a severity comes last."""
    report = whole(
        ("1.2", "every-gated-call-asked", "a/one", "fail"),
        ("1.2", "sessions-isolated", "a/one", "fail"),
        versions=("1.2",),
    )
    grave = ReportedCheck(requirement="It must.", severity="unapproved-effect")
    checks = {**report.header.checks, "sessions-isolated": grave}
    report.header = replace(report.header, checks=checks)

    assert ["frame", "sessions-isolated", "every-gated-call-asked"] == [
        line.split()[0] for line in format_release_matrix(report).splitlines()[:3]
    ]


def test_nothing_is_listed_where_all_holds() -> None:
    """A line says so."""
    assert "frame 1.2 - 2.0: all checks hold" == format_release_matrix(whole()).strip()


def test_a_release_whose_name_is_no_version_comes_last() -> None:
    """An agent that plays its releases itself may have one that nobody released."""
    report = whole(("robust", "sessions-isolated", "a/one", "fail"), versions=("robust", "2.0", "1.2"))

    assert ["frame", "1.2", "-", "2.0", "robust"] == format_release_matrix(report).splitlines()[0].split()


def test_changed_traits_have_rows() -> None:
    """A trait that differs between releases is shown with its values, and one that does not is left out."""
    report = whole(("1.2", "sessions-isolated", "a/one", "fail"), versions=("1.2", "1.9", "2.0", "2.1"))
    seen = {"1.2": ("fail",), "1.9": ("fail", "model"), "2.0": ("fail", "model")}
    for version, values in seen.items():
        traits = {"raising-tool": values, "request-ids": ("the same id",)}
        report.add(TraitsLine(agent=f"frame=={version}", traits=traits))

    table = """\
frame              1.2   1.9 - 2.0    2.1
sessions-isolated  ✗ 1   ✓            ✓
raising-tool       fail  fail, model  not seen"""
    assert table == format_release_matrix(report).partition("\n\n")[0]
