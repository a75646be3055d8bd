"""What others bring: the example package, and hooks in a conftest.py."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_approvals import extensions
from pytest_approvals.adapter import Agent
from pytest_approvals.errors import UsageError
from pytest_approvals.testing import AdapterTests

EXAMPLE = Path(__file__).parent / "example"


@pytest.fixture
def with_example(project, monkeypatch: pytest.MonkeyPatch):
    """A project in whose environment the example package is installed."""
    monkeypatch.setenv("PYTHONPATH", str(EXAMPLE))
    return project


def test_an_installed_adapter_is_an_agent(with_example) -> None:
    """It runs what it can, and the rest does not apply."""
    with_example.scenario(text=ONE)
    result = with_example.run("scenarios", "--snapshot-update", agents="echo", fresh=True)

    assert 0 == result.ret
    result.stdout.fnmatch_lines(["scenario  echo", "mine · 1  1 *"])


def test_an_installed_check_is_applied(with_example) -> None:
    """What it says is in the summary like everything else."""
    with_example.scenario(text=ONE.replace("say: Done.", 'say: ""'))
    result = with_example.run("scenarios", "-k", "none-held", "--snapshot-update", agents="reference", fresh=True)

    result.stdout.fnmatch_lines(
        ["warning: speaks-at-the-end: a conversation should end with some words", "  actual    silence"]
    )


def test_an_installed_check_can_be_explained(with_example) -> None:
    """The command line knows it, too."""
    result = with_example.pytester.run(
        sys.executable, "-m", "pytest_approvals.cli", "check", "--explain", "speaks-at-the-end"
    )

    assert 0 == result.ret
    assert "A conversation should end with some words." in result.outlines


def test_an_installed_oracle_can_be_named(with_example) -> None:
    """With what it wants behind the colon."""
    with_example.scenario(text=ONE)
    words = ("scenarios", "--approvals-serialize=none", "--approvals-stream=off", "--approvals-answer=held")
    monday = with_example.run(
        *words, "--approvals-oracle=weekdays:monday", "--approvals-journals=a", "--snapshot-update", fresh=True
    )
    friday = with_example.run(
        *words, "--approvals-oracle=weekdays:friday", "--approvals-journals=b", "--snapshot-update", fresh=True
    )

    assert (0, 0) == (monday.ret, friday.ret)
    assert '"event":"tool.start"' in next((with_example.path / "a").iterdir()).read_text()
    assert '"event":"tool.start"' not in next((with_example.path / "b").iterdir()).read_text()


def test_an_installed_reporter_is_called_at_the_end(with_example) -> None:
    """It gets the lines of the report, also under pytest-xdist, and once."""
    with_example.scenario(text=ONE)
    with_example.run("scenarios", "-k", "none-held", "--snapshot-update", "-n", "2", fresh=True)

    assert {"header 1", "footer 1"} <= set((with_example.path / "counted.txt").read_text().splitlines())


def test_an_entry_point_that_cannot_be_imported_is_named(project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session ends with a sentence, not with a traceback."""
    project.write("site/broken-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    project.write(
        "site/broken-1.0.dist-info/entry_points.txt", "[pytest_approvals.adapters]\nbroken = no_such_module\n"
    )
    project.scenario()
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site"))
    result = project.run("scenarios", agents="broken", fresh=True)

    assert 4 == result.ret
    what = "the entry point 'broken' of pytest_approvals.adapters cannot be imported"
    result.stderr.fnmatch_lines(
        [f"ERROR: --approvals-agents: {what}: ModuleNotFoundError: No module named 'no_such_module'"]
    )


def install_checks(project, **checks: str) -> None:
    """Install a distribution, always under one version, that offers these checks."""
    points = "".join(f"{name.replace('_', '-')} = {place}\n" for name, place in checks.items())
    project.write("site/house-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: house\nVersion: 1.0\n")
    project.write("site/house-1.0.dist-info/entry_points.txt", f"[pytest_approvals.checks]\n{points}")


