"""The end of a session: groups of variants, stale waivers, the report, the summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import pytest

from pytest_approvals import extensions
from pytest_approvals.catalogues import scenarios_in, stock_folder
from pytest_approvals.checks import SHOWN, judge_group, weakest
from pytest_approvals.pytest_side.judging import outcome_of
from pytest_approvals.report.finding import PrintedFinding
from pytest_approvals.report.lines import StaleLine, dumped
from pytest_approvals.report.subject import ALL_VARIANTS, Subject, place_of, rerun_command
from pytest_approvals.report.verdicts import verdict_line
from pytest_approvals.waivers import Outcome, Waiver, stale_waivers, updated, waiver_for

if TYPE_CHECKING:
    from pytest_approvals.pytest_side.bench import Bench
    from pytest_approvals.pytest_side.candidates import Candidate
    from pytest_approvals.pytest_side.results import Group
    from pytest_approvals.report.whole import Report


def finish(bench: Bench, session: pytest.Session) -> None:
    """Judges what can only be judged at the end, and writes the report; in a worker, hands over what was collected."""
    if bench.travels:
        bench.config.workeroutput["approvals"] = bench.results.collected()  # type: ignore[attr-defined]
        return
    for group in bench.results.open_groups():
        judge_variants(bench, group)
    for candidate in _with_waivers(bench):
        _judge_waivers(bench, candidate)
    _tell(session, bench)
    if bench.settings.report is not None:
        _write(bench, session)
    _call_reporters(bench)


def judge_variants(bench: Bench, group: Group) -> None:
    """Judges the journals that one scenario left in its variants on one agent, and forgets them."""
    histories = bench.results.take_journals(group)
    if len(histories) < 2:
        return
    scenario, agent = group
    about = bench.results.agents[agent]
    rerun = rerun_command(scenario, agent, more=bench.settings.rerun_words)
    subject = Subject(scenario=scenario, agent=agent, version=about.version, where=place_of(agent), rerun=rerun)
    verdicts = judge_group(histories)
    waivers = _waivers_of(bench, agent) if any(one.status in SHOWN for one in verdicts) else ()
    waived = {}
    for verdict in verdicts:
        waiver = waiver_for(outcome_of(verdict, subject, bench.flavour_of(agent)), waivers)
        waived[verdict.check] = f"{waiver.reason} ({waiver.issue})" if waiver is not None else None
        bench.results.lines.append(verdict_line(verdict, subject, waiver=waived[verdict.check]))
    for found in weakest(verdicts):
        if waived[found.verdict.check] is None and (found.verdict.fails or bench.settings.strict):
            bench.results.failed_groups[group] = PrintedFinding.of(found, subject, None).render()


def summarise(bench: Bench, terminal: pytest.TerminalReporter) -> None:
    """Prints the findings and the matrix, if scenarios ran."""
    from pytest_approvals.report.matrix import matrix
    from pytest_approvals.report.summary import summary

    if bench.travels or not (bench.results.ran or bench.results.missing or bench.chosen):
        return
    report = bench.results.report(bench.settings.seed)
    terminal.write_sep("=", "approvals")
    for text in _untold(bench, terminal):
        terminal.write_line(f"{text}\n")
    terminal.write_line(summary(report))
    terminal.write_line("")
    terminal.write_line(matrix(report))


def _untold(bench: Bench, terminal: pytest.TerminalReporter) -> Iterator[str]:
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


def _with_waivers(bench: Bench) -> Iterator[Candidate]:
    if bench.results.ran:
        yield from (one for one in bench.candidates if one.stored or one.updates)


def _waivers_of(bench: Bench, agent: str) -> tuple[Waiver, ...]:
    return next((one.waivers for one in bench.candidates if one.name == agent), ())


def _judge_waivers(bench: Bench, candidate: Candidate) -> None:
    """Finds the stale waivers of an agent; brings its file up to date, if that is wanted."""
    results, waivers = bench.results, candidate.stored
    outcomes = [
        Outcome(
            scenario=line.scenario,
            variant=line.variant,
            check=line.check,
            failed=line.status in SHOWN or line.status == "waived",
            flavour=candidate.local.spec.flavour,
            version=line.version,
        )
        for line in results.lines
        if line.agent == candidate.name and line.implied_by is None
    ]
    known = {scenario for scenario, agent in (*results.plan, *results.missing)} | set(scenarios_in([stock_folder()]))
    stale = stale_waivers(waivers, outcomes, _complete(bench, candidate.name), known)
    if not candidate.updates:
        results.stale += [StaleLine(agent=candidate.name, waiver=str(waiver)) for waiver in stale]
        return
    new = [one for one in outcomes if one.failed and not any(waiver.covers(one) for waiver in waivers)]
    if stale or new:
        path = candidate.waiver_file
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        path.write_text(updated(before, stale, new), encoding="utf-8")


def _complete(bench: Bench, agent: str) -> set[str]:
    """Names the scenarios that ran on an agent in all the variants of a usual run, or that it cannot run at all."""
    results = bench.results
    missing = {scenario for scenario, one in results.missing if one == agent}
    if bench.settings.pinned or bench.settings.strength == "1":
        return missing
    return missing | {group[0] for group in results.ran if group[1] == agent and results.is_complete(group)}


# --- telling ----------------------------------------------------------------------------------------------------------


def _tell(session: pytest.Session, bench: Bench) -> None:
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


def _write(bench: Bench, session: pytest.Session) -> None:
    from pytest_approvals.report.files import write_report

    report = bench.results.report(bench.settings.seed)
    report.complete = session.exitstatus != pytest.ExitCode.INTERRUPTED
    path = bench.settings.report
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    write_report(path, report)


def _call_reporters(bench: Bench) -> None:
    reporters = extensions.all_of("reporters")
    if reporters and (bench.results.ran or bench.results.own_runs):
        lines = _plain(bench.results.report(bench.settings.seed))
        for report in reporters.values():
            report(lines=lines, config=bench.config)


def _plain(report: Report) -> list[dict[str, object]]:
    lines: Iterable[str] = [dumped(report.header), *map(dumped, report.body()), dumped(report.footer())]
    return [json.loads(line) for line in lines]
