"""Runs that `pytest-approvals run` remembers: what makes it play them again, and what it says."""

from __future__ import annotations

import hashlib
import json
import sqlite3
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_approvals.reporting.files import read_report
from tests.plugin.conftest import SCENARIO, Project, without_times

ADAPTER = """
from pathlib import Path

from pytest_approvals.simulation import FLAVOURS as REFERENCE


class Counted(REFERENCE[""]):
    def __init__(self, *args):
        super().__init__(*args)
        with Path("built.txt").open("a") as file:
            file.write("x")


FLAVOURS = {"": Counted}
"""

BROKEN_ADAPTER = ADAPTER.replace(
    "class Counted(REFERENCE[",
    """from pytest_approvals.simulation.faults import build_faulty_agent, load_fault

REFERENCE = {"": build_faulty_agent(load_fault("RejectedCallRuns"))}


class Counted(REFERENCE[""",
)

SAID = "runs were remembered, since nothing that they depend on has changed; --fresh-runs plays every run"


class Runs:
    """Runs of a scenario, in two variants, on an agent that leaves a mark when it is built."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.scenario = project.scenario()
        project.write("counted_adapter.py", ADAPTER)

    def run(self, *words: str) -> str:
        """Run as `pytest-approvals run` does, and return what was printed."""
        dimensions = {"serialize": "none,json", "stream": "off", "answer": "held", "resume": "same", "history": "whole"}
        options = [f"--approvals-{name}={value}" for name, value in dimensions.items()]
        result = self.project.run(f"--approvals-chosen={self.scenario}", *options, *words, agents="counted")
        return "\n".join(result.outlines)

    def count_builds(self) -> int:
        """Return how many agents were built since the last call."""
        mark = self.project.path / "built.txt"
        count = len(mark.read_text()) if mark.exists() else 0
        mark.unlink(missing_ok=True)
        return count


@pytest.fixture
def runs(project: Project, monkeypatch: pytest.MonkeyPatch) -> Runs:
    """Runs in a project of their own, with a store of their own."""
    monkeypatch.setenv("PYTEST_APPROVALS_RUNS", str(project.path / "runs"))
    return Runs(project)


def without_mark(out: str) -> str:
    """Return what was printed without times, and without the mark that two runs were remembered."""
    assert "2 runs · 2 remembered · " in out
    return without_times(out.replace(f"\n2 {SAID}\n", "").replace(" · 2 remembered", ""))


def change_rows(runs: Runs, change: Callable[[dict[str, object]], None]) -> None:
    """Change what is remembered of each run, as if another session had written it."""
    connection = sqlite3.connect(runs.project.path / "runs" / "runs.sqlite3")
    for key, body in connection.execute("SELECT key, body FROM runs").fetchall():
        row = json.loads(zlib.decompress(body))
        if isinstance(row, dict):
            change(row)
        changed = zlib.compress(json.dumps(row).encode())
        checksum = hashlib.sha256(key.encode() + changed).digest()
        connection.execute("UPDATE runs SET body = ?, checksum = ? WHERE key = ?", (changed, checksum, key))
    connection.commit()
    connection.close()


def test_nothing_is_played_when_nothing_changed(runs: Runs) -> None:
    """The summary says so, and all else is printed and reported as before."""
    first = runs.run("--approvals-report=first.jsonl")
    assert 2 <= runs.count_builds()
    second = runs.run("--approvals-report=second.jsonl")
    reports = [read_report(runs.project.path / f"{name}.jsonl") for name in ("first", "second")]

    assert 0 == runs.count_builds()
    assert without_times(first) == without_mark(second)
    assert [0, 2] == [len(report.remembered) for report in reports]
    assert [*reports[0].body()] == [*reports[1].body()]


def test_all_is_played_on_demand(runs: Runs) -> None:
    """With `--fresh-runs`; the results are kept for the next session."""
    runs.run("--approvals-fresh-runs")
    played = runs.count_builds()
    out = runs.run("--approvals-fresh-runs")

    assert played == runs.count_builds()
    assert SAID not in out
    assert SAID in runs.run()


@pytest.mark.parametrize("name", ["scenario", "adapter"])
def test_what_changed_is_played(runs: Runs, name: str) -> None:
    """A scenario, and the project's own adapter."""
    runs.run()
    played = runs.count_builds()
    path = runs.scenario if name == "scenario" else runs.project.path / "counted_adapter.py"
    path.write_text(path.read_text() + "\n# a comment\n")
    runs.run()

    assert played == runs.count_builds()


