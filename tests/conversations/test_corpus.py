"""Corpus: conversations that bad releases stored, what lint finds in them, and the scenarios made from them."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.campaigns.agent_runs import AgentRelease
from pytest_approvals.checks import CHECKS
from pytest_approvals.conversations.reproduce.reproducer import REFERENCE
from pytest_approvals.conversations.reproduce.trials import TrialAgent
from pytest_approvals.devtools.corpus import Case, format_page, lint_case, load_cases, scenario_path
from pytest_approvals.devtools.known_bugs import load_known_bugs
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "tests/conversations/corpus"
CASES = load_cases(FOLDER)
REPRODUCED = [case for case in CASES.values() if case.check]


def load(case: Case) -> Scenario:
    """Return the scenario that was reproduced from a case."""
    path = scenario_path(case, FOLDER)
    return parse_scenario(path.read_text(encoding="utf-8"), name=f"corpus/{case.name}", path=str(path))


@pytest.mark.parametrize("case", CASES.values(), ids=list(CASES))
def test_lint_finds_what_it_found(case: Case) -> None:
    """What a release stored is linted as it was when the page was written."""
    assert not case.format or case.findings == lint_case(case, FOLDER)


@pytest.mark.parametrize("case", REPRODUCED, ids=[case.name for case in REPRODUCED])
def test_a_reproduced_scenario_is_sound(case: Case) -> None:
    """It is valid, and nothing fails on the reference agent, so that what fails elsewhere is no fault of its own."""
    scenario = load(case)
    agent = TrialAgent(REFERENCE)

    assert agent.is_sound(scenario, agent.plainest_variants(scenario)[0])


@pytest.mark.slow
@pytest.mark.parametrize("case", REPRODUCED, ids=[case.name for case in REPRODUCED])
def test_a_reproduced_scenario_tells_the_releases_apart(case: Case) -> None:
    """Its check fails on the release that stored the conversation, and not on the one without the bug."""
    scenario = load(case)

    def fails_on(release: AgentRelease) -> bool:
        agent = TrialAgent(release)
        agent.warned_checks = frozenset(case.checks)
        return case.check in agent.find_failing_checks_of(scenario)

    assert fails_on(case.bad_release)
    assert case.good_release is None or not fails_on(case.good_release)


def test_the_page_is_of_these_cases() -> None:
    """It is written by the command; see its last paragraph."""
    rows = load_known_bugs(ROOT / "docs/known-bugs.yaml", CHECKS)

    assert (ROOT / "docs/corpus.md").read_text(encoding="utf-8") == format_page(rows, CASES)
