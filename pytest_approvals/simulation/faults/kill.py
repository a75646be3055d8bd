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

from pytest_approvals.agent_side.contract import Agent
from pytest_approvals.checks import Verdict, judge, judge_group
from pytest_approvals.harness.play import Limit
from pytest_approvals.harness.run import run_scenario
from pytest_approvals.harness.sources import InThisProcess, facts_of
from pytest_approvals.journal.history import History
from pytest_approvals.scenario.parts import Restart, Scenario, Variant
from pytest_approvals.scenario.variants import variants
from pytest_approvals.simulation.reference import ReferenceAgent

from .fault import Fault

LIMIT = Limit(seconds=1.0)
"""How long a faulty agent may take; the reference agent takes a thousandth of it."""

RECORDED = Path(__file__).with_name("killers.json")
"""Where each fault is caught first, so that one run proves it again."""

ALL_VARIANTS = "all variants together"
"""In place of a variant: the check compares what a scenario left in all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One run, or one scenario in all variants, that catches a fault: *checks* hold for the reference agent only."""

    scenario: str
    variant: str
    checks: frozenset[str]


def kills(fault: type[Fault], scenarios: Sequence[Scenario], *, strength: str = "2") -> Iterator[Kill]:
    """Runs a fault through *scenarios* in the variants that stay in this process, and gives what catches it."""
    for scenario in scenarios:
        clean: list[History] = []
        for variant in here(scenario, fault, strength):
            history = recorded(scenario, variant, fault)
            broken = broken_in(history) - _broken_anyway(scenario, variant, _sound(fault))
            if broken:
                yield Kill(scenario=scenario.id, variant=variant.id, checks=broken)
            else:
                clean.append(history)
        if clean and (together := not_holding(judge_group(clean))):
            yield Kill(scenario=scenario.id, variant=ALL_VARIANTS, checks=together)


def here(scenario: Scenario, adapter: type[Agent], strength: str = "2") -> list[Variant]:
    """Gives the variants of a scenario that stay in this process; none where the story itself leaves it."""
    if any(isinstance(step, Restart) and step.fresh for step in scenario.caller or ()):
        return []
    return [one for one in variants(scenario, facts_of(adapter), strength=strength) if one.resume == "same"]


def recorded(scenario: Scenario, variant: Variant, adapter: type[Agent]) -> History:
    """Plays a scenario on an agent class and reads the journal."""
    source = InThisProcess(name=adapter.__name__, adapter=adapter, facts=facts_of(adapter))
    run = asyncio.run(run_scenario(scenario, variant, source, limit=LIMIT))
    return History.of(run.events)


def broken_in(history: History) -> frozenset[str]:
    """Gives the checks that do not hold for a journal."""
    return not_holding(judge(history))


def not_holding(verdicts: Sequence[Verdict]) -> frozenset[str]:
    """Gives the checks that say fail or warn; what judges the run itself does not count."""
    return frozenset(verdict.check for verdict in verdicts if verdict.status in ("fail", "warning"))


def _broken_anyway(scenario: Scenario, variant: Variant, agent: type[Agent]) -> frozenset[str]:
    key = scenario.id, variant, agent
    if key not in _ANYWAY:
        _ANYWAY[key] = broken_in(recorded(scenario, variant, agent))
    return _ANYWAY[key]


_ANYWAY: dict[tuple[str, Variant, type[Agent]], frozenset[str]] = {}


def _sound(fault: type[Fault]) -> type[Agent]:
    """Gives the agent without the fault: of the same flavour."""
    return next(base for base in fault.__mro__ if issubclass(base, ReferenceAgent) and not issubclass(base, Fault))


# --- what was recorded ------------------------------------------------------------------------------------------------


def recorded_killers() -> dict[str, Kill]:
    """Gives where each fault is caught first, as it was recorded."""
    written = json.loads(RECORDED.read_text(encoding="utf-8"))
    return {
        name: Kill(scenario=kill["scenario"], variant=kill["variant"], checks=frozenset(kill["checks"]))
        for name, kill in written.items()
    }


def is_caught_again(fault: type[Fault], kill: Kill, scenarios: Sequence[Scenario]) -> bool:
    """Says whether the check that a fault names catches it where it was recorded."""
    scenario = next((one for one in scenarios if one.id == kill.scenario), None)
    if scenario is None:
        return False
    if kill.variant == ALL_VARIANTS:
        return any(fault.caught_by in found.checks for found in kills(fault, [scenario]))
    variant = next((one for one in here(scenario, fault) if one.id == kill.variant), None)
    if variant is None:
        return False
    broken = broken_in(recorded(scenario, variant, fault)) - _broken_anyway(scenario, variant, _sound(fault))
    return fault.caught_by in broken


def first_kill(fault: type[Fault], scenarios: Sequence[Scenario]) -> Kill | None:
    """Gives the first run in which the check that a fault names catches it; None where there is none."""
    return next((kill for kill in kills(fault, scenarios) if fault.caught_by in kill.checks), None)


def written_killers(killers: dict[str, Kill]) -> str:
    """Gives killers as they are recorded."""
    written = {
        name: {"scenario": kill.scenario, "variant": kill.variant, "checks": sorted(kill.checks)}
        for name, kill in killers.items()
    }
    return json.dumps(written, indent=1, ensure_ascii=False) + "\n"
