"""Drawn stories on agents that are right: a failure is printed, and the table counts what was played."""

from __future__ import annotations

import re

import pytest

from pytest_approvals.devtools import soundness
from pytest_approvals.devtools.soundness import AGENTS, Part, format_parts, main
from pytest_approvals.simulation.faults import load_fault


def test_an_agent_that_is_right_fails_nothing(capsys):
    """The command prints a line for each profile, and the total."""
    code = main(["--stories", "20", "--agent", "reference.chat", "--agent", "RejectionsAreShort"])

    lines = capsys.readouterr().out.splitlines()
    assert 0 == code
    assert ["`reference.chat`"] * 2 + ["`RejectionsAreShort`"] * 2 == [line.split()[1] for line in lines[2:6]]
    assert "80 stories, no distinct failures" == lines[-1]


def test_an_agent_that_is_wrong_fails(capsys, monkeypatch):
    """The smallest story of each cause is printed, and the table counts the causes."""
    monkeypatch.setitem(AGENTS, "wrong", load_fault("RejectedCallRuns"))

    # With some seeds the agent hangs in a story, until the time limit ends it.
    code = main(["--stories", "40", "--agent", "wrong", "--profile", "realistic", "--seed", "2"])

    printed = capsys.readouterr().out
    assert 1 == code
    assert "wrong, realistic: rejected-never-runs: " in printed
    assert re.search(r"- decide: \{\w+: reject\}", printed)


def test_stories_that_leave_the_process_are_left_out():
    """Two of fifty stories are not played, so the number of stories says what was."""
    part = Part.of_agent("reference", seed=3, profile="realistic")

    assert [] == list(part.play(range(50)))
    assert "48 stories, no distinct failures" == list(format_parts([part]))[-1]


def test_processes_are_killed_if_that_is_asked_for(capsys):
    """In each story; the table counts them like others."""
    code = main(["--stories", "4", "--agent", "reference", "--profile", "realistic", "--crashes"])

    assert 0 == code
    assert "4 stories, no distinct failures" == capsys.readouterr().out.splitlines()[-1]


def test_each_story_has_the_features_that_are_asked_for():
    """As far as it comes to them."""
    part = Part.of_agent("reference", seed=3, profile="realistic", features=("elicitation",))
    [*part.play(range(20))]

    assert any("elicitation" in pair for pair in part.exploration.pairs)


def test_an_unknown_feature_is_refused(capsys):
    """The message names a near one."""
    code = main(["--stories", "4", "--agent", "reference", "--feature", "elicitatoin"])

    assert 2 == code
    assert "Unknown feature 'elicitatoin'; did you mean 'elicitation'?" in capsys.readouterr().err


def test_progress_is_told_after_each_thousand(monkeypatch):
    """A long run says how far it is."""
    monkeypatch.setattr(soundness, "_PROGRESS_EVERY", 10)

    assert [10, 20] == list(Part.of_agent("reference", seed=3, profile="realistic").play(range(25)))


def test_designs_stand_for_all_of_them(capsys, monkeypatch):
    """Each design is a row."""
    designs = {name: AGENTS[name] for name in ("RejectionsAreShort", "SavedKeysAreSorted")}
    monkeypatch.setattr(soundness, "DESIGNS", designs)

    main(["--stories", "1", "--agent", "designs", "--profile", "realistic"])

    rows = capsys.readouterr().out.splitlines()[2:4]
    assert [f"`{name}`" for name in designs] == [row.split()[1] for row in rows]


def test_an_interruption_keeps_what_was_played(capsys, monkeypatch):
    """The table counts the stories before it."""

    def play(self, numbers):
        self.exploration.played = 7
        raise KeyboardInterrupt

    monkeypatch.setattr(Part, "play", play)

    code = main(["--agent", "reference", "--profile", "realistic"])

    assert 2 == code
    assert "7 stories, no distinct failures" == capsys.readouterr().out.splitlines()[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--stories", "0"], "--stories: Invalid number 0: must be at least 1"),
        (["--agent", "referense"], "Unknown agent 'referense'; did you mean 'reference'?"),
        (["--profile", "realistik"], "Unknown profile 'realistik'; did you mean 'realistic'?"),
    ],
)
def test_invalid_arguments_are_said(arguments, message, capsys):
    """With exit code 2, before anything is played."""
    assert 2 == main(arguments)
    assert f"python -m pytest_approvals.devtools.soundness: {message}\n" == capsys.readouterr().err
