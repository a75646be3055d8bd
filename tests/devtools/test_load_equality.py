"""Verdicts and journals are the same on a quiet and on a loaded machine."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_approvals.devtools.load_equality import (
    CataloguePlayer,
    Comparison,
    PlannedRun,
    RunResult,
    compare_under_load,
    main,
    running_stressors,
)
from pytest_approvals.scenario.model import Variant

RUN = PlannedRun(agent="toy", scenario="toys/one", variant=Variant())
RESULT = RunResult(verdicts=(("run-ends", "pass", None),), journal="[]", facts="[]", transcript="Done.\n")
TIMEOUT = replace(RESULT, verdicts=(("run-ends", "fail", None),), transcript="Out of time.\n")


def compare(*results: RunResult) -> Comparison:
    played = iter(results)
    return compare_under_load([RUN], lambda run: next(played), 1, lambda line: None)["toy"]


def test_equal_runs_are_counted() -> None:
    """As equal in everything that is compared."""
    assert Comparison(runs=1, same={"verdicts": 1, "journal": 1, "facts": 1, "transcript": 1}) == compare(
        RESULT, RESULT
    )


def test_a_verdict_that_depends_on_load_is_found() -> None:
    """It differs beside the stressors, and is the former one again without them."""
    found = compare(RESULT, TIMEOUT, RESULT, RESULT)

    assert (["toys/one on toy in none-held: verdicts run-ends fail, run-ends pass"], True) == (
        found.load,
        found.verdicts_differ,
    )


def test_a_verdict_that_depends_on_chance_is_told_apart() -> None:
    """It differs without load, too."""
    found = compare(RESULT, TIMEOUT, RESULT, TIMEOUT)

    assert ([], 1, False) == (found.load, len(found.chance), found.verdicts_differ)


def test_stressors_end_with_the_block() -> None:
    """They are nobody's children, so that no run counts them as its own; none is left."""
    with running_stressors(2):
        during = list_stressors()

    assert (2, 0) == (len(during), len(list_stressors()))


def list_stressors() -> list[str]:
    listed = subprocess.run(["ps", "-eo", "ppid,args"], capture_output=True, text=True, check=True).stdout
    return [
        line for line in listed.splitlines() if "import os, select, sys" in line and f" {sys.executable}" in f" {line}"
    ]


def test_verdicts_and_journals_do_not_depend_on_load() -> None:
    """A few runs of the whole catalogue on the reference agent, whose journals are equal to the byte."""
    player = CataloguePlayer(["reference"], 30.0)
    found = compare_under_load(player.plan(24), player.play, 3, lambda line: None)["reference"]

    assert ({"verdicts": 24, "journal": 24, "facts": 24, "transcript": 24}, [], []) == (
        found.same,
        found.load,
        found.chance,
    )


@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("agent", ["reference", "pydantic_ai", "openai_agents"])
def test_verdicts_do_not_depend_on_load_at_length(agent: str) -> None:
    """A thousand runs of each agent."""
    assert 0 == main(["--runs", "1000", "--stressors", "10", "--agent", agent])


def test_a_mistake_in_the_command_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2, and what to write."""
    assert 2 == main(["--runs", "0"])
    assert "Invalid number" in capsys.readouterr().err
