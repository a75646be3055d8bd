"""How faults are proved to be caught."""

from __future__ import annotations

import pytest

from pytest_approvals.devtools import fault_detection
from pytest_approvals.devtools.fault_detection import (
    ALL_VARIANTS,
    Detection,
    explore_fault,
    find_detections,
    find_first_detection,
    find_time_limit,
    in_process_variants,
    is_detected_again,
    main,
)
from pytest_approvals.devtools.pages import faults as faults_page
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import loses_state
from pytest_approvals.simulation.faults import FAULTS, Fault
from pytest_approvals.simulation.faults.execution import RejectedCallRuns
from pytest_approvals.simulation.faults.state import StandingDecisionIsLostInTheDump
from pytest_approvals.simulation.reference import ReferenceAgent


@pytest.fixture
def stories():
    """Loads stories of the catalogue by their ids."""

    def load(*ids):
        return [load_scenario(stock_folder() / f"{name}.approval.yaml", root=stock_folder()) for name in ids]

    return load


class Harmless(Fault):
    """Nothing is wrong."""

    source = ("somebody/something#1",)
    caught_by = "rejected-never-runs"


REJECTED = "parallel/one-approved-one-rejected"


def test_what_is_sound_is_never_caught(stories):
    """An agent without a defect passes what its faulty siblings fail."""
    assert [] == list(find_detections(Harmless, stories(REJECTED, "decisions/standing-approval", "basics/approved")))


def test_only_a_faulty_agent_has_a_short_time(stories):
    """A machine that stops for a second makes no sound agent fail."""
    (story,) = stories("basics/approved")

    assert [30.0, 1.0] == [find_time_limit(story, agent).seconds for agent in (ReferenceAgent, Harmless)]


def test_a_fault_is_caught_in_every_variant_that_shows_it(stories):
    """Each kill says where, and which checks held for the sound agent only."""
    found = list(find_detections(RejectedCallRuns, stories(REJECTED)))

    assert [one.id for one in in_process_variants(stories(REJECTED)[0], RejectedCallRuns)] == [
        one.variant for one in found
    ]
    assert all("rejected-never-runs" in one.checks for one in found)


def test_a_fault_that_only_a_comparison_shows_is_caught_by_all_variants_together(stories):
    """Each run for itself is sound; that they differ is not."""
    found = find_first_detection(
        StandingDecisionIsLostInTheDump, stories("decisions/standing-approval-survives-a-restart")
    )

    assert found == Detection(
        scenario="decisions/standing-approval-survives-a-restart",
        variant=ALL_VARIANTS,
        checks=frozenset({"same-outcome-in-every-mode"}),
    )


@pytest.mark.parametrize(
    ("scenario", "variant", "caught"),
    [
        (REJECTED, "none-held", True),
        (REJECTED, "none-held-from-nowhere", False),
        ("basics/approved", "none-held-approve-all", False),
        ("nowhere/at-all", "none-held", False),
    ],
)
def test_a_record_that_is_out_of_date_proves_nothing(stories, scenario, variant, caught):
    """A scenario or variant that is gone, or does not catch the fault any more, is no proof."""
    known = Detection(scenario=scenario, variant=variant, checks=frozenset({"rejected-never-runs"}))

    assert caught == is_detected_again(RejectedCallRuns, known, stories(REJECTED, "basics/approved"))


def test_the_command_writes_the_record_and_the_page(stories, monkeypatch, tmp_path, capsys):
    """It finds where each fault is caught; a fault that is not caught makes it fail."""
    (tmp_path / "docs").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(fault_detection, "DETECTIONS_FILE", tmp_path / "detections.json")
    monkeypatch.setattr(faults_page, "DETECTIONS_FILE", tmp_path / "detections.json")
    monkeypatch.setattr(faults_page, "load_catalogue", lambda folders: stories(REJECTED))
    monkeypatch.setattr(faults_page, "FAULTS", {"RejectedCallRuns": RejectedCallRuns, "Harmless": Harmless})

    assert 1 == faults_page.main()
    assert "Harmless is not caught by rejected-never-runs\n" == capsys.readouterr().err
    assert ["RejectedCallRuns"] == list(fault_detection.load_detections())
    assert f"`{REJECTED}` none-held" in (tmp_path / "docs" / "faults.md").read_text(encoding="utf-8")
    assert "Harmless" not in FAULTS


@pytest.mark.parametrize("fault", ["RejectedCallRuns", "PendingIsLostInTheDump"])
def test_drawn_stories_kill_a_fault(fault: str) -> None:
    """Without the catalogue; the smallest story is small, and the check that the fault names fails in it."""
    kill = explore_fault(FAULTS[fault], stories=300)

    assert kill is not None
    assert FAULTS[fault].caught_by == kill.failure.check
    assert 12 >= kill.lines


def test_drawn_crashes_kill_a_fault_of_crashes() -> None:
    """Processes are killed in its stories only, for the agent with the fault and for the one without."""
    kill = explore_fault(FAULTS["CrashedCallRunsAgain"], stories=2000)

    assert kill is not None
    # Whichever is drawn first: a call that was approved, or one that needs no approval.
    assert kill.failure.check in ("runs-at-most-once", "ungated-runs-once")
    assert loses_state(kill.failure.case.story)


class ChangesNothing(Fault):
    """There is no defect."""

    source = "none"
    caught_by = "rejected-never-runs"


def test_a_fault_that_no_story_shows_survives(capsys: pytest.CaptureFixture[str]) -> None:
    """What fails on the reference agent, too, is no kill; the command names the fault, and its exit code is 1."""
    code = main(["--fault", f"{__name__}:ChangesNothing", "--stories", "40"])

    assert 1 == code
    assert f"| `{__name__}:ChangesNothing` | survives | | |" in capsys.readouterr().out.splitlines()


def test_an_unknown_fault_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2."""
    assert 2 == main(["--fault", "RejectedCallRun"])
    assert "Unknown fault 'RejectedCallRun'; did you mean 'RejectedCallRuns'?" in capsys.readouterr().err
