"""The transcripts of the whole catalogue on the reference agent: one per scenario, equal in all variants."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.plugin.snapshot import transcript_name
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.scenario.catalogue import find_scenarios, stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.variants import plan_variants
from pytest_approvals.simulation import ReferenceAgent

SOURCE = InProcessSource(name="reference", adapter=ReferenceAgent, facts=describe_adapter(ReferenceAgent))
STEP = 4
"""One variant in so many is run; a run of the catalogue compares them all."""

ELSEWHERE = {"state/cold-start"}
"""The scenarios that are about other processes, and so have no variant that is played in this one."""

SCENARIOS = {name: path for name, path in find_scenarios([stock_folder()]).items() if name not in ELSEWHERE}


@pytest.mark.parametrize("path", SCENARIOS.values(), ids=SCENARIOS)
def test_all_variants_have_one_transcript(path: Path) -> None:
    """The plainest variant and a few others have equal transcripts, and journals as they must be."""
    scenario = load_scenario(path, root=stock_folder())
    told: dict[str, Transcript] = {}
    possible = [variant for variant in plan_variants(scenario, SOURCE.facts) if variant.resume == "same"]
    for variant in (possible[0], *possible[1::STEP]):
        events = asyncio.run(run_scenario(scenario, variant, SOURCE)).events
        name, transcript = transcript_name("reference", scenario, variant), Transcript.of(events)

        assert transcript == told.setdefault(name, transcript), variant.id
        assert [] == find_violations(events)
