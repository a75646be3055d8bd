"""Commands on the releases of agents: `matrix`, `compare`, `pins`, `bisect`, `keep-state` and `recall`."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from packaging.version import Version

from pytest_approvals.agents.adapters import get_adapter, list_all_agents
from pytest_approvals.agents.spec import AgentSpec, release_sort_key
from pytest_approvals.cli.parser import CommandParser
from pytest_approvals.errors import ApprovalsError, UnknownName, UsageError
from pytest_approvals.scenario.catalogue import select_scenarios

if TYPE_CHECKING:
    from pytest_approvals.campaigns.bisect import VerdictChange
    from pytest_approvals.devtools.known_bugs import KnownBug
    from pytest_approvals.devtools.known_bugs.search import SearchResult
    from pytest_approvals.processes.agent_source import AgentSource
    from pytest_approvals.reporting.comparison import ReportDifference
    from pytest_approvals.reporting.report import Report
    from pytest_approvals.scenario.model import Scenario


def add_matrix_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.passes_on = True
    parser.add_argument(
        "--agent", required=True, action="append", metavar="NAME", help="the agent, NAME or NAME.FLAVOUR"
    )
    parser.add_argument(
        "--versions",
        metavar="SPECIFIER",
        help="its releases: '>=0.8', '>=1.0,<2'; may be left out for an agent that plays its releases itself",
    )
    _add_run_arguments(parser)
    parser.add_argument("--report", metavar="FILE", help="write the report to this file, as `run` does")
    parser.epilog = "All other options are those of `pytest-approvals run`."


def _add_run_arguments(parser: CommandParser) -> None:
    """Add the arguments of a command that runs scenarios on several releases."""
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="SCENARIO", help="ids, families, patterns, files or folders"
    )
    parser.add_argument("--python", default="", metavar="VERSION", help="the Python of the environments")
    parser.add_argument("--strength", default="1", help="how many dimensions are combined: 1 (default), 2, 3 or full")


def _run_words(args: argparse.Namespace) -> list[str]:
    """Return the words of `pytest-approvals run` for each of the releases.

    Raises:
        UsageError: A scenario is misspelled; it is refused before the first release runs.
    """
    select_scenarios(args.scenario, Path.cwd())
    python = ["--python", args.python] if args.python else []
    return [*args.scenario, "--strength", args.strength, *python, *args.others]


def execute_matrix(args: argparse.Namespace) -> int:
    """Run the scenarios on each release; return 1 if one failed or could not be judged."""
    from pytest_approvals.reporting.files import write_report
    from pytest_approvals.reporting.matrix import format_release_matrix
    from pytest_approvals.reporting.report import merge_reports

    specs = [spec for name in args.agent for spec in _select_releases(name, args.versions, args.python)]
    runs = list(_run_releases(specs, _run_words(args)))
    whole = merge_reports([report for report, _ in runs])
    print(f"\n{format_release_matrix(whole)}")
    for line in whole.absent:
        print(f"\nnot judged: {line.why}")
    if args.report:
        write_report(Path(args.report), whole)
    return int(bool(whole.absent) or any(failed for _, failed in runs))


def _select_releases(name: str, versions: str | None, python: str) -> list[AgentSpec]:
    from pytest_approvals.agents.releases import find_agent_releases

    spec = AgentSpec.parse(name)
    if spec.version or spec.checkout:
        raise UsageError(f"--agent: {name!r} is one release already; write {spec.base}, and the releases in --versions")
    releases = find_agent_releases(spec, versions, python=python)
    return [AgentSpec(name=spec.name, flavour=spec.flavour, version=version) for version in releases]


def _run_releases(specs: Sequence[AgentSpec], words: Sequence[str]) -> Iterator[tuple[Report, bool]]:
    """Run each release in a process of its own, which ends before the next one begins; yield also whether it failed.

    Raises:
        UsageError: A run ended without a report.
    """
    from pytest_approvals.reporting.findings import format_counts

    width = max(len(str(spec)) for spec in specs)
    with TemporaryDirectory() as folder:
        for number, spec in enumerate(specs):
            print(f"{spec!s:{width}}  ", end="", flush=True)
            report, failed = _run_release(spec, words, Path(folder, f"{number}.jsonl"))
            print(format_counts(report), flush=True)
            yield report, failed


def _run_release(spec: AgentSpec, words: Sequence[str], path: Path) -> tuple[Report, bool]:
    from pytest_approvals.reporting.files import read_report

    command = [sys.executable, "-m", "pytest_approvals.cli", "run", "--agent", str(spec), "--report", str(path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = read_report(path) if path.exists() else None
    # The file is there as soon as the session begins, also if it ends before anything is collected.
    if report is None or (done.returncode == 2 and not (report.complete or report.verdicts or report.absent)):
        raise UsageError((done.stderr or done.stdout).strip().removeprefix("pytest-approvals: "))
    # What fails a run depends on its options, such as `--fail-on` and `--strict`.
    return report, done.returncode != 0


def add_compare_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.passes_on = True
    parser.add_argument("--agent", required=True, metavar="SPEC", help="the agent: NAME, NAME==VERSION or NAME@PATH")
    parser.add_argument("--against", required=True, metavar="VERSION", help="the release that it is compared with")
    _add_run_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="write what changes to this file")
    parser.epilog = "All other options are those of `pytest-approvals run`."


def execute_compare(args: argparse.Namespace) -> int:
    """Print what changes from a release to another one, or to a checkout; return 1 if a failure is new."""
    from pytest_approvals.reporting.files import write_text

    spec = AgentSpec.parse(args.agent)
    difference = _compare_releases(replace(spec, version=args.against, checkout=None), spec, _run_words(args))
    if args.output:
        write_text(Path(args.output), f"{difference.render()}\n")
    else:
        print(f"\n{difference.render()}")
    return int(bool(difference.new))


def _compare_releases(before: AgentSpec, after: AgentSpec, words: Sequence[str]) -> ReportDifference:
    """Run two releases of an agent and compare them.

    Raises:
        UsageError: One of them cannot be started.
    """
    from pytest_approvals.reporting.comparison import compare_reports

    reports: list[Report] = []
    for report, _ in _run_releases([before, after], words):
        if report.absent:
            raise UsageError(report.absent[0].why)
        reports.append(report)
    return compare_reports(*reports)


def add_pins_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.passes_on = True
    parser.add_argument("distributions", nargs="*", metavar="DISTRIBUTION", help="the distributions (default: all)")
    parser.add_argument("--update", action="store_true", help="pin the newest release, and show what it changes")
    _add_run_arguments(parser)
    parser.add_argument("-o", "--output", metavar="FOLDER", help="write what each release changes to a file here")
    parser.epilog = "With --update, all other options are those of `pytest-approvals run`."


def execute_pins(args: argparse.Namespace) -> int:
    """Print the pinned and the newest releases, or move the pins; return 1 if a failure is new."""
    from pytest_approvals.agents.pins import PINS_FILE, load_pins, move_pin
    from pytest_approvals.agents.releases import find_releases
    from pytest_approvals.reporting.files import write_text

    pins = load_pins()
    for name in args.distributions:
        if name not in pins:
            raise UnknownName("distribution", name, pins)
    if args.update:
        _require_checkout("pins --update")
    elif args.others:
        raise UsageError(f"Unknown option {args.others[0]}; options of `pytest-approvals run` need --update")
    words = _run_words(args)
    has_new_failures = False
    for name in args.distributions or pins:
        pin = pins[name]
        newest = find_releases(name, f">={pin.release}", registry=pin.registry)[-1]
        print(f"{name} {pin.release}" + (f", newest {newest}" if newest != pin.release else ""), flush=True)
        if not args.update or newest == pin.release:
            continue
        for agent in _agents_of(name):
            before, after = (replace(agent, version=version) for version in (pin.release, newest))
            difference = _compare_releases(before, after, words)
            has_new_failures |= bool(difference.new)
            if args.output:
                write_text(Path(args.output) / f"{agent}-{newest}.md", f"# {after}\n\n{difference.render()}\n")
            else:
                print(f"\n{difference.render()}\n", flush=True)
        move_pin(PINS_FILE, name, newest)
        print(f"{name} is pinned to {newest}; `make lock` locks what it needs, `run --update-waivers` what it changes")
    return int(has_new_failures)


def _require_checkout(command: str) -> None:
    """Refuse a command that reads or writes what only a checkout of this package has.

    Raises:
        UsageError: The package was installed from a wheel.
    """
    if find_spec("pytest_approvals.devtools") is None:
        raise UsageError(f"{command} needs a checkout of pytest-approvals: the wheel has no pytest_approvals.devtools")


def _agents_of(distribution: str) -> list[AgentSpec]:
    """Return the agents whose version is that of a distribution: of a framework, that of its plainest flavour."""
    found: dict[str, AgentSpec] = {}
    for name in list_all_agents():
        spec = AgentSpec.parse(name)
        if get_adapter(spec).framework == distribution:
            found.setdefault(spec.name, spec)
    return list(found.values())


def add_bisect_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("--agent", required=True, metavar="NAME", help="the agent, NAME or NAME.FLAVOUR")
    parser.add_argument("--check", required=True, metavar="SLUG", help="the check whose verdict changed")
    parser.add_argument("--good", required=True, metavar="VERSION", help="a release on which it does not fail")
    parser.add_argument("--bad", required=True, metavar="VERSION", help="a release on which it fails; older or newer")
    parser.add_argument("--fresh-runs", action="store_true", help="play every run again, also a remembered one")
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="SCENARIO", help="ids, families, patterns, files or folders"
    )
    parser.add_argument("--with", dest="requirements", action="append", default=[], metavar="REQUIREMENT")
    parser.add_argument("--python", default="", metavar="VERSION", help="the Python of the environments")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="time limit of one run (default: 10)"
    )


def execute_bisect(args: argparse.Namespace) -> int:
    """Find the release and print it."""
    from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns, CampaignMemory
    from pytest_approvals.campaigns.bisect import bisect_releases, find_distinguishing_run
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.scenario.catalogue import select_scenarios
    from pytest_approvals.scenario.load import load_scenario

    if args.check not in CHECKS:
        raise UnknownName("check", args.check, CHECKS)
    files = select_scenarios(args.scenario, Path.cwd())
    versions = _releases_between(args)
    catalogue = {name: load_scenario(path, root=_root_folder(name, path)) for name, path in files.items()}
    memory = CampaignMemory.of_user(is_fresh=args.fresh_runs)

    @cache
    def suspect(version: str) -> AgentRuns:
        spec = AgentSpec.parse(f"{args.agent}=={version}")
        release = AgentRelease(spec=spec, requirements=tuple(args.requirements), python=args.python)
        return AgentRuns(release, catalogue, args.time_limit, memory)

    together = CHECKS[args.check].group is not None
    witness = find_distinguishing_run(
        args.check, suspect(versions[0]), suspect(versions[-1]), catalogue, together=together
    )
    print(f"{witness}: {args.check} holds in {versions[0]} and fails in {versions[-1]}", flush=True)
    change = bisect_releases(
        witness, versions, suspect, step=lambda version, what: print(f"{version}: {what}", flush=True)
    )
    if memory is not None and (told := memory.close()):
        print(told)
    print(_describe_change(args.agent, change))
    return 0


def _describe_change(agent: str, change: VerdictChange) -> str:
    between = f"; not judged in between: {', '.join(change.between)}" if change.between else ""
    older, newer = sorted((change.last, change.first), key=release_sort_key)
    how = (
        f"came with {agent}=={newer}, and is not in {older}"
        if newer == change.first
        else (f"went with {agent}=={newer}, and is still in {older}")
    )
    rerun = f"pytest-approvals run {change.witness.scenario} --agent {agent}=={change.first}"
    return f"the failure {how}{between}\n{rerun}"


def _root_folder(name: str, path: Path) -> Path:
    """Return the folder that the id of a scenario counts from."""
    return path.parents[name.count("/")]


def _releases_between(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the releases from the good one to the bad one, both included."""
    from pytest_approvals.agents.releases import find_agent_releases

    spec = AgentSpec.parse(args.agent)
    played = [each.release or "" for each in get_adapter(spec).releases]
    if spec.version or spec.checkout or not (played or get_adapter(spec).framework):
        raise UsageError(f"--agent: {args.agent!r} has no releases; write NAME or NAME.FLAVOUR of a framework's agent")
    good, bad = (
        _release_position(option, text, played) for option, text in (("--good", args.good), ("--bad", args.bad))
    )
    if good == bad:
        raise UsageError(f"--good and --bad are both {args.good}")
    low, high = sorted((good, bad))
    known = played or find_agent_releases(spec, f">={low[1]},<={high[1]}", python=args.python)
    inside = [release for release in known if low < release_sort_key(release) < high]
    return (args.good, *(inside if good < bad else reversed(inside)), args.bad)


