"""End of a pytest session: groups of variants, stale waivers, the report, the summary."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_approvals import extensions
from pytest_approvals.agents.waivers import find_stale_waivers, rewrite_waivers
from pytest_approvals.checks import SHOWN_STATUSES
from pytest_approvals.errors import ReportError, UsageError
from pytest_approvals.errors.printable import escape_lines
from pytest_approvals.plugin.results import Group, RunRecord, SessionResults
from pytest_approvals.plugin.settings import read_times
from pytest_approvals.plugin.snapshot_updates import dump_told, find_left_out
from pytest_approvals.plugin.state import get_agent
from pytest_approvals.reporting.findings import format_summary, format_waiver
from pytest_approvals.reporting.judged_run import judge_variants, load_extension_checks, outcome_of
from pytest_approvals.reporting.matrix import format_matrix
from pytest_approvals.reporting.report import Report, StaleLine, dump_line
from pytest_approvals.reporting.subject import ALL_VARIANTS, Subject, agent_location, format_rerun_command
from pytest_approvals.scenario.catalogue import (
    digest_scenarios,
    find_project_folders,
    find_root,
    find_scenarios,
    stock_folder,
)
from pytest_approvals.yaml_files import display_path

if TYPE_CHECKING:
    from pytest_approvals.plugin.agents import AgentUnderTest
    from pytest_approvals.plugin.remembered_items import RunMemory
    from pytest_approvals.plugin.state import PluginState


def begin_report(state: PluginState) -> None:
    """Replace the report of an earlier session by one to which each verdict is added when it is known.

    Raises:
        ReportError: The file cannot be written.
    """
    path = state.settings.report
    if path is not None:
        # Imported late: it knows all formats of reports, and most sessions write none.
        from pytest_approvals.reporting.files import ReportStream

        load_extension_checks()
        results, shard = state.results, state.settings.shard
        results.catalogue = digest_scenarios(_list_catalogue(state))
        results.shard = "/".join(map(str, shard or ()))
        results.stream = ReportStream(path, _build_report(state).header)


def _list_catalogue(state: PluginState) -> dict[str, Path]:
    """Return the scenario files that those of the session are chosen from, by id.

    Of a file that is in no folder of scenarios nothing around it is looked at.
    """
    own = (*state.settings.folders, *find_project_folders(state.config.invocation_params.dir))
    if not state.chosen:
        return find_scenarios(own)
    known = {folder.resolve(): folder for folder in (*own, stock_folder())}
    roots = {path: find_root(path, tuple(known.values())) for path in state.chosen}
    folders = sorted({root for root in roots.values() if root.resolve() in known})
    alone = {path.name: path for path, root in roots.items() if root.resolve() not in known}
    return alone | find_scenarios(folders)


def collect_report(state: PluginState, report: pytest.TestReport) -> None:
    """Add what an item reported to the results, and judge a group whose last variant it was."""
    for record in getattr(report, "approvals", ()):
        loaded = record if isinstance(record, RunRecord) else RunRecord.load(record)
        group = state.results.add(loaded, report.nodeid.partition("::")[0])
        state.results.times[group] = state.results.times.get(group, 0.0) + report.duration
        if state.results.is_complete(group):
            judge_variant_group(state, group)


def finish_session(state: PluginState, session: pytest.Session) -> None:
    """Judge what can only be judged at the end, and write the report; in a worker, hand over what was collected."""
    if state.is_worker:
        output = state.config.workeroutput  # type: ignore[attr-defined]
        output["approvals"] = state.results.dump_collection()
        output["approvals_told"] = dump_told(state.config)
        return
    # In this order: verdicts on groups decide about waivers, stale waivers are failures, the report has them all.
    for group in state.results.open_groups():
        judge_variant_group(state, group)
    for agent in _agents_with_waivers(state):
        _check_waivers(state, agent)
    _report_failures(session, state)
    ended = (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED)
    state.results.complete &= session.exitstatus in ended and not (session.shouldfail or session.shouldstop)
    _write_report(state, session)
    if state.settings.times is not None and state.settings.shard is None:
        _write_times(state, state.settings.times, session)
    _call_reporters(state)


def judge_variant_group(state: PluginState, group: Group) -> None:
    """Judge the runs of one scenario in its variants on one agent together, and forget them."""
    runs = state.results.pop_clean_runs(group)
    if len(runs) < 2:
        return
    scenario, name = group
    agent = get_agent(state, name)
    memory, keys = state.memory, [run.key for run in runs]
    if agent is not None and memory is not None and (known := memory.find_group(keys, agent)) is not None:
        state.results.add_group(group, known)
        return
    subject = Subject(
        scenario=scenario,
        agent=name,
        version=state.results.agents[name].version,
        where=agent_location(name),
        rerun=format_rerun_command(scenario, name, more=state.settings.rerun_words),
    )
    judged = judge_variants(
        [run.history for run in runs],
        subject,
        flavour=agent.local.flavour if agent else "",
        waivers=agent.waivers_for(state.config.rootpath / state.results.files[group]) if agent else (),
        strict=state.settings.strict,
        fail_on=state.settings.fail_on,
    )
    lines = [judged.verdict_line(verdict) for verdict in judged.verdicts]
    state.results.add_group(group, lines)
    if agent is not None and memory is not None:
        memory.keep_group(keys, agent, lines, failed=bool(judged.failing))
    for finding in judged.failing:
        state.results.failed_groups[group] = judged.render([finding])


def print_summary(state: PluginState, terminal: pytest.TerminalReporter) -> None:
    """Print the findings and the matrix if scenarios ran, and what the tests of users leave unsaid about gates."""
    if state.is_worker:
        return
    blocks = [*describe_gates(state.results)]
    if state.results.ran or state.results.missing or state.chosen:
        session = format_session(_build_report(state), state.memory)
        blocks = [*_unreported_errors(state, terminal), *state.notes, *blocks, session]
    if not blocks:
        return
    terminal.write_sep("=", "approvals")
    terminal.write_line(escape_lines("\n\n".join(blocks)))


def describe_gates(results: SessionResults) -> Iterator[str]:
    """Yield notes about users' tests in which nothing needs an approval, or nothing asks before what has an effect."""
    if results.user_runs and not results.gated_runs:
        yield (
            "note: nothing in these tests needs an approval: the agents mark no tool, and no test says which ones have "
            "to be asked about (gated=)"
        )
    # A body that asks by itself shows as a gate only where it is run.
    ungated = {tool: files - results.asked.get(tool, set()) for tool, files in results.ungated.items()}
    ungated = {tool: files for tool, files in ungated.items() if files}
    if ungated:
        files = sorted(set().union(*ungated.values()))
        more = f" and {len(files) - 1} more file{'s' * (len(files) > 2)}" if len(files) > 1 else ""
        tools = ", ".join(sorted(ungated))
        yield (
            f"note: these tools have effects, by their annotations or names, and need no approval: {tools} "
            f"({files[0]}{more}); "
            "gate those that a person has to approve, or say gated=[] if none is"
        )


