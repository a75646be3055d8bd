"""Proof that verdicts do not depend on load: the same runs on a quiet and on a loaded machine.

`python -m pytest_approvals.devtools.load_equality --runs 1000 --stressors 10 --agent reference` plays runs of the whole
catalogue, first as the machine is, then beside processes that never wait, and compares verdicts and journals. A run
that differs is played twice more without load, to see whether it is the load that it depends on. The exit code is 1 if
a verdict depends on load.

Frameworks put random ids and the time into states and messages. Their journals are compared without the digests and
sizes of states, and if they still differ, as transcripts, in which made-up values have placeholders.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease, AgentRuns
from pytest_approvals.checks import judge
from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.journal.transcript import Transcript
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
        load: What differs, but only under load: the runs with their verdicts or transcripts.
        chance: What differs without load, too.
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


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare runs and print the result; return 1 if a verdict depends on load."""
    args = _parse_arguments(arguments)
    try:
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


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=_COMMAND, description="Compare runs on a quiet and on a loaded machine.")
    parser.add_argument("--runs", type=int, default=1000, metavar="N", help="how many, of all agents (default: 1000)")
    parser.add_argument("--stressors", type=int, default=10, metavar="K", help="processes as load (default: 10)")
    parser.add_argument(
        "--agent", action="append", metavar="AGENT", help="an agent; may be repeated (default: reference)"
    )
    parser.add_argument("--time-limit", type=float, default=30.0, metavar="S", help="seconds for a run (default: 30)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    raise SystemExit(main())
