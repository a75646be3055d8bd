"""Fault detection: the proof that checks catch the seeded faults.

A fault and the reference agent run the catalogue; a check that fails only for the fault has caught it.

`python -m pytest_approvals.devtools.fault_detection` does the same with drawn stories, without the catalogue: it
explores each fault until a check fails for the fault and holds for the reference agent, and prints a table of the
number of stories until then, with the size of the smallest one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.agents.sources import subprocess_factory
from pytest_approvals.campaigns.exploration import Exploration, Failure, StoryPlayer
from pytest_approvals.checks import Verdict, judge, judge_group
from pytest_approvals.errors import ApprovalsError, UsageError
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import RestartStep, Scenario, Variant, owns_processes
from pytest_approvals.scenario.to_file import format_scenario
from pytest_approvals.scenario.variants import plan_variants
from pytest_approvals.simulation.faults import FAULTS, load_fault
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import ReferenceAgent

TIME_LIMIT = RunLimits(seconds=1.0)
"""Time limit of a faulty agent; the reference agent takes a thousandth of it."""

PROCESS_TIME_LIMIT = RunLimits(seconds=10.0)
"""The same in a story that kills processes, each of which takes its time to start."""

DETECTIONS_FILE = Path(__file__).with_name("detections.json")
"""The first detection of each fault, so that one run proves it again."""

ALL_VARIANTS = "all variants together"
"""In place of a variant: the check compares the journals of a scenario in all variants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A run, or one scenario in all variants, in which *checks* fail for a fault and hold for the reference agent."""

    scenario: str
    variant: str
    checks: frozenset[str]


def find_detections(fault: type[Fault], scenarios: Sequence[Scenario], *, strength: str = "2") -> Iterator[Detection]:
    """Run a fault through *scenarios*, in the variants that stay in this process, and yield what catches it.

    Stories that kill processes take long, and are run for faults that need them only.
    """
    for scenario in scenarios:
        if owns_processes(scenario) and not fault.dies:
            continue
        undetected: list[History] = []
        for variant in in_process_variants(scenario, fault, strength):
            history = play_in_process(scenario, variant, fault)
            broken = broken_checks(history) - _baseline_failures(scenario, variant, _sound_agent(fault))
            if broken:
                yield Detection(scenario=scenario.id, variant=variant.id, checks=broken)
            else:
                undetected.append(history)
        if undetected and (together := failed_checks(judge_group(undetected))):
            yield Detection(scenario=scenario.id, variant=ALL_VARIANTS, checks=together)


def in_process_variants(scenario: Scenario, adapter: type[Agent], strength: str = "2") -> list[Variant]:
    """Return the variants of a scenario that stay in this process; none if the scenario itself leaves it."""
    if any(isinstance(step, RestartStep) and step.fresh for step in scenario.caller or ()):
        return []
    planned = plan_variants(scenario, describe_adapter(adapter), strength=strength)
    return [variant for variant in planned if variant.resume == "same"]


def play_in_process(scenario: Scenario, variant: Variant, adapter: type[Agent]) -> History:
    """Play a scenario on an agent class and return the history of its journal."""
    # Only a story that kills processes starts some.
    source = InProcessSource(
        name=adapter.__name__,
        adapter=adapter,
        facts=describe_adapter(adapter),
        elsewhere=subprocess_factory(adapter) if owns_processes(scenario) else None,
    )
    run = asyncio.run(run_scenario(scenario, variant, source, limit=find_time_limit(scenario, adapter)))
    return read_history(run.events)


def find_time_limit(scenario: Scenario, adapter: type[Agent]) -> RunLimits:
    """Return how far a run may go: as far as any, unless a fault may make the agent hang.

    A machine that stops for a second says nothing about an agent without a fault.
    """
    if not issubclass(adapter, Fault):
        return RunLimits()
    return PROCESS_TIME_LIMIT if owns_processes(scenario) else TIME_LIMIT


def broken_checks(history: History) -> frozenset[str]:
    """Return the checks that do not hold for a journal."""
    return failed_checks(judge(history))


def failed_checks(verdicts: Sequence[Verdict]) -> frozenset[str]:
    """Return the checks that fail or warn; verdicts about the run itself do not count."""
    return frozenset(verdict.check for verdict in verdicts if verdict.status in ("fail", "warning"))


def _baseline_failures(scenario: Scenario, variant: Variant, agent: type[Agent]) -> frozenset[str]:
    key = scenario.id, variant, agent
    # All faults of a flavour share the runs without a fault.
    if key not in _BASELINE:
        _BASELINE[key] = broken_checks(play_in_process(scenario, variant, agent))
    return _BASELINE[key]


_BASELINE: dict[tuple[str, Variant, type[Agent]], frozenset[str]] = {}


def _sound_agent(fault: type[Fault]) -> type[Agent]:
    """Return the agent of the same flavour without the fault."""
    return next(base for base in fault.__mro__ if issubclass(base, ReferenceAgent) and not issubclass(base, Fault))


# --- recorded detections ----------------------------------------------------------------------------------------------


def load_detections() -> dict[str, Detection]:
    """Return the recorded first detection of each fault."""
    recorded = json.loads(DETECTIONS_FILE.read_text(encoding="utf-8"))
    return {
        name: Detection(scenario=entry["scenario"], variant=entry["variant"], checks=frozenset(entry["checks"]))
        for name, entry in recorded.items()
    }


def is_detected_again(fault: type[Fault], detection: Detection, scenarios: Sequence[Scenario]) -> bool:
    """Return whether the check that a fault names still catches it in the recorded run."""
    scenario = next((scenario for scenario in scenarios if scenario.id == detection.scenario), None)
    if scenario is None:
        return False
    if detection.variant == ALL_VARIANTS:
        return any(fault.caught_by in known.checks for known in find_detections(fault, [scenario]))
    variant = next((known for known in in_process_variants(scenario, fault) if known.id == detection.variant), None)
    if variant is None:
        return False
    broken = broken_checks(play_in_process(scenario, variant, fault))
    return fault.caught_by in broken - _baseline_failures(scenario, variant, _sound_agent(fault))


def find_first_detection(fault: type[Fault], scenarios: Sequence[Scenario]) -> Detection | None:
    """Return the first run in which the check that a fault names catches it; None if there is none."""
    detections = find_detections(fault, scenarios)
    return next((detection for detection in detections if fault.caught_by in detection.checks), None)


def format_detections(detections: dict[str, Detection]) -> str:
    """Return the text of `detections.json`."""
    entries = {
        name: {"scenario": detection.scenario, "variant": detection.variant, "checks": sorted(detection.checks)}
        for name, detection in detections.items()
    }
    return json.dumps(entries, indent=1, ensure_ascii=False) + "\n"


# --- drawn stories ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """A failure of a fault in a drawn story on which the reference agent does not fail.

    Attributes:
        stories: How many stories were played until it.
        failure: The smallest failure with the same symptom.
    """

    stories: int
    failure: Failure

    @property
    def lines(self) -> int:
        """The number of lines of the smallest story."""
        return len(format_scenario(self.failure.case.story).splitlines())


def explore_fault(fault: type[Fault], *, stories: int, seed: int = 0, profile: str = "adversarial") -> Kill | None:
    """Play drawn stories on a fault until one kills it; None if none of them does."""
    faulty, sound = _create_player(fault), _create_player(_sound_agent(fault))
    exploration = Exploration(player=faulty, seed=seed, profile=profile)
    for number in range(stories):
        case = exploration.draw_case(number)
        if case is None or any(variant.resume != "same" for variant in case.variants) or _restarts_fresh(case.story):
            continue
        # Stories that kill processes take long, and only they show what a process leaves behind.
        if owns_processes(case.story) is not fault.dies:
            continue
        failures = faulty.find_failures(case)
        known = {failure.check for failure in sound.find_failures(case)} if failures else set()
        new = [failure for failure in failures if failure.check not in known]
        if new:
            named = [failure for failure in new if failure.check == fault.caught_by]
            return Kill(stories=number + 1, failure=_shrink_kill((named or new)[0], faulty, sound))
    return None


def _shrink_kill(failure: Failure, faulty: StoryPlayer, sound: StoryPlayer) -> Failure:
    small = faulty.shrink(failure, max_trials=600)
    # Smaller stories are tried on the fault only; one that the reference agent fails proves nothing.
    also = {each.check for each in sound.find_failures(small.case)}
    return failure if small.check in also else small


def _create_player(agent: type[Agent]) -> StoryPlayer:
    source = InProcessSource(
        name=agent.__name__, adapter=agent, facts=describe_adapter(agent), elsewhere=subprocess_factory(agent)
    )
    run = get_session_loop().run
    return StoryPlayer(source, run, limit=TIME_LIMIT, process_limit=PROCESS_TIME_LIMIT, strict=True)


def _restarts_fresh(scenario: Scenario) -> bool:
    return any(isinstance(step, RestartStep) and step.fresh for step in scenario.caller or ())


def format_kills(kills: dict[str, Kill | None]) -> Iterator[str]:
    """Yield the lines of a table of kills, the slowest first, and a line of totals."""
    yield "| fault | stories | check | lines |"
    yield "|---|---|---|---|"
    for name, kill in sorted(kills.items(), key=lambda item: (-(item[1].stories if item[1] else 10**9), item[0])):
        told = f"{kill.stories} | `{kill.failure.check}` | {kill.lines}" if kill else "survives | |"
        yield f"| `{name}` | {told} |"
    found = [kill for kill in kills.values() if kill is not None]
    if found:
        counts, lines = (statistics.median(values) for values in ([k.stories for k in found], [k.lines for k in found]))
        yield ""
        yield f"{len(found)} of {len(kills)} faults killed; median {counts:g} stories, {lines:g} lines"


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table of kills; return 1 if a fault survives."""
    parser = argparse.ArgumentParser(prog="python -m pytest_approvals.devtools.fault_detection")
    parser.add_argument("--stories", type=int, default=3000, metavar="N", help="for each fault (default: 3000)")
    parser.add_argument("--seed", type=int, default=0, help="the seed of the stories (default: 0)")
    parser.add_argument("--profile", default="adversarial", help="adversarial (default) or realistic")
    parser.add_argument("--fault", action="append", metavar="NAME", help="a fault, or MODULE:NAME (default: all)")
    args = parser.parse_args(arguments)
    kills: dict[str, Kill | None] = {}
    try:
        if args.stories < 1:
            raise UsageError(f"--stories: Invalid number {args.stories}: must be at least 1")
        for name in args.fault or FAULTS:
            fault = load_fault(name)
            kill = explore_fault(fault, stories=args.stories, seed=args.seed, profile=args.profile)
            kills[name] = kill
            print(f"{name}: {kill.stories if kill else 'survives'}", file=sys.stderr, flush=True)
    except ApprovalsError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    for line in format_kills(kills):
        print(line)
    return int(None in kills.values())


if __name__ == "__main__":
    raise SystemExit(main())