def format_session(report: Report, memory: RunMemory | None) -> str:
    """Return what a session says at its end: the findings, how many runs were remembered, and the matrix."""
    known = () if memory is None else memory.describe(len(report.remembered))
    return "\n\n".join([format_summary(report), *known, format_matrix(report)])


def _unreported_errors(state: PluginState, terminal: pytest.TerminalReporter) -> Iterator[str]:
    """Yield the errors that are neither findings nor shown by pytest.

    `pytest-approvals run` lets pytest show none, because one finding fails many items.
    """
    if not state.chosen or state.config.getoption("tbstyle") != "no":
        return
    reports = [*terminal.stats.get("error", ()), *terminal.stats.get("failed", ())]
    texts = Counter(report.longreprtext for report in reports if not getattr(report, "approvals_told", False))
    for text, count in texts.items():
        if text in state.results.absent.values():
            continue  # it is in the summary
        yield f"{text}\n  and {count - 1} times more" if count > 1 else text


# --- waivers ----------------------------------------------------------------------------------------------------------


def _agents_with_waivers(state: PluginState) -> Iterator[AgentUnderTest]:
    if state.results.ran:
        yield from (agent for agent in state.agents if agent.stored or agent.own or agent.updates)


def _check_waivers(state: PluginState, agent: AgentUnderTest) -> None:
    """Find the stale waivers of an agent, and update the files if that is wanted."""
    results = state.results
    outcomes = [
        outcome_of(
            line.check,
            line,
            agent.local.flavour,
            failed=line.status in SHOWN_STATUSES or line.status == "waived",
            call=line.call or "",
            actual=line.actual or "",
        )
        for line in results.lines
        if line.agent == agent.name and line.implied_by is None
    ]
    # With the built-in catalogue: a pattern is not stale while scenarios that it matches did not run.
    catalogue = set(find_scenarios([stock_folder()]))
    known = {scenario for scenario, _ in (*results.plan, *results.missing)} | catalogue
    complete = _complete_scenarios(state, agent.name)
    of_adapter = [outcome for outcome in outcomes if outcome.scenario in catalogue] if agent.is_built_in else outcomes
    stale = (
        *find_stale_waivers(agent.own, outcomes, complete, known),
        *find_stale_waivers(agent.stored, of_adapter, complete, catalogue if agent.is_built_in else known),
    )
    if not agent.updates:
        results.stale += [StaleLine(agent=agent.name, waiver=str(waiver)) for waiver in stale]
        return
    covering = [(agent.own, outcomes), (agent.stored, of_adapter)]
    covered = {
        outcome for waivers, some in covering for outcome in some if any(waiver.covers(outcome) for waiver in waivers)
    }
    new = [outcome for outcome in outcomes if outcome.failed and outcome not in covered]
    files = agent.own_files or (agent.waiver_file,)
    for path in files:
        removed = [waiver for waiver in stale if waiver.path == display_path(path)]
        added = new if path == files[0] else []
        if removed or added:
            before = path.read_text(encoding="utf-8") if path.exists() else ""
            path.write_text(rewrite_waivers(before, removed, added), encoding="utf-8")
            names = {(outcome.scenario, outcome.check) for outcome in added}
            changes = f"{len(removed)} stale removed, {len(names)} new added"
            state.notes.append(f"waivers in {display_path(path)}: {changes}; a new one needs its reason and its issue")


