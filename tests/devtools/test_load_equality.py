"""Verdicts and journals are the same on a quiet and on a loaded machine."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace

import pytest

from pytest_approvals.devtools.load_equality import (
    CataloguePlayer,
    Comparison,
    PlannedRun,
    RunResult,
    compare_results,
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


RUN_ID = ("toys/one", "toy", "none-held")


def test_a_verdict_that_was_remembered_wrongly_is_found() -> None:
    """Unless playing the run twice makes the same difference; a run that is missing has no verdict at all."""
    results = ((RESULT, TIMEOUT), (TIMEOUT, TIMEOUT), (RESULT, None))
    found = [
        compare_results({RUN_ID: RESULT}, {RUN_ID: played}, {} if known is None else {RUN_ID: known})
        for played, known in results
    ]

    assert [True, False, True] == [one.verdicts_differ for one in found]
    assert [(1, 0), (0, 1), (1, 0)] == [(len(one.load), len(one.chance)) for one in found]
    assert ["toys/one on toy in none-held: verdicts run-ends fail, run-ends pass"] == found[0].load


def test_a_transcript_that_was_remembered_wrongly_is_named() -> None:
    """It is no other verdict."""
    changed = replace(RESULT, transcript="Another.\n")
    found = compare_results({RUN_ID: RESULT}, {RUN_ID: RESULT}, {RUN_ID: changed})

    assert ({"verdicts": 1, "transcript": 0}, False, 1) == (found.same, found.verdicts_differ, len(found.load))


def test_remembered_runs_are_as_if_they_were_played(capsys: pytest.CaptureFixture[str]) -> None:
    """A scenario on the reference agent, by the command."""
    words = ["--remembered", "--scenario", "basics/approved", "--strength", "1"]

    assert 0 == main(words)
    *_, again, last = capsys.readouterr().out.splitlines()
    assert again.startswith("again: 4 runs, 4 of them remembered, ")
    assert re.fullmatch(r"(\d) runs and groups of them, 4 remembered: \1 equal verdicts, \1 equal transcripts", last)


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_all_remembered_runs_are_as_if_they_were_played() -> None:
    """All scenarios on the reference agent."""
    assert 0 == main(["--remembered"])
