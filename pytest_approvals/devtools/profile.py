"""Profile of runs: where their CPU time goes, by side of a run.

`python -m pytest_approvals.devtools.profile --agent NAME… [SCENARIO…]`, in a checkout, plays scenarios as
`pytest-approvals run` does, in one process, and prints the CPU time of a run by side. With `--write` the table replaces
that of the agent on the page `docs/performance.md`.

The stack is sampled in fixed steps of CPU time, so the numbers hold on a machine that is busy, and the runs are as fast
as without it.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import resource
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.scenario.catalogue import select_scenarios

SIDES = {
    "start": "imports, plugins, options",
    "collect": "scenario files, their variants, items",
    "build": "agents, with their tools and models",
    "play": "caller, world, saves, and the framework's own turns",
    "client": "the provider's client, down to the scripted model",
    "judge": "history and checks",
    "transcript": "journals as text",
    "report": "lines, summary, report file",
    "pytest": "pytest's own work on an item",
    "processes": "agents in other processes",
}
"""The sides of a run, and what they hold."""

_PACKAGE = str(Path(__file__).parents[1])

_SIDE_OF_FUNCTION = {
    "plugin/items.py": {"collect": "collect"},
    "scenario/load.py": {"load_scenario": "collect"},
    "scenario/catalogue.py": {"find_scenarios": "collect"},
    "scenario/variants.py": {"plan_variants": "collect"},
    "processes/agent_source.py": {"build": "build", "build_fresh": "build"},
    "journal/transcript.py": {"of_history": "transcript"},
    "plugin/snapshot.py": {"assert_transcript": "transcript"},
    "journal/history_builder.py": {"read_history": "judge"},
    "reporting/judged_run.py": {"judge_run": "judge", "judge_variants": "judge"},
    "plugin/results.py": {"of": "report", "dump": "report", "load": "report", "build_report": "report"},
    "plugin/session_finish.py": dict.fromkeys(("collect_report", "finish_session", "print_summary"), "report"),
    "runner/run.py": {"run_scenario": "play"},
    # Tasks of a run do not have `run_scenario` on their stack.
    "runner/event_loops.py": {"run": "play", "run_coroutine": "play"},
}
"""The functions below which the time counts for a side; if several are at work, the innermost."""

_CLIENTS = frozenset({"anthropic", "h11", "httpcore", "httpcore2", "httpx", "httpx2", "openai", "respx"})
"""Packages of providers' clients."""

_PYTEST_FILES = {"_pytest/runner.py": "pytest", "_pytest/main.py": "pytest", "config/__init__.py": "start"}
"""Files of pytest that decide if no side is at work: inside a session, or before one."""

_PYTEST_WORDS = (
    *("-p", "approvals", "-p", "no:cacheprovider", "--tb=no", "-q", "--disable-warnings", "--approvals-fresh-runs"),
    # This command imports the package before pytest looks at it.
    *("-W", "ignore:Module already imported so cannot be rewritten:pytest.PytestAssertRewriteWarning"),
    *("-W", "default::pytest_approvals.errors.RequirementWarning"),
)

INTERVAL = 0.001
"""Seconds of CPU time between two samples; the clock of the system may be coarser."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """CPU time of a session.

    Attributes:
        agent: The agent that ran.
        runs: How many runs it took part in.
        seconds: The CPU time of the session, by side.
    """

    agent: str
    runs: int
    seconds: Mapping[str, float]

    @property
    def total(self) -> float:
        """The CPU time of the session."""
        return sum(self.seconds.values())


class StackSampler:
    """Counts, in steps of CPU time, for which side the main thread works."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()

    def _sample(self, _: int, frame: FrameType | None) -> None:
        self.counts[find_side(_files_and_functions(frame))] += 1

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """Sample until the context ends."""
        before = signal.signal(signal.SIGPROF, self._sample)
        signal.setitimer(signal.ITIMER_PROF, INTERVAL, INTERVAL)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)


def _files_and_functions(frame: FrameType | None) -> Iterator[tuple[str, str]]:
    while frame is not None:
        yield frame.f_code.co_filename, frame.f_code.co_name
        frame = frame.f_back


def find_side(stack: Iterator[tuple[str, str]] | Sequence[tuple[str, str]]) -> str:
    """Return the side for which a stack of files and functions works, given from the innermost call outwards."""
    client = False
    for file, function in stack:
        if file.startswith(_PACKAGE):
            side = _SIDE_OF_FUNCTION.get(file[len(_PACKAGE) + 1 :], {}).get(function)
            if side is not None:
                return "client" if client and side == "play" else side
        elif function == "<module>" or file == "<frozen importlib._bootstrap>":
            return "start"
        elif "site-packages/" in file and file.rpartition("site-packages/")[2].partition("/")[0] in _CLIENTS:
            client = True
        elif (place := "/".join(file.rsplit("/", 2)[-2:])) in _PYTEST_FILES:
            return _PYTEST_FILES[place]
    return "start"


