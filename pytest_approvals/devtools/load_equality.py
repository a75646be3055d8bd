"""Proof that verdicts depend neither on load nor on what is remembered of earlier runs.

`python -m pytest_approvals.devtools.load_equality --runs 1000 --stressors 10 --agent reference` plays runs of the whole
catalogue, first as the machine is, then beside processes that never wait, and compares verdicts and journals. A run
that differs is played twice more without load, to see whether it is the load that it depends on. The exit code is 1 if
a verdict depends on load.

Frameworks put random ids and the time into states and messages. Their journals are compared without the digests and
sizes of states, and if they still differ, as transcripts, in which made-up values have placeholders.

With `--remembered` the runs are those of `pytest-approvals run`, of all scenarios or those named by `--scenario`:
played without a store, played for an empty one, and taken from that. The exit code is 1 if a verdict is another one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import judge
from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.journal.events import Header, event_from_dict
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.reporting.files import read_report
from pytest_approvals.reporting.report import Report
from pytest_approvals.reporting.subject import Subject
from pytest_approvals.runner.remembered_runs import FOLDER_VARIABLE, RememberedRuns
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, Variant

_COMMAND = "python -m pytest_approvals.devtools.load_equality"

_RANDOM_FACTS = ("digest", "again", "size")
"""What events say of a state's text, which is another one in each run of a framework that makes up ids."""

# Forked away from this process, so that they are load of the machine and not work of a run.
_STRESSORS = """
import os, select, sys

for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        while not select.select([0], [], [], 0)[0]:
            for _ in range(20_000):
                pass
        os._exit(0)
"""


