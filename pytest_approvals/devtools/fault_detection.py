"""
The proof that faults are caught: a fault runs the catalogue beside the reference agent, and what fails only for the
fault has caught it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.checks import Verdict, judge, judge_group
from pytest_approvals.journal.history import History
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import InProcessSource, describe_adapter
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import RestartStep, Scenario, Variant
from pytest_approvals.scenario.variants import plan_variants
from pytest_approvals.simulation.faults.fault import Fault
from pytest_approvals.simulation.reference import ReferenceAgent

TIME_LIMIT = RunLimits(seconds=1.0)
"""How long a faulty agent may take; the reference agent takes a thousandth of it."""

DETECTIONS_FILE = Path(__file__).with_name("detections.json")
"""Where each fault is caught first, so that one run proves it again."""

ALL_VARIANTS = "all variants together"
"""In place of a variant: the check compares what a scenario left in all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """One run, or one scenario in all variants, that catches a fault: *checks* hold for the reference agent only."""

    scenario: str
    variant: str
    checks: frozenset[str]


def find_detections(fault: type[Fault], scenarios: Sequence[Scenario], *, strength: str = "2") -> Iterator[Detection]:
    """Run a fault through *scenarios* in the variants that stay in this process, and gives what catches it."""
    for scenario in scenarios:
        clean: list[History] = []
        for variant in in_process_variants(scenario, fault, strength):
            history = play_in_process(scenario, variant, fault)
            broken = broken_checks(history) - _baseline_failures(scenario, variant, _sound_agent(fault))
            if broken:
                yield Detection(scenario=scenario.id, variant=variant.id, checks=broken)
            else:
                clean.append(history)
        if clean and (together := failed_checks(judge_group(clean))):
            yield Detection(scenario=scenario.id, variant=ALL_VARIANTS, checks=together)


def in_process_variants(scenario: Scenario, adapter: type[Agent], strength: str = "2") -> list[Variant]:
    """Return the variants of a scenario that stay in this process; none where the story itself leaves it."""
    if any(isinstance(step, RestartStep) and step.fresh for step in scenario.caller or ()):
        return []
    return [
        one for one in plan_variants(scenario, describe_adapter(adapter), strength=strength) if one.resume == "same"
    ]


def play_in_process(scenario: Scenario, variant: Variant, adapter: type[Agent]) -> History:
    """Play a scenario on an agent class and reads the journal."""
    source = InProcessSource(name=adapter.__name__, adapter=adapter, facts=describe_adapter(adapter))
    run = asyncio.run(run_scenario(scenario, variant, source, limit=TIME_LIMIT))
    return read_history(run.events)


def broken_checks(history: History) -> frozenset[str]:
    """Return the checks that do not hold for a journal."""
    return failed_checks(judge(history))


def failed_checks(verdicts: Sequence[Verdict]) -> frozenset[str]:
    """Return the checks that say fail or warn; what judges the run itself does not count."""
    return frozenset(verdict.check for verdict in verdicts if verdict.status in ("fail", "warning"))


def _baseline_failures(scenario: Scenario, variant: Variant, agent: type[Agent]) -> frozenset[str]:
    key = scenario.id, variant, agent
    if key not in _BASELINE:
        _BASELINE[key] = broken_checks(play_in_process(scenario, variant, agent))
    return _BASELINE[key]


_BASELINE: dict[tuple[str, Variant, type[Agent]], frozenset[str]] = {}


def _sound_agent(fault: type[Fault]) -> type[Agent]:
    """Return the agent without the fault: of the same flavour."""
    return next(base for base in fault.__mro__ if issubclass(base, ReferenceAgent) and not issubclass(base, Fault))


# --- what was recorded ------------------------------------------------------------------------------------------------


def load_detections() -> dict[str, Detection]:
    """Return where each fault is caught first, as it was recorded."""
    written = json.loads(DETECTIONS_FILE.read_text(encoding="utf-8"))
    return {
        name: Detection(scenario=kill["scenario"], variant=kill["variant"], checks=frozenset(kill["checks"]))
        for name, kill in written.items()
    }


def is_detected_again(fault: type[Fault], kill: Detection, scenarios: Sequence[Scenario]) -> bool:
    """Return whether the check that a fault names catches it where it was recorded."""
    scenario = next((one for one in scenarios if one.id == kill.scenario), None)
    if scenario is None:
        return False
    if kill.variant == ALL_VARIANTS:
        return any(fault.caught_by in found.checks for found in find_detections(fault, [scenario]))
    variant = next((one for one in in_process_variants(scenario, fault) if one.id == kill.variant), None)
    if variant is None:
        return False
    broken = broken_checks(play_in_process(scenario, variant, fault)) - _baseline_failures(
        scenario, variant, _sound_agent(fault)
    )
    return fault.caught_by in broken


def find_first_detection(fault: type[Fault], scenarios: Sequence[Scenario]) -> Detection | None:
    """Return the first run in which the check that a fault names catches it; None where there is none."""
    return next((kill for kill in find_detections(fault, scenarios) if fault.caught_by in kill.checks), None)


def format_detections(killers: dict[str, Detection]) -> str:
    """Return killers as they are recorded."""
    written = {
        name: {"scenario": kill.scenario, "variant": kill.variant, "checks": sorted(kill.checks)}
        for name, kill in killers.items()
    }
    return json.dumps(written, indent=1, ensure_ascii=False) + "\n"