def _release_position(option: str, text: str, played: Sequence[str]) -> tuple[bool, Version, str]:
    """Return the position of a release in the order of all: a version, or a release that the agent simulates."""
    order = release_sort_key(text)
    if (played and text not in played) or (not played and order[0]):
        raise UsageError(f"{option}: {text!r} is no version" + (f"; there are {', '.join(played)}" if played else ""))
    return order


def add_keep_state_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("scenarios", nargs="+", metavar="SCENARIO", help="ids, families, patterns, files or folders")
    parser.add_argument("--agent", required=True, metavar="NAME==VERSION", help="the agent in the release that saves")
    parser.add_argument("--with", dest="requirements", action="append", default=[], metavar="REQUIREMENT")
    parser.add_argument("--serialize", default="json", metavar="MODE", help="json (default) or native.NAME")
    parser.epilog = "The states are stored next to the scenarios; newer releases restore them in variants of their own."


def execute_keep_state(args: argparse.Namespace) -> int:
    """Store a state for each scenario in which the agent pauses; return 1 if it does not pause in one."""
    from pytest_approvals.agent_side.contract.exceptions import Unsupported
    from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
    from pytest_approvals.scenario.catalogue import select_scenarios
    from pytest_approvals.scenario.load import load_scenario

    spec = AgentSpec.parse(args.agent)
    if not spec.version:
        raise UsageError(f"--agent: {args.agent!r} names no release; write {spec.base}==VERSION")
    source = AgentRuns(AgentRelease(spec=spec, requirements=tuple(args.requirements)), {}, 10.0).source
    failed = 0
    for name, file in select_scenarios(args.scenarios, Path.cwd()).items():
        scenario = load_scenario(file, root=file.parents[name.count("/")])
        try:
            print(f"{name}: {store_paused_state(scenario, spec, args.serialize, source)}")
        except Unsupported as lack:
            print(f"{name}: not applicable, {spec} lacks {lack}")
        except ApprovalsError as error:
            print(f"{name}: {error}")
            failed += 1
    return int(bool(failed))


