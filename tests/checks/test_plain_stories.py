"""Stories of another generator fail no check on the reference agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

import pytest

from pytest_approvals.agent_side.contract.metadata import describe_adapter
from pytest_approvals.checks import Verdict, judge, judge_group
from pytest_approvals.errors import ScenarioError
from pytest_approvals.journal.history_builder import read_history
from pytest_approvals.processes.agent_source import InProcessSource
from pytest_approvals.runner.event_loops import get_session_loop
from pytest_approvals.runner.run import run_scenario
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.variants import allowed_variants
from pytest_approvals.simulation import FLAVOURS
from tests.checks.plain_stories import write_story

STORIES = 150
"""Stories of a part; a part takes about two seconds."""

PARTS = [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 20))]

LIMIT = RunLimits(seconds=60.0)
"""The time limit of a run: a machine under load is no failure."""


def load_valid(part: int) -> Iterator[tuple[int, Scenario]]:
    """Load the stories of a part that a scenario file could hold, each with its seed."""
    for seed in range(part * STORIES, (part + 1) * STORIES):
        try:
            yield (
                seed,
                parse_scenario(json.dumps(write_story(seed)), name=f"plain/{seed}", path=f"{seed}.approval.yaml"),
            )
        except ScenarioError:
            continue


def find_failures(source: InProcessSource, scenario: Scenario, draw: Random) -> Iterator[str]:
    """Play a story in two of its variants, and yield the checks that fail.

    A step that cannot be played is no failure here: the generator does not know what an agent is going to ask.
    """
    variants = [variant for variant in allowed_variants(scenario, source.facts, {}) if variant.resume == "same"]
    chosen = draw.sample(variants, min(2, len(variants)))
    histories = [
        read_history(get_session_loop().run(run_scenario(scenario, variant, source, limit=LIMIT)).events)
        for variant in chosen
    ]
    verdicts: list[Verdict] = [verdict for history in histories for verdict in judge(history)]
    for verdict in [*verdicts, *judge_group(histories)]:
        if verdict.status in ("fail", "harness-error") and verdict.check != "scenario-exercised":
            yield f"{verdict.check} {verdict.label}: {verdict.actual} {[variant.id for variant in chosen]}"


def test_most_stories_are_valid() -> None:
    """What the reader refuses is a small part."""
    assert 0.85 * STORIES <= len([*load_valid(0)])


@pytest.mark.parametrize("flavour", FLAVOURS)
@pytest.mark.parametrize("part", PARTS)
def test_they_fail_no_check(part: int, flavour: str) -> None:
    """What fails is a wrong check, a wrong reference agent, or a wrong harness."""
    adapter = FLAVOURS[flavour]
    source = InProcessSource(name="reference", adapter=adapter, facts=describe_adapter(adapter))
    failures = {seed: [*find_failures(source, story, Random(seed))] for seed, story in load_valid(part)}

    assert {} == {seed: failed for seed, failed in failures.items() if failed}