def measure_agent(agent: str, files: Sequence[Path], strength: str) -> Profile:
    """Play scenario files on an agent and return the profile.

    Raises:
        UsageError: Nothing could be played.
    """
    import pytest

    options = [f"--approvals-agents={agent}", f"--approvals-strength={strength}", f"--rootdir={Path.cwd()}"]
    chosen = [f"--approvals-chosen={path}" for path in files]
    counter, sampler = _RunCounter(), StackSampler()
    start, children = time.process_time(), _children_seconds()
    with sampler.running(), contextlib.redirect_stdout(io.StringIO()) as output:
        code = pytest.main([*_PYTEST_WORDS, *options, *chosen], plugins=[counter])
    here = time.process_time() - start
    if not counter.runs:
        last = output.getvalue().strip().splitlines()[-1:]
        raise UsageError(f"{agent} played nothing (pytest exited with {int(code)}): {''.join(last)}")
    samples = sampler.counts.total() or 1
    seconds = {side: here * sampler.counts[side] / samples for side in SIDES}
    return Profile(agent=agent, runs=counter.runs, seconds=seconds | {"processes": _children_seconds() - children})


class _RunCounter:
    """Pytest plugin that counts runs."""

    def __init__(self) -> None:
        self.runs = 0

    def pytest_runtest_logreport(self, report: Any) -> None:
        """Count an item."""
        self.runs += report.when == "call"


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def format_profile(profile: Profile) -> str:
    """Return a profile as a table in Markdown.

    >>> print(format_profile(Profile(agent="mine", runs=10, seconds={"play": 0.03, "judge": 0.01})))
    | side | ms a run | share | what it holds |
    |---|---:|---:|---|
    | play | 3.00 | 75 % | caller, world, saves, and the framework's own turns |
    | judge | 1.00 | 25 % | history and checks |
    | all | 4.00 | 100 % | 10 runs |
    """
    rows = [
        _format_row(side, seconds, profile, SIDES[side]) for side, seconds in profile.seconds.items() if seconds > 0
    ]
    return "\n".join(
        [
            "| side | ms a run | share | what it holds |",
            "|---|---:|---:|---|",
            *rows,
            _format_row("all", profile.total, profile, f"{profile.runs} runs"),
        ]
    )


def _format_row(side: str, seconds: float, profile: Profile, text: str) -> str:
    return f"| {side} | {seconds * 1000 / profile.runs:.2f} | {seconds / profile.total:.0%} | {text} |".replace(
        "% |", " % |", 1
    )


_BEGIN = "<!-- profile: python -m pytest_approvals.devtools.profile --agent {name} -->"
_END = "<!-- end of profile -->"


def insert_profile(page: str, name: str, text: str) -> str:
    """Return the page with the table of an agent replaced.

    Raises:
        UsageError: The page has no place for it.
    """
    begin = _BEGIN.format(name=name)
    block = re.compile(re.escape(begin) + ".*?" + re.escape(_END), re.DOTALL)
    if not block.search(page):
        raise UsageError(f"docs/performance.md has no table of {name!r}: add the lines {begin!r} and {_END!r}")
    return block.sub(lambda _: f"{begin}\n{text}\n{_END}", page)


def main(words: Sequence[str] | None = None) -> int:
    """Profile agents; return 2 if an argument is invalid."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.profile", description="Profile of runs.")
    parser.add_argument("--agent", action="append", required=True, metavar="NAME", help="agents to profile")
    parser.add_argument("--strength", default="", help="as for `run`; by default 2 for reference, 1 for frameworks")
    parser.add_argument("--write", action="store_true", help="write the tables to docs/performance.md")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="ids, families, patterns (default: all)")
    args = parser.parse_args(words)
    try:
        files = tuple(select_scenarios(args.scenarios, Path.cwd()).values())
        for agent in args.agent:
            profile = measure_agent(agent, files, args.strength or ("2" if agent == "reference" else "1"))
            text = format_profile(profile)
            print(f"{agent}:\n\n{text}\n")
            if args.write:
                path = Path("docs/performance.md")
                path.write_text(insert_profile(path.read_text(encoding="utf-8"), agent, text), encoding="utf-8")
    except ApprovalsError as error:
        print(f"profile: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