def test_what_is_no_check_is_refused(project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A requirement that its author believes to be checked is not left out in silence."""
    project.write("site/house.py", "answers_soon = len\n")
    install_checks(project, answers_soon="house:answers_soon")
    project.scenario(text=ONE)
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site"))
    result = project.run("scenarios", "-k", "none-held", agents="reference", fresh=True)

    assert 0 != result.ret
    what = "<built-in function len> is offered in its place; write a function with @check"
    assert f"Invalid check 'answers-soon': {what}" in result.stdout.str() + result.stderr.str()


def test_a_check_that_is_installed_later_judges_what_is_remembered(project, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if its distribution keeps its version, as one does that is being developed."""
    project.write("site/house.py", CONFTEST.split("class Polite")[0] + CONFTEST[CONFTEST.index("@check") :])
    install_checks(project)
    project.scenario(text=ONE)
    monkeypatch.setenv("PYTHONPATH", str(project.path / "site"))
    monkeypatch.setenv("PYTEST_APPROVALS_RUNS", str(project.path / "runs"))
    words = ("-m", "pytest_approvals.cli", "run", "mine/one", "--agent", "reference", "-n", "0", "--serialize", "none")
    runs = [project.pytester.run(sys.executable, *words) for _ in range(2)]
    install_checks(project, answers_soon="house:answers_soon")
    judged = project.pytester.run(sys.executable, *words)

    assert [False, True] == [" remembered " in run.stdout.str() for run in runs]
    assert "answers-soon: an agent must ask its model at most ten times" in judged.stdout.str()


def test_a_conftest_can_bring_everything(project) -> None:
    """Hooks bring for a session what entry points bring for all, and tell of every run."""
    project.scenario(text=ONE)
    project.write("conftest.py", CONFTEST)
    result = project.run(
        "scenarios", "-k", "none-held-mine", "--approvals-oracle=mine", "--snapshot-update", agents="polite", fresh=True
    )

    assert 1 == result.ret, result.stdout.str()
    told = (project.path / "told.txt").read_text().splitlines()
    assert ["begins mine/one none-held-mine polite", "ends mine/one ['answers-soon']", "reported 1"] == told


def test_two_things_of_one_name_are_refused() -> None:
    """A plugin cannot silently take the place of another."""
    extensions.register("oracles", "mine", first := object())
    try:
        extensions.register("oracles", "mine", first)
        with pytest.raises(UsageError, match="two different oracles are called 'mine'"):
            extensions.register("oracles", "mine", object())
    finally:
        extensions.unregister_all()


@pytest.fixture(scope="module", autouse=True)
def _example_on_path() -> Iterator[None]:
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))


def _echo() -> type[Agent]:
    """Import the example's adapter, while its tests are collected."""
    sys.path.insert(0, str(EXAMPLE))
    try:
        from approvals_example.adapter import Echo
    finally:
        sys.path.remove(str(EXAMPLE))
    return Echo


class TestEcho(AdapterTests):
    """The example's adapter keeps the contract."""

    adapter = _echo()


ONE = """
title: A gated call
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
"""

CONFTEST = '''
from pytest_approvals.checks import OK, Failure, check
from pytest_approvals import approve_all
from pytest_approvals.simulation import ReferenceAgent

class Polite(ReferenceAgent):
    "The reference agent under another name."

def note(text):
    with open("told.txt", "a") as file:
        file.write(text + chr(10))

def pytest_approvals_adapters():
    return {"polite": {"": Polite}}

def pytest_approvals_oracles():
    return {"mine": lambda text: approve_all()}

@check("answers-soon")
def answers_soon(history):
    """
    An agent must ask its model at most ten times.

    Whoever waits wants an answer.

    Passes:
        send Hello
        done

    Fails:
        send Hello
        done
    """
    yield OK if len(history.exchanges) <= 1 else Failure(expected="one question", actual="more", witness=[1])

def pytest_approvals_checks():
    return {"answers-soon": answers_soon}

def pytest_approvals_reporters(config):
    return {"mine": lambda lines, config: note(f"reported {sum(line['event'] == 'header' for line in lines)}")}

def pytest_approvals_run_begins(scenario, variant, agent):
    note(f"begins {scenario.id} {variant.id} {agent}")

def pytest_approvals_run_ends(run, verdicts):
    assert verdicts
    note(f"ends {run.scenario.id} {[one.check for one in verdicts if one.fails]}")
'''