def test_a_run_that_failed_is_played_again(runs: Runs) -> None:
    """Each time."""
    runs.project.write("counted_adapter.py", BROKEN_ADAPTER)
    runs.scenario.write_text(SCENARIO.replace("{c1: approve}", "{c1: reject}"))
    first = runs.run()
    played = runs.count_builds()
    second = runs.run()

    assert "rejected-never-runs: a call that was rejected must not run" in first
    assert played == runs.count_builds()
    assert without_times(first) == without_times(second)


def test_a_run_is_judged_anew_when_what_judges_it_changed(runs: Runs) -> None:
    """From its journal, without playing it."""
    first = runs.run()
    runs.count_builds()

    def forget_judge(row: dict[str, object]) -> None:
        row["verdict"]["judged_by"] = "others"  # type: ignore[index]

    change_rows(runs, forget_judge)
    second = runs.run()

    assert 0 == runs.count_builds()
    assert without_times(first) == without_times(second)
    assert SAID in runs.run()


def test_a_run_that_fails_when_it_is_judged_anew_is_played(runs: Runs) -> None:
    """Only what was played fails; here the remembered journal was changed, and the played one holds."""
    first = runs.run()
    played = runs.count_builds()

    def break_journal(row: dict[str, object]) -> None:
        row["verdict"]["judged_by"] = "others"  # type: ignore[index]
        row["events"] = [event for event in row["events"] if event["event"] != "tool.end"]  # type: ignore[attr-defined]

    change_rows(runs, break_journal)
    second = runs.run()

    assert played == runs.count_builds()
    assert without_times(first) == without_times(second)


@pytest.mark.parametrize("option", ["--approvals-journals=kept", "--snapshot-update", "--approvals-update-waivers"])
def test_runs_that_leave_something_behind_are_played(runs: Runs, option: str) -> None:
    """A journal, a transcript or a waiver comes from a played run."""
    runs.run(option)
    played = runs.count_builds()
    runs.run(option)

    assert 0 < played == runs.count_builds()


def test_a_project_that_handles_runs_gets_all_of_them(runs: Runs) -> None:
    """Its hook is called for played runs alone, so all are played."""
    runs.project.write("conftest.py", "def pytest_approvals_run_ends(run):\n    print('handled')\n")
    runs.run()
    played = runs.count_builds()
    runs.run()

    assert 0 < played == runs.count_builds()


def test_pytest_itself_plays_all_runs(runs: Runs) -> None:
    """Only `pytest-approvals run` remembers."""
    words = ("scenarios", "--approvals-strength=1", "--approvals-resume=same")
    runs.project.run(*words, agents="counted")
    played = runs.count_builds()
    runs.project.run(*words, agents="counted")

    assert 0 < played == runs.count_builds()
    assert not (runs.project.path / "runs").exists()


def test_a_store_that_cannot_be_used_is_told(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs are played, and the summary says why."""
    (runs.project.path / "file").touch()
    monkeypatch.setenv("PYTEST_APPROVALS_RUNS", str(runs.project.path / "file" / "runs"))
    out = runs.run()

    assert f"runs are not remembered: {runs.project.path}/file/runs/runs.sqlite3: " in out
    assert 0 < runs.count_builds()


def test_workers_remember_together(runs: Runs) -> None:
    """What one of them played, another one needs not play."""
    first = runs.run("-n1")
    played = runs.count_builds()
    second = runs.run("-n1")

    assert 0 < played
    assert 0 == runs.count_builds()
    assert f"\n2 {SAID}\n" in second
    assert Path(runs.project.path / "runs" / "runs.sqlite3").is_file()
    assert SAID not in first