def store_paused_state(scenario: Scenario, spec: AgentSpec, serialize: str, source: AgentSource) -> Path:
    """Store the paused state of the agent in a scenario, and return the file.

    Raises:
        Unsupported: The agent cannot play it, or cannot save what it keeps.
        UsageError: It does not pause in the scenario.
    """
    from pytest_approvals.agent_side.contract.exceptions import Unsupported
    from pytest_approvals.runner.event_loops import get_session_loop
    from pytest_approvals.runner.stored_state_agent import capture_paused_state
    from pytest_approvals.scenario.requirements import required_by_content
    from pytest_approvals.scenario.stored_states import stored_state_path

    missing = {*required_by_content(scenario), _required_capability(serialize)} - source.facts.capabilities
    if missing:
        raise Unsupported(", ".join(sorted(missing)), source.facts.missing.get(min(missing), ""))
    with TemporaryDirectory() as folder:
        state = get_session_loop().run(capture_paused_state(scenario, serialize, source, spec.base, folder))
    path = stored_state_path(scenario, spec.base, spec.version or "", serialize)
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(state.text(), encoding="utf-8")
    return path


def _required_capability(serialize: str) -> str:
    return serialize if serialize.startswith("native.") else f"serialize.{serialize}"


def add_recall_arguments(parser: CommandParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("table", metavar="TABLE.yaml", help="known bugs, with a bad and a good release each")
    parser.add_argument("--only", nargs="+", action="extend", metavar="ID", help="only the rows with these ids")
    parser.add_argument("--shard", metavar="I/N", help="only the I-th of N parts of the rows")
    parser.add_argument("--report", metavar="FILE", help="write what was found, as JSON lines, to this file")
    parser.add_argument("--fresh-runs", action="store_true", help="play every run again, also a remembered one")
    parser.add_argument(
        "--time-limit", type=float, default=10.0, metavar="SECONDS", help="time limit of one run (default: 10)"
    )


def execute_recall(args: argparse.Namespace) -> int:
    """Search for the bug of each row; return 1 if one was missed."""
    _require_checkout("recall")
    from pytest_approvals.campaigns.agent_runs import CampaignMemory
    from pytest_approvals.checks import CHECKS
    from pytest_approvals.devtools.known_bugs import load_known_bugs
    from pytest_approvals.devtools.known_bugs.search import KnownBugSearch
    from pytest_approvals.scenario.catalogue import stock_folder
    from pytest_approvals.scenario.load import load_catalogue

    if args.time_limit <= 0:
        raise UsageError(f"--time-limit: Invalid number {args.time_limit:g}: too small")
    rows = _select_rows(load_known_bugs(Path(args.table), CHECKS), args.only)
    if args.shard is not None:
        rows = _select_shard(rows, args.shard)
    catalogue = {scenario.id: scenario for scenario in load_catalogue([stock_folder()])}
    memory = CampaignMemory.of_user(is_fresh=args.fresh_runs)
    hunt = KnownBugSearch(catalogue, args.time_limit, memory)
    answers = []
    for row in rows:
        answers.append(hunt.search(row))
        print(answers[-1], flush=True)
    if memory is not None and (told := memory.close()):
        print(told)
    count = sum(answer.found for answer in answers)
    print(f"recall: {count} of {len(answers)}")
    if args.report:
        _write_results(Path(args.report), answers)
    return int(count < len(answers))


def _select_rows(rows: Sequence[KnownBug], only: Iterable[str] | None) -> list[KnownBug]:
    if only is None:
        return list(rows)
    known = {row.id: row for row in rows}
    for name in only:
        if name not in known:
            raise UnknownName("row", name, known)
    return [row for row in rows if row.id in set(only)]


def _select_shard(rows: Sequence[KnownBug], shard: str) -> list[KnownBug]:
    """Return every N-th row, because rows about the same framework are next to each other."""
    from pytest_approvals.plugin.settings import parse_shard

    try:
        number, count = parse_shard(shard)
    except UsageError as error:
        raise UsageError(f"--shard: {error}") from None
    return list(rows[number - 1 :: count])


def _write_results(path: Path, answers: Sequence[SearchResult]) -> None:
    from pytest_approvals.reporting.files import write_text
    from pytest_approvals.reporting.report import dump_json

    lines: list[dict[str, Any]] = [_result_line(answer) for answer in answers]
    count = sum(answer.found for answer in answers)
    lines.append({"event": "footer", "found": count, "rows": len(answers)})
    write_text(path, "".join(f"{dump_json(line)}\n" for line in lines))


def _result_line(answer: SearchResult) -> dict[str, Any]:
    row = answer.row
    return {
        "event": "recall",
        "id": row.id,
        "title": row.title,
        "bad": str(row.bad),
        "good": None if row.good is None else str(row.good),
        "found": answer.found,
        "checks": list(answer.checks),
        "agent": answer.agent,
        "scenario": answer.scenario,
        "variant": answer.variant,
        "why": answer.why,
        "runs": answer.runs,
    }
