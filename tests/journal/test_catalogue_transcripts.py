"""The transcripts of the whole catalogue on the reference agent: one a scenario, whatever the variant."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pytest_approvals.catalogues import scenarios_in, stock_folder
from pytest_approvals.harness.run import run_scenario
from pytest_approvals.harness.sources import InThisProcess, facts_of
from pytest_approvals.journal.grammar import broken_grammar
from pytest_approvals.journal.transcript import Transcript
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.variants import variants
from pytest_approvals.simulation import ReferenceAgent
from pytest_approvals.snapshot import transcript_name

SOURCE = InThisProcess(name="reference", adapter=ReferenceAgent, facts=facts_of(ReferenceAgent))
STEP = 4
"""One variant in so many is run; a run of the catalogue compares them all."""

ELSEWHERE = {"state/cold-start"}
"""The scenarios that are about other processes, and so have no variant that is played in this one."""

SCENARIOS = {name: path for name, path in scenarios_in([stock_folder()]).items() if name not in ELSEWHERE}


@pytest.mark.parametrize("path", SCENARIOS.values(), ids=SCENARIOS)
def test_all_variants_have_one_transcript(path: Path) -> None:
    """The plainest variant and a few others have equal transcripts, and journals as they must be."""
    scenario = load_scenario(path, root=stock_folder())
    told: dict[str, Transcript] = {}
    possible = [variant for variant in variants(scenario, SOURCE.facts) if variant.resume == "same"]
    for variant in (possible[0], *possible[1::STEP]):
        events = asyncio.run(run_scenario(scenario, variant, SOURCE)).events
        name, transcript = transcript_name("reference", scenario, variant), Transcript.of(events)

        assert transcript == told.setdefault(name, transcript), variant.id
        assert [] == broken_grammar(events)