def _complete_scenarios(state: PluginState, agent: str) -> set[str]:
    """Return the scenarios that ran on an agent in all the variants of a usual run, or that it cannot run at all."""
    results = state.results
    missing = {scenario for scenario, name in results.missing if name == agent}
    if state.settings.pinned or state.settings.strength == "1":
        return missing
    return missing | {group[0] for group in results.ran if group[1] == agent and results.is_complete(group)}


# --- what no item reports ---------------------------------------------------------------------------------------------


def _report_failures(session: pytest.Session, state: PluginState) -> None:
    """Report as failed tests what no item stands for, so that every reporter of pytest shows it.

    An agent that was not judged fails the session.
    """
    results = state.results
    failures = [
        (f"{results.files[group]}::{group[1]}[{ALL_VARIANTS}]", text) for group, text in results.failed_groups.items()
    ]
    # The text of a waiver begins with its place, PATH:LINE, which stands in for a node id.
    waivers = [format_waiver(line.waiver) for line in results.stale]
    failures += [(waiver.split(": ")[0], f"stale waiver: {waiver}") for waiver in waivers]
    for nodeid, text in failures:
        _report_failure(session, nodeid, text, is_told=True)
    left_out = [(nodeid, str(error)) for nodeid, error in find_left_out(state.config)]
    for nodeid, text in left_out:
        _report_failure(session, nodeid, text, is_told=False)
    # pytest fixed the status before this hook; those that say more, such as an interruption, are left alone.
    is_failed = bool(failures or left_out or results.absent)
    if is_failed and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def report_late_leaks(session: pytest.Session, leaks: str) -> None:
    """Report as a failed test what tried to reach other machines after the last test that would have told of it."""
    _report_failure(session, "after the tests", leaks, is_told=False)
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _report_failure(session: pytest.Session, nodeid: str, text: str, *, is_told: bool) -> None:
    """Report a failed test; one that is told is in the summary."""
    file, _, name = nodeid.partition("::")
    report = pytest.TestReport(
        nodeid=nodeid, location=(file, None, name), keywords={}, outcome="failed", longrepr=text, when="call"
    )
    vars(report)["approvals_told"] = is_told
    session.config.hook.pytest_runtest_logreport(report=report)


def _build_report(state: PluginState) -> Report:
    return state.results.build_report(state.settings.seed)


def _write_report(state: PluginState, session: pytest.Session) -> None:
    if state.results.stream is None:
        return
    try:
        state.results.stream.finish(_build_report(state))
    except ReportError as error:
        _report_failure(session, str(error.path), str(error), is_told=False)
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _write_times(state: PluginState, path: Path, session: pytest.Session) -> None:
    """Write how long the runs of each scenario took, with what an earlier session measured of others."""
    # Imported late: it knows all formats of reports.
    from pytest_approvals.reporting.files import replace_file

    measured = state.results.measure_groups()
    seconds: dict[str, dict[str, float]] = {}
    try:
        for (scenario, agent), took in {**read_times(path), **measured}.items() if measured else ():
            seconds.setdefault(agent, {})[scenario] = round(took, 3)
        if not seconds:
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, json.dumps({"seconds": seconds}, indent=1, sort_keys=True).encode() + b"\n")
    except (OSError, UsageError) as error:
        text = str(error) if isinstance(error, UsageError) else f"{path}: cannot be written: {error.strerror}"
        _report_failure(session, str(path), text, is_told=False)
        if session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _call_reporters(state: PluginState) -> None:
    reporters = extensions.load_all("reporters")
    if reporters and (state.results.ran or state.results.user_runs):
        lines = _report_as_dicts(_build_report(state))
        for report in reporters.values():
            report(lines=lines, config=state.config)


def _report_as_dicts(report: Report) -> list[dict[str, object]]:
    lines: Iterable[str] = [dump_line(report.header), *map(dump_line, report.body()), dump_line(report.footer())]
    return [json.loads(line) for line in lines]
