"""The end of a session: groups of variants, stale waivers, the report, the summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_approvals import extensions
from pytest_approvals.agents.waivers import CheckOutcome, Waiver, find_stale_waivers, find_waiver, rewrite_waivers
from pytest_approvals.checks import SHOWN_STATUSES, judge_group, root_findings
from pytest_approvals.reporting.findings import PrintedFinding, to_verdict_line
from pytest_approvals.reporting.judged_run import waiver_outcome
from pytest_approvals.reporting.report import StaleLine, dump_line
from pytest_approvals.reporting.subject import ALL_VARIANTS, Subject, agent_location, format_rerun_command
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder

if TYPE_CHECKING:
    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.plugin.results import Group
    from pytest_approvals.plugin.session import ApprovalsSession
    from pytest_approvals.reporting.report import Report


def finish_session(bench: ApprovalsSession, session: pytest.Session) -> None:
    """Judges what can only be judged at the end, and writes the report; in a worker, hands over what was collected."""
    if bench.travels:
        bench.config.workeroutput["approvals"] = bench.results.collected()  # type: ignore[attr-defined]
        return
    for group in bench.results.open_groups():
        judge_variant_group(bench, group)
    for candidate in _agents_with_waivers(bench):
        _check_waivers(bench, candidate)
    _report_failures(session, bench)
    if bench.settings.report is not None:
        _write_report(bench, session)
    _call_reporters(bench)


def judge_variant_group(bench: ApprovalsSession, group: Group) -> None:
    """Judges the journals that one scenario left in its variants on one agent, and forgets them."""
    histories = bench.results.take_journals(group)
    if len(histories) < 2:
        return
    scenario, agent = group
    about = bench.results.agents[agent]
    rerun = format_rerun_command(scenario, agent, more=bench.settings.rerun_words)
    subject = Subject(scenario=scenario, agent=agent, version=about.version, where=agent_location(agent), rerun=rerun)
    verdicts = judge_group(histories)
    waivers = _waivers_of(bench, agent) if any(one.status in SHOWN_STATUSES for one in verdicts) else ()
    waived = {}
    for verdict in verdicts:
        waiver = find_waiver(waiver_outcome(verdict, subject, bench.flavour_of(agent)), waivers)
        waived[verdict.check] = f"{waiver.reason} ({waiver.issue})" if waiver is not None else None
        bench.results.lines.append(to_verdict_line(verdict, subject, waiver=waived[verdict.check]))
    for found in root_findings(verdicts):
        if waived[found.verdict.check] is None and (found.verdict.fails or bench.settings.strict):
            bench.results.failed_groups[group] = PrintedFinding.of(found, subject, None).render()


def print_summary(bench: ApprovalsSession, terminal: pytest.TerminalReporter) -> None:
    """Prints the findings and the matrix, if scenarios ran."""
    from pytest_approvals.reporting.findings import format_summary
    from pytest_approvals.reporting.matrix import format_matrix

    if bench.travels or not (bench.results.ran or bench.results.missing or bench.chosen):
        return
    report = bench.results.report(bench.settings.seed)
    terminal.write_sep("=", "approvals")
    for text in _unreported_errors(bench, terminal):
        terminal.write_line(f"{text}\n")
    terminal.write_line(format_summary(report))
    terminal.write_line("")
    terminal.write_line(format_matrix(report))


def _unreported_errors(bench: ApprovalsSession, terminal: pytest.TerminalReporter) -> Iterator[str]:
    """
    Gives the errors that are neither findings nor shown by pytest: `pytest-approvals run` lets it show none, because
    one finding fails many items.
    """
    if not bench.chosen or bench.config.getoption("tbstyle") != "no":
        return
    reports = [*terminal.stats.get("error", ()), *terminal.stats.get("failed", ())]
    texts = Counter(one.longreprtext for one in reports if not getattr(one, "approvals_told", False))
    for text, count in texts.items():
        if text in bench.results.absent.values():
            continue  # the summary tells it
        yield f"{text}\n  and {count - 1} times more" if count > 1 else text


# --- waivers ----------------------------------------------------------------------------------------------------------


def _agents_with_waivers(bench: ApprovalsSession) -> Iterator[AgentUnderTest]:
    if bench.results.ran:
        yield from (one for one in bench.candidates if one.stored or one.updates)


def _waivers_of(bench: ApprovalsSession, agent: str) -> tuple[Waiver, ...]:
    return next((one.waivers for one in bench.candidates if one.name == agent), ())


def _check_waivers(bench: ApprovalsSession, candidate: AgentUnderTest) -> None:
    """Finds the stale waivers of an agent; brings its file up to date, if that is wanted."""
    results, waivers = bench.results, candidate.stored
    outcomes = [
        CheckOutcome(
            scenario=line.scenario,
            variant=line.variant,
            check=line.check,
            failed=line.status in SHOWN_STATUSES or line.status == "waived",
            flavour=candidate.local.spec.flavour,
            version=line.version,
        )
        for line in results.lines
        if line.agent == candidate.name and line.implied_by is None
    ]
    known = {scenario for scenario, agent in (*results.plan, *results.missing)} | set(find_scenarios([stock_folder()]))
    stale = find_stale_waivers(waivers, outcomes, _complete_scenarios(bench, candidate.name), known)
    if not candidate.updates:
        results.stale += [StaleLine(agent=candidate.name, waiver=str(waiver)) for waiver in stale]
        return
    new = [one for one in outcomes if one.failed and not any(waiver.covers(one) for waiver in waivers)]
    if stale or new:
        path = candidate.waiver_file
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(rewrite_waivers(before, stale, new), encoding="utf-8")


def _complete_scenarios(bench: ApprovalsSession, agent: str) -> set[str]:
    """Names the scenarios that ran on an agent in all the variants of a usual run, or that it cannot run at all."""
    results = bench.results
    missing = {scenario for scenario, one in results.missing if one == agent}
    if bench.settings.pinned or bench.settings.strength == "1":
        return missing
    return missing | {group[0] for group in results.ran if group[1] == agent and results.is_complete(group)}


# --- telling ----------------------------------------------------------------------------------------------------------


def _report_failures(session: pytest.Session, bench: ApprovalsSession) -> None:
    """
    Reports as failed tests what no item stands for, so that every reporter of pytest shows it; an agent that was not
    judged fails the session.
    """
    results = bench.results
    failures = [
        (f"{results.files[group]}::{group[1]}[{ALL_VARIANTS}]", text) for group, text in results.failed_groups.items()
    ]
    failures += [(line.waiver.split(": ")[0], f"stale waiver: {line.waiver}") for line in results.stale]
    for nodeid, text in failures:
        file, _, name = nodeid.partition("::")
        report = pytest.TestReport(
            nodeid=nodeid, location=(file, None, name), keywords={}, outcome="failed", longrepr=text, when="call"
        )
        vars(report)["approvals_told"] = True
        session.config.hook.pytest_runtest_logreport(report=report)
    if (failures or results.absent) and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _write_report(bench: ApprovalsSession, session: pytest.Session) -> None:
    from pytest_approvals.reporting.files import write_report

    report = bench.results.report(bench.settings.seed)
    report.complete = session.exitstatus != pytest.ExitCode.INTERRUPTED
    path = bench.settings.report
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_report(path, report)


def _call_reporters(bench: ApprovalsSession) -> None:
    reporters = extensions.load_all("reporters")
    if reporters and (bench.results.ran or bench.results.own_runs):
        lines = _report_as_dicts(bench.results.report(bench.settings.seed))
        for report in reporters.values():
            report(lines=lines, config=bench.config)


def _report_as_dicts(report: Report) -> list[dict[str, object]]:
    lines: Iterable[str] = [dump_line(report.header), *map(dump_line, report.body()), dump_line(report.footer())]
    return [json.loads(line) for line in lines]
