"""Sessions of `pytest-approvals run` that need not run again."""

from __future__ import annotations

import sqlite3
import zlib
from collections.abc import Callable

import pytest

from pytest_approvals.reporting.files import read_report
from pytest_approvals.simulation.reference import ReferenceAgent
from tests.cli.conftest import CommandLine
from tests.plugin.conftest import SCENARIO

PROJECT = '[tool.pytest.ini_options]\nasyncio_default_fixture_loop_scope = "function"\n'

PLAIN = ("--agent", "reference", "--serialize", "none", "--stream", "off", "--answer", "held")


class Sessions:
    """Sessions with a scenario of a project, and a store of their own."""

    def __init__(self, command_line: CommandLine) -> None:
        self.command_line = command_line
        self.folder = command_line.folder
        command_line.write("pyproject.toml", PROJECT)
        self.scenario = command_line.write("scenarios/one.approval.yaml", SCENARIO)

    def run(self, *words: str) -> str:
        """Run the scenario, and return what was printed."""
        return self.command_line("run", "one", *PLAIN, *words).out

    def is_repeated(self, *words: str) -> bool:
        """Run the scenario, and return whether pytest was not started for it."""
        out = self.run(*words)
        assert "all checks hold" in out
        return " passed in " not in out


@pytest.fixture
def sessions(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    """Sessions in an empty folder."""
    monkeypatch.setenv("PYTEST_APPROVALS_RUNS", str(command_line.folder / "runs"))
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.delenv("PYTEST_PLUGINS", raising=False)
    return Sessions(command_line)


def test_the_same_command_prints_what_the_session_printed(sessions: Sessions) -> None:
    """With the mark that all its runs were remembered, and without pytest."""
    first = sessions.run("--oracle", "approve_all")
    second = sessions.run("--oracle", "approve_all")
    summary = first[first.index("1 run · ") :].partition("\n----")[0].partition("\n====")[0]
    said = "1 run was remembered, since nothing that it depends on has changed; --fresh-runs plays every run\n\n"

    assert summary.strip() == second.replace(" · 1 remembered", "").replace(said, "").strip()


def test_the_report_is_written_again(sessions: Sessions) -> None:
    """With each run marked as remembered, wherever it is wanted."""
    sessions.run("--report", "first.jsonl")
    sessions.run("--report", "second.jsonl")
    first, second = (read_report(sessions.folder / f"{name}.jsonl") for name in ("first", "second"))

    assert [0, 1] == [len(first.remembered), len(second.remembered)]
    assert [*first.body()] == [*second.body()]


def test_a_session_without_a_report_is_not_taken_for_one_with_it(sessions: Sessions) -> None:
    """A report that is wanted for the first time is made by a session."""
    sessions.run()

    assert not sessions.is_repeated("--report", "report.jsonl")


def change_scenario(sessions: Sessions) -> None:
    sessions.scenario.write_text(SCENARIO + "# a comment\n")


def add_scenario(sessions: Sessions) -> None:
    sessions.command_line.write("scenarios/two.approval.yaml", SCENARIO)


def change_project(sessions: Sessions) -> None:
    sessions.command_line.write("pyproject.toml", f"{PROJECT}approvals_strict = true\n")


def add_conftest(sessions: Sessions) -> None:
    sessions.command_line.write("conftest.py", "")


@pytest.mark.parametrize(
    "change", [change_scenario, add_scenario, change_project, add_conftest], ids=lambda f: f.__name__
)
def test_a_session_runs_again_when_something_changed(sessions: Sessions, change: Callable[[Sessions], None]) -> None:
    """The scenario, one beside it, the settings of the project, code of the project."""
    sessions.run()
    assert sessions.is_repeated()
    change(sessions)

    assert not sessions.is_repeated()


@pytest.mark.parametrize(
    "words",
    [("--fresh-runs",), ("--journals", "journals"), ("--times", "times.json"), ("--strict",), ("-rA",), ("-x",)],
    ids=" ".join,
)
def test_other_words_make_another_session(sessions: Sessions, words: tuple[str, ...]) -> None:
    """Those that want runs played, those that judge otherwise, and those for pytest."""
    sessions.run()

    assert not sessions.is_repeated(*words)


@pytest.mark.parametrize("name", ["PYTEST_ADDOPTS", "PYTEST_PLUGINS"])
def test_what_pytest_reads_from_variables_makes_another_session(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Options and plugins could do anything."""
    sessions.run()
    monkeypatch.setenv(name, "-p no:doctest" if name == "PYTEST_ADDOPTS" else "json")

    assert not sessions.is_repeated()


def test_a_session_that_failed_runs_again(sessions: Sessions) -> None:
    """Its findings are those of runs that were played."""
    sessions.command_line.write(
        "faulty_adapter.py",
        "from pytest_approvals.simulation.faults import build_faulty_agent, load_fault\n"
        'FLAVOURS = {"": build_faulty_agent(load_fault("RejectedCallRuns"))}\n',
    )
    sessions.scenario.write_text(SCENARIO.replace("approve}", "reject}"))
    outs = [sessions.command_line("run", "one", "--agent", "faulty").out for _ in range(2)]

    assert [True, True] == [" failed" in out.splitlines()[-1] for out in outs]


@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["in this process", "in a worker"])
def test_an_adapter_of_the_project_counts(sessions: Sessions, workers: tuple[str, ...]) -> None:
    """A session runs again when the file of an adapter has changed, which only workers may have loaded."""
    adapter = sessions.command_line.write(
        "own_adapter.py",
        'from pytest_approvals.simulation import FLAVOURS as REFERENCE\nFLAVOURS = {"": REFERENCE[""]}\n',
    )
    words = ("run", "one", "--agent", "own", "--serialize", "none", *workers)
    outs = [sessions.command_line(*words).out for _ in range(2)]
    adapter.write_text(f"{adapter.read_text()}\n# a comment\n")
    outs.append(sessions.command_line(*words).out)

    assert [True, False, True] == [" passed in " in out for out in outs]


def test_a_damaged_store_is_not_believed(sessions: Sessions) -> None:
    """A text that was changed without its checksum is not printed."""
    sessions.run()
    connection = sqlite3.connect(sessions.folder / "runs" / "runs.sqlite3")
    connection.execute("UPDATE runs SET body = ?", (zlib.compress(b'{"text": "all checks hold"}'),))
    connection.commit()
    connection.close()

    assert not sessions.is_repeated()


def test_a_report_that_cannot_be_written_is_an_error(sessions: Sessions) -> None:
    """As it is for a session that runs."""
    sessions.run("--report", "report.jsonl")
    sessions.command_line.write("taken", "")
    said = sessions.command_line("run", "one", *PLAIN, "--report", "taken/report.jsonl")

    assert (2, "") == (said.code, said.out)
    assert "taken/report.jsonl" in said.err


def test_a_file_that_an_agent_depends_on_counts(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another content is another session."""
    program = sessions.command_line.write("program.json", "{}")
    monkeypatch.setattr(ReferenceAgent, "inputs", (str(program),))
    sessions.run()
    program.write_text("[]")

    assert not sessions.is_repeated()