@contextmanager
def running_stressors(count: int) -> Iterator[None]:
    """Keep processors busy with that many processes, which end with this one, however it ends."""
    # Each holds the ends of both pipes: the end of the first tells them to stop, the end of the second that all have.
    launcher = subprocess.Popen(
        [sys.executable, "-c", _STRESSORS, str(count)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert launcher.stdin is not None
    assert launcher.stdout is not None
    with launcher:
        launcher.wait()
        try:
            yield
        finally:
            launcher.stdin.close()
            launcher.stdout.read()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run that is played several times."""

    agent: str
    scenario: str
    variant: Variant

    def __str__(self) -> str:
        return f"{self.scenario} on {self.agent} in {self.variant.id}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What is compared of a run.

    Attributes:
        verdicts: Check, status and call of each verdict.
        journal: The events.
        facts: The events without what frameworks make up in states.
        transcript: The run as text.
    """

    verdicts: tuple[tuple[str, str, str | None], ...]
    journal: str
    facts: str
    transcript: str

    def differences(self, other: RunResult) -> tuple[str, ...]:
        """Return the attributes in which the two differ."""
        return tuple(name for name in self.__dataclass_fields__ if getattr(self, name) != getattr(other, name))


@dataclass(slots=True, kw_only=True)
class Comparison:
    """The results of one agent.

    Attributes:
        runs: How many runs were compared.
        same: How many were equal in each attribute of `RunResult`.
        load: What differs, but only under load, or when it is remembered: the runs with their verdicts or transcripts.
        chance: What differs without that, too.
    """

    runs: int = 0
    same: dict[str, int] = field(default_factory=dict)
    load: list[str] = field(default_factory=list)
    chance: list[str] = field(default_factory=list)
    verdicts_differ: bool = False


PlayRun = Callable[[PlannedRun], RunResult]


def compare_under_load(
    runs: Sequence[PlannedRun], play: PlayRun, stressors: int, report: Callable[[str], object] = print
) -> dict[str, Comparison]:
    """Play runs quietly and under load, and return by agent what is equal.

    Args:
        runs: What is played.
        play: Plays one.
        stressors: How many processes are the load.
        report: Shows a line about the progress.
    """
    quiet, seconds = _play_all(runs, play)
    report(f"quiet: {len(runs)} runs in {seconds:.0f} s, load {os.getloadavg()[0]:.1f}")
    with running_stressors(stressors):
        loaded, seconds = _play_all(runs, play)
        report(f"with {stressors} stressors: {len(runs)} runs in {seconds:.0f} s, load {os.getloadavg()[0]:.1f}")
    results: dict[str, Comparison] = {}
    for run, first, second in zip(runs, quiet, loaded, strict=True):
        comparison = results.setdefault(run.agent, Comparison(same=dict.fromkeys(RunResult.__dataclass_fields__, 0)))
        comparison.runs += 1
        differs = first.differences(second)
        for name in comparison.same.keys() - {*differs}:
            comparison.same[name] += 1
        if serious := [name for name in differs if name in ("verdicts", "transcript")]:
            again = (play(run), play(run))
            by_chance = {name for other in again for name in first.differences(other)}
            line = f"{run}: {_describe_difference(first, second)}"
            (comparison.chance if by_chance.issuperset(serious) else comparison.load).append(line)
            comparison.verdicts_differ |= "verdicts" in serious and "verdicts" not in by_chance
    return results


def _play_all(runs: Sequence[PlannedRun], play: PlayRun) -> tuple[list[RunResult], float]:
    began = time.monotonic()
    return [play(run) for run in runs], time.monotonic() - began


def _describe_difference(first: RunResult, second: RunResult) -> str:
    if first.verdicts != second.verdicts:
        changed = sorted({*first.verdicts} ^ {*second.verdicts}, key=str)
        return "verdicts " + ", ".join(f"{check} {status}" for check, status, _ in changed)
    lines = Transcript.parse(first.transcript).differences(Transcript.parse(second.transcript))
    return "transcript " + " | ".join(line for line in lines if line.startswith(("-", "+")))[:300]


# --- runs of the catalogue --------------------------------------------------------------------------------------------


class CataloguePlayer:
    """Plays runs of the built-in catalogue.

    Args:
        agents: The specs of the agents.
        seconds: The time limit of a run.
    """

    def __init__(self, agents: Sequence[str], seconds: float) -> None:
        root = stock_folder()
        self._catalogue: dict[str, Scenario] = {
            name: load_scenario(path, root=root) for name, path in find_scenarios([root]).items()
        }
        self._agents = {
            agent: AgentRuns(AgentRelease(spec=AgentSpec.parse(agent)), self._catalogue, seconds) for agent in agents
        }
        for runs in self._agents.values():
            _ = runs.source

    def plan(self, count: int) -> list[PlannedRun]:
        """Return that many runs, as many of each agent, evenly spread over scenarios and their variants."""
        planned: list[PlannedRun] = []
        for number, (agent, runs) in enumerate(self._agents.items()):
            every = [(scenario, variant) for scenario in self._catalogue for variant in runs.variants(scenario)]
            wanted = (count - number + len(self._agents) - 1) // len(self._agents)
            for index in range(wanted):
                scenario, variant = every[index * len(every) // wanted % len(every)]
                planned.append(PlannedRun(agent=agent, scenario=scenario, variant=variant))
        return planned

    def play(self, run: PlannedRun) -> RunResult:
        """Play one run."""
        history = self._agents[run.agent].history(run.scenario, run.variant)
        events = [event.to_dict() for event in history.events]
        facts = [{name: value for name, value in event.items() if name not in _RANDOM_FACTS} for event in events]
        return RunResult(
            verdicts=tuple(sorted({(one.check, one.status, one.label) for one in judge(history)}, key=str)),
            journal=json.dumps(events, default=repr),
            facts=json.dumps(facts, default=repr),
            transcript=str(Transcript.of_history(history)),
        )


# --- remembered runs --------------------------------------------------------------------------------------------------

RunId = tuple[str, str, str]
"""The scenario, the agent and the variant of a run."""


def compare_remembered(words: Sequence[str], report: Callable[[str], object] = print) -> tuple[int, Comparison]:
    """Play runs with and without a store of remembered runs, and return how many were remembered and what is equal.

    Args:
        words: The arguments of `pytest-approvals run`.
        report: Shows a line about the progress.

    Raises:
        UsageError: They did not run.
    """
    with TemporaryDirectory() as name:
        folder, store = Path(name), Path(name, "runs")
        played = _run_session(words, folder / "played.jsonl", "off", report, "--journals", str(folder / "journals"))
        kept = _run_session(words, folder / "kept.jsonl", str(store), report)
        again = _run_session(words, folder / "again.jsonl", str(store), report)
        transcripts = _read_transcripts(folder / "journals")
        first = _collect_results(played, transcripts)
        second = _collect_results(kept, transcripts)
        kept_transcripts = _read_kept_transcripts(store)
        # Of a run that was played again the report has the transcript only if it has a finding.
        unknown = {run: text for run, text in transcripts.items() if run not in again.remembered}
        third = _collect_results(again, {**kept_transcripts, **unknown})
    return len(again.remembered), compare_results(first, second, third)


def compare_results(
    first: Mapping[RunId, RunResult], second: Mapping[RunId, RunResult], remembered: Mapping[RunId, RunResult]
) -> Comparison:
    """Compare runs that were played twice with what is remembered of them.

    A run that is not in all of them has another verdict; so has a remembered run without a transcript.
    """
    comparison = Comparison(same={"verdicts": 0, "transcript": 0})
    missing = RunResult(verdicts=(("not run", "", None),), journal="", facts="", transcript="")
    for run in sorted({*first, *second, *remembered}):
        comparison.runs += 1
        one, other, third = (results.get(run, missing) for results in (first, second, remembered))
        differs = set(one.differences(third))
        for name in comparison.same.keys() - differs:
            comparison.same[name] += 1
        if differs:
            by_chance = differs.issubset(one.differences(other))
            line = f"{run[0]} on {run[1]} in {run[2]}: {_describe_difference(one, third)}"
            (comparison.chance if by_chance else comparison.load).append(line)
            comparison.verdicts_differ |= "verdicts" in differs and not by_chance
    return comparison


def _run_session(words: Sequence[str], path: Path, store: str, report: Callable[[str], object], *more: str) -> Report:
    began = time.monotonic()
    # With a word for pytest, so that each run is remembered alone and not the session as a whole.
    command = [sys.executable, "-m", "pytest_approvals.cli", "run", *words, "--report", str(path), *more, "--tb=no"]
    environment = {**os.environ, FOLDER_VARIABLE: store}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    whole = read_report(path) if path.exists() else None
    if done.returncode > 1 or whole is None or not whole.verdicts:
        raise UsageError((done.stderr or done.stdout).strip().removeprefix("pytest-approvals: "))
    number, known = whole.footer().runs, len(whole.remembered)
    report(f"{path.stem}: {number:,} runs, {known:,} of them remembered, in {time.monotonic() - began:.0f} s")
    return whole


def _read_transcripts(folder: Path) -> dict[RunId, str]:
    """Return the transcripts of all journals in a folder."""
    found: dict[RunId, str] = {}
    for path in sorted(folder.glob("*.jsonl")):
        lines = map(json.loads, path.read_bytes().splitlines())
        # Not validated, like a remembered journal.
        events = [event_from_dict(line) for line in lines if line["event"] != "footer"]
        header = events[0]
        assert isinstance(header, Header)
        subject = Subject.of(header)
        found[subject.scenario, subject.agent, subject.variant] = str(Transcript.of(events))
    return found


def _read_kept_transcripts(folder: Path) -> dict[RunId, str]:
    """Return the transcripts of all remembered runs."""
    store = RememberedRuns(folder)
    kept = [value["verdict"] for value in store.values() if isinstance(value, dict) and "verdict" in value]
    store.close()
    records = [(verdict["record"], str(Transcript.parse(verdict["transcript"]))) for verdict in kept]
    return {(record["scenario"], record["agent"], record["variant"]): text for record, text in records}


def _collect_results(report: Report, transcripts: Mapping[RunId, str]) -> dict[RunId, RunResult]:
    """Return the results of the runs of a report; where it has a transcript, that one counts."""
    verdicts: dict[RunId, set[tuple[str, str, str | None]]] = {}
    for line in report.verdicts:
        verdicts.setdefault((line.scenario, line.agent, line.variant), set()).add((line.check, line.status, line.label))
    told = {(line.scenario, line.agent, line.variant): str(Transcript(line.lines)) for line in report.transcripts}
    return {
        run: RunResult(
            verdicts=tuple(sorted(several, key=str)),
            journal="",
            facts="",
            transcript=told.get(run, transcripts.get(run, "")),
        )
        for run, several in verdicts.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare runs and print the result; return 1 if a verdict depends on load, or on what is remembered."""
    args = _parse_arguments(arguments)
    try:
        if args.remembered:
            return _print_remembered(args)
        if args.runs < 1 or args.stressors < 1:
            raise UsageError("Invalid number: --runs and --stressors must be at least 1")
        player = CataloguePlayer(args.agent or ["reference"], args.time_limit)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results = compare_under_load(player.plan(args.runs), player.play, args.stressors)
    except ApprovalsError as error:
        print(f"{_COMMAND}: {error}", file=sys.stderr)
        return 2
    print(f"{'agent':16} {'runs':>6} {'verdicts':>9} {'journals':>9} {'facts':>7} {'transcripts':>12}  (equal)")
    for agent, one in results.items():
        verdicts, journal, facts, transcript = (one.same[name] for name in RunResult.__dataclass_fields__)
        print(f"{agent:16} {one.runs:6} {verdicts:9} {journal:9} {facts:7} {transcript:12}")
    for word, lines in (("under load only", "load"), ("without load, too", "chance")):
        for line in (line for one in results.values() for line in getattr(one, lines)):
            print(f"differs {word}: {line}")
    return int(any(one.verdicts_differ for one in results.values()))


def _print_remembered(args: argparse.Namespace) -> int:
    agents = [word for agent in args.agent or ["reference"] for word in ("--agent", agent)]
    words = [*args.scenario, *agents, *(("--strength", args.strength) if args.strength else ())]
    remembered, found = compare_remembered([*words, "--time-limit", str(args.time_limit), "-n", str(args.processes)])
    names = (("verdicts", found.same["verdicts"]), ("transcripts", found.same["transcript"]))
    equal = ", ".join(f"{count:,} equal {name}" for name, count in names)
    print(f"{found.runs:,} runs and groups of them, {remembered:,} remembered: {equal}")
    for word, lines in (("when it is remembered", found.load), ("when it is played, too", found.chance)):
        for line in lines:
            print(f"differs {word}: {line}")
    return int(found.verdicts_differ or not remembered)


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=_COMMAND, description="Compare runs on a quiet and on a loaded machine, or with remembered runs."
    )
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="how many, of all agents (default: 1000)")
    parser.add_argument("--stressors", type=int, default=10, metavar="K", help="processes as load (default: 10)")
    parser.add_argument(
        "--agent", action="append", metavar="AGENT", help="an agent; may be repeated (default: reference)"
    )
    parser.add_argument("--remembered", action="store_true", help="compare with remembered runs, not with load")
    parser.add_argument(
        "--scenario", action="append", default=[], metavar="SCENARIO", help="with --remembered: what is played"
    )
    parser.add_argument("--strength", metavar="1|2|3|full", help="with --remembered: as for `pytest-approvals run`")
    parser.add_argument("--processes", default="0", metavar="N", help="with --remembered: as -n of pytest-xdist")
    parser.add_argument("--time-limit", type=float, default=30.0, metavar="S", help="seconds for a run (default: 30)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
