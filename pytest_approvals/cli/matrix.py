"""`pytest-approvals matrix`: which check fails in which release of an agent."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from pytest_approvals.agents import AgentSpec
from pytest_approvals.catalogues import chosen
from pytest_approvals.cli.parser import Parser
from pytest_approvals.errors import UsageError

if TYPE_CHECKING:
    from pytest_approvals.report.whole import Report


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command."""
    parser.passes_on = True
    parser.add_argument(
        "--agent", required=True, action="append", metavar="NAME", help="the agent, NAME or NAME.FLAVOUR"
    )
    parser.add_argument(
        "--versions",
        metavar="SPECIFIER",
        help="its releases: '>=0.8', '>=1.0,<2'; may be left out for an agent that plays its releases itself",
    )
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="SCENARIO", help="ids, families, patterns, files or folders"
    )
    parser.add_argument("--python", default="", metavar="VERSION", help="the Python of the environments")
    parser.add_argument("--strength", default="1", help="how many dimensions are combined: 1 (default), 2, 3 or full")
    parser.add_argument("--report", metavar="FILE", help="write the report to this file, as `run` does")
    parser.epilog = "All other options are those of `pytest-approvals run`."


def execute(args: argparse.Namespace) -> int:
    """Runs the scenarios on each release; gives 1 where one failed or could not be judged."""
    from pytest_approvals.report.by_release import by_release
    from pytest_approvals.report.files import write_report
    from pytest_approvals.report.whole import merged

    specs = [spec for name in args.agent for spec in _released(name, args.versions, args.python)]
    chosen(args.scenario, Path.cwd())
    words = [*args.scenario, "--strength", args.strength, *_python(args.python), *args.others]
    reports = list(_reports(specs, words))
    whole = merged(reports)
    print(f"\n{by_release(whole)}")
    for line in whole.absent:
        print(f"\nnot judged: {line.why}")
    if args.report:
        path = Path(args.report)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_report(path, whole)
    return int(bool(whole.absent) or {"fail", "harness-error", "unknown"} & whole.footer().counts.keys() != set())


def _released(name: str, versions: str | None, python: str) -> list[AgentSpec]:
    from pytest_approvals.releases import releases_of

    spec = AgentSpec.parse(name)
    if spec.version or spec.checkout:
        raise UsageError(f"--agent: {name!r} is one release already; write {spec.base}, and the releases in --versions")
    found = releases_of(spec, versions, python=python)
    return [AgentSpec(name=spec.name, flavour=spec.flavour, version=version) for version in found]


def _python(version: str) -> Iterable[str]:
    return ("--python", version) if version else ()


def _reports(specs: Sequence[AgentSpec], words: Sequence[str]) -> Iterator[Report]:
    """
    Runs each release in a process of its own, which ends before the next one begins.

    Errors:
        UsageError: A run ended without a report.
    """
    from pytest_approvals.report.summary import counts

    width = max(len(str(spec)) for spec in specs)
    with TemporaryDirectory() as folder:
        for number, spec in enumerate(specs):
            print(f"{spec!s:{width}}  ", end="", flush=True)
            report = _run(spec, words, Path(folder, f"{number}.jsonl"))
            print(counts(report), flush=True)
            yield report


def _run(spec: AgentSpec, words: Sequence[str], path: Path) -> Report:
    from pytest_approvals.report.files import read_report

    command = [sys.executable, "-m", "pytest_approvals.cli", "run", "--agent", str(spec), "--report", str(path), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if not path.exists():
        raise UsageError((done.stderr or done.stdout).strip().removeprefix("pytest-approvals: "))
    return read_report(path)
