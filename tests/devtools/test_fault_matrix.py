"""
Every seeded fault is caught by the stock catalogue, by the check that it names, and the reference agent is not.

By default each fault runs where it was caught before, and the whole catalogue only if that does not catch it any more.
The full matrix, every fault in every scenario, is slow.
"""

from __future__ import annotations

from collections import Counter

import pytest

from pytest_approvals.checks import CHECKS, judge, judge_group
from pytest_approvals.devtools.fault_detection import (
    DETECTIONS_FILE,
    find_detections,
    find_first_detection,
    format_detections,
    in_process_variants,
    is_detected_again,
    load_detections,
    play_in_process,
)
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.simulation.faults import FAULTS
from pytest_approvals.simulation.reference import ReferenceAgent, ReferenceAgentOverChat

KILLERS = load_detections()
STATELESS_FUTURES = {("runs-at-most-once", "warning")}
"""What an agent whose state is copied cannot know: that another copy of it has run the call, too."""


@pytest.fixture(scope="module")
def scenarios():
    """The stock catalogue."""
    return load_catalogue([stock_folder()])


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught_by_the_check_that_it_names(scenarios, name):
    """Where the sound agent passes, the faulty one fails the check."""
    fault, known = FAULTS[name], KILLERS.get(name)

    assert (known is not None and is_detected_again(fault, known, scenarios)) or find_first_detection(
        fault, scenarios
    ) is not None


def test_where_faults_are_caught_is_recorded_for_every_fault():
    """The record names no fault that is gone, and its text is the one that the command writes."""
    assert list(FAULTS) == list(KILLERS)
    assert format_detections(KILLERS) == DETECTIONS_FILE.read_text(encoding="utf-8")


def findings(scenario, variant, agent):
    verdicts = judge(play_in_process(scenario, variant, agent))
    return {(one.check, one.status) for one in verdicts if one.status not in ("pass", "not-applicable")}


@pytest.mark.parametrize("agent", [ReferenceAgent, ReferenceAgentOverChat])
def test_the_reference_agent_passes_every_scenario(scenarios, agent):
    """In the variants of strength 1, and in what all variants of a scenario must have in common."""
    wrong = {
        f"{scenario.id} {variant.id}": found
        for scenario in scenarios
        for variant in in_process_variants(scenario, agent, "1")
        if (found := findings(scenario, variant, agent) - STATELESS_FUTURES)
    }

    assert {} == wrong


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_reference_agent_passes_every_scenario_in_every_pair(scenarios):
    """In the variants of strength 2, one by one and together."""
    wrong = {}
    for scenario in scenarios:
        histories = {
            variant.id: play_in_process(scenario, variant, ReferenceAgent)
            for variant in in_process_variants(scenario, ReferenceAgent)
        }
        for variant, history in histories.items():
            bad = {
                (one.check, one.status) for one in judge(history) if one.status in ("fail", "unknown", "harness-error")
            }
            wrong |= {(scenario.id, variant): bad} if bad else {}
        together = [one for one in judge_group(list(histories.values())) if one.fails]
        wrong |= {(scenario.id, "together"): together} if together else {}

    assert {} == wrong


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_the_whole_matrix(scenarios):
    """Every fault in every scenario: each is caught by its check, and every check of the agent catches several."""
    caught = {
        name: Counter(slug for kill in find_detections(fault, scenarios, strength="1") for slug in kill.checks)
        for name, fault in FAULTS.items()
    }
    catching = {slug for counts in caught.values() for slug in counts}

    assert {} == {name: counts for name, counts in caught.items() if not counts}
    assert set() == {slug for slug, check in CHECKS.items() if check.family != "harness"} - catching
