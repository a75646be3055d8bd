"""Whether drawn stories find a known bug: on agents of this process, with a defect and without."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path
from textwrap import dedent

import pytest

from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.campaigns.agent_runs import AgentRelease
from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.known_bugs import KnownBug, exploration, load_known_bugs
from pytest_approvals.devtools.known_bugs.exploration import (
    HEADING,
    ExploredBug,
    explore_known_bug,
    format_part,
    format_results,
    load_results,
    main,
    read_cpu_time,
    replace_part,
)

ROOT = Path(__file__).parents[2]
ROWS = """
- id: {id}
  title: A bug
  source: made up
  bad: {{agent: rejectrunner}}
  good: {{agent: reference}}
  checks: [rejected-never-runs]
"""


@pytest.fixture(autouse=True)
def broken_agents(tmp_path, monkeypatch):
    """Agents of the project: `rejectrunner` has the defect, `onechild` only in a flavour that its row does not name."""
    module = """
        from pytest_approvals.simulation.faults import build_faulty_agent, load_fault
        from pytest_approvals.simulation.reference import ReferenceAgent
        Broken = build_faulty_agent(load_fault("RejectedCallRuns"))
        class Sound(ReferenceAgent): ...
        class Torn(ReferenceAgent):
            def __init__(self, *args, **kwargs):
                raise ImportError("no such name")
    """
    module = dedent(module)
    (tmp_path / "rejectrunner_adapter.py").write_text(f'{module}FLAVOURS = {{"": Broken}}')
    (tmp_path / "torn_adapter.py").write_text(f'{module}FLAVOURS = {{"": Torn}}')
    (tmp_path / "onechild_adapter.py").write_text(f'{module}FLAVOURS = {{"": Sound, "other": Broken}}')
    monkeypatch.chdir(tmp_path)


def bug(bad, good, *checks):
    """Return a row."""
    releases = [None if agent is None else AgentRelease(spec=AgentSpec.parse(agent)) for agent in (bad, good)]
    return KnownBug(id="bug", title="A bug", sources=(), bad=releases[0], good=releases[1], checks=checks)


def clock():
    """Return a clock of which each reading is a second later."""
    return map(float, count()).__next__


def test_a_story_finds_a_bug_that_the_good_release_lacks():
    """And says which one, so that it can be played again."""
    result = explore_known_bug(bug("rejectrunner", "reference", "rejected-never-runs"), seconds=60, read_time=clock())

    assert ("rejected-never-runs",) == result.checks
    assert ("rejectrunner", result.stories - 1) == (result.agent, result.number)


def test_what_fails_on_the_good_release_too_is_no_bug():
    """The bad one is missed until its time is used up."""
    result = explore_known_bug(
        bug("rejectrunner", "rejectrunner", "rejected-never-runs"), seconds=20, read_time=clock()
    )

    assert ((), 19) == (result.checks, result.stories)


def test_a_failure_of_another_check_is_not_the_bug():
    """Only the checks of the row count."""
    result = explore_known_bug(bug("rejectrunner", "reference", "sessions-isolated"), seconds=20, read_time=clock())

    assert () == result.checks


def test_without_a_good_release_any_failure_counts():
    """As in the search of the catalogue."""
    result = explore_known_bug(bug("rejectrunner", None, "rejected-never-runs"), seconds=60, read_time=clock())

    assert ("rejected-never-runs",) == result.checks


def test_other_flavours_take_every_other_turn():
    """A row that names no flavour means all of its distribution."""
    result = explore_known_bug(bug("onechild", "reference", "rejected-never-runs"), seconds=60, read_time=clock())

    assert "onechild.other" == result.agent
    assert result.number == (result.turns - 1) // 2


def test_more_time_goes_on_where_less_ended():
    """A story is not played twice."""
    row = bug("rejectrunner", "rejectrunner", "rejected-never-runs")
    before = explore_known_bug(row, seconds=5, read_time=clock())
    after = explore_known_bug(row, seconds=9, before=before, read_time=clock())

    assert [4, 7] == [before.stories, after.stories]
    assert after.seconds >= 9


def test_an_agent_that_cannot_be_started_is_said():
    """It is neither found nor missed."""
    result = explore_known_bug(bug("reference==1.0", None, "rejected-never-runs"), seconds=5, read_time=clock())

    assert "reference" in result.why
    assert ("", 0) == (result.agent, result.stories)


def test_an_agent_that_plays_nothing_is_said():
    """Its runs end at once, so that any number of stories would say nothing."""
    result = explore_known_bug(bug("torn", None, "rejected-never-runs"), seconds=90, read_time=clock())

    assert "no story can be played: the run was broken: ImportError: no such name" in result.why
    assert 0 == result.stories


def test_time_of_living_children_counts(tmp_path, monkeypatch):
    """Agents are processes that live on: their times, and those of their children, are read from the system."""
    pid = 77
    monkeypatch.setattr(exploration.os, "getpid", lambda: pid)
    monkeypatch.setattr(exploration.os, "sysconf", lambda _: 100)
    for child, parent in ((78, 77), (79, 78), (80, 1)):
        (tmp_path / str(child)).mkdir()
        rest = ["S", str(parent), *["0"] * 9, "100", "50", "25", "25", "0"]
        (tmp_path / str(child) / "stat").write_text(f"{child} (a) process) {' '.join(rest)}")

    assert [2.0, 2.0] == list(exploration._read_times_of_descendants(tmp_path, pid))


def test_cpu_time_grows():
    """It counts at least this process."""
    before = read_cpu_time()
    sum(range(3_000_000))

    assert before < read_cpu_time()


def test_results_are_read_as_they_are_written(tmp_path):
    """Also those of an agent that cannot be started."""
    results = {"a": ExploredBug(stories=3, turns=4, seconds=1.5, checks=("x",)), "b": ExploredBug(why="no release")}
    (tmp_path / "explored.json").write_text(format_results(results))

    assert results == load_results(tmp_path / "explored.json")
    assert {} == load_results(tmp_path / "absent.json")


def test_the_part_counts_rows_that_were_explored():
    """An agent that cannot be started, and a row that was not reached, are neither found nor missed."""
    rows = load_known_bugs(ROOT / "docs" / "known-bugs.yaml", CHECKS)[:4]
    found = ExploredBug(stories=1200, turns=1, seconds=7.4, checks=("asked-once",))
    missed = ExploredBug(stories=9, turns=1, seconds=61.0)
    part = format_part(rows, {rows[0].id: found, rows[1].id: missed, rows[2].id: ExploredBug(why="no")})

    assert "Of 4 rows 2 were explored, and 1 of these bugs found again, 50 %." in part
    assert "at most 61 s." in part
    cells = [line.split(" | ", 2)[2] for line in part.splitlines() if line.startswith("| `")]
    assert [
        "[`asked-once`](checks.md#asked-once) | 1,200 | 7 s |",
        "missed | 9 | 61 s |",
        "cannot be started | | |",
        "not explored | | |",
    ] == cells


def test_the_part_replaces_the_one_before():
    """What people wrote above it stays."""
    page = replace_part("# Bugs\n\nText.\n", f"{HEADING}\n\nold\n")

    assert f"# Bugs\n\nText.\n\n{HEADING}\n\nnew\n" == replace_part(page, f"{HEADING}\n\nnew\n")


def test_the_page_is_what_the_command_makes():
    """The part of `docs/known-bugs.md` is generated from the recorded results."""
    rows = load_known_bugs(ROOT / "docs" / "known-bugs.yaml", CHECKS)
    page = (ROOT / "docs" / "known-bugs.md").read_text(encoding="utf-8")

    assert page == replace_part(page, format_part(rows, load_results()))


def test_the_command_records_and_skips_what_it_has_found(tmp_path, monkeypatch, capsys):
    """A second call has nothing to do."""
    (tmp_path / "bugs.yaml").write_text(ROWS.format(id="first"))
    (tmp_path / "page.md").write_text("# Bugs\n")
    monkeypatch.setattr(exploration, "TABLE", tmp_path / "bugs.yaml")
    monkeypatch.setattr(exploration, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(exploration, "RESULTS_FILE", tmp_path / "explored.json")
    monkeypatch.setattr(exploration, "load_results", lambda: load_results(tmp_path / "explored.json"))

    assert [0, 0] == [main([]), main([])]

    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("first: rejected-never-runs; ")
    assert ["first"] == list(json.loads((tmp_path / "explored.json").read_text()))
    assert "| `first` | `rejectrunner` | [`rejected-never-runs`]" in (tmp_path / "page.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seconds", "0"], "--seconds: Invalid number 0: must be more than 0"),
        (["--profile", "x"], "Unknown profile 'x'"),
        (["--only", "agno-jsn"], "Unknown row 'agno-jsn'"),
    ],
)
def test_invalid_arguments_are_said(arguments, message, monkeypatch, capsys):
    """With exit code 2, before anything is played."""
    monkeypatch.chdir(ROOT)

    assert 2 == main(arguments)
    assert message in capsys.readouterr().err
