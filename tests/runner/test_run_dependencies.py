"""Digests of what a run depends on: they change with it, and with nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from pytest_approvals.agents.adapters import resolve_local_agent
from pytest_approvals.agents.sources import create_source
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.devtools.import_graph import read_import_graph
from pytest_approvals.processes.agent_source import AgentSource
from pytest_approvals.runner.run_dependencies import (
    JUDGING_CODE,
    PACKAGE,
    UNRELATED_CODE,
    are_unchanged,
    digest_checkout,
    digest_file,
    digest_files,
    digest_run,
    list_judging_code,
    list_local_files,
    list_playing_code,
)
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

SCENARIO = """
title: A call
model:
  - say: Hello
caller:
  - send: Hello
"""
SPEC = AgentSpec.parse("reference")


@pytest.fixture
def source() -> AgentSource:
    """The source of the reference agent; a new one each time, since a digest is kept for a source."""
    return create_source(resolve_local_agent(SPEC))


@pytest.fixture
def scenario(tmp_path: Path) -> Scenario:
    """A scenario in a file."""
    return load(tmp_path, SCENARIO)


def load(folder: Path, text: str) -> Scenario:
    path = folder / "mine" / "one.approval.yaml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return load_scenario(path, root=folder)


def test_the_same_run_has_the_same_digest(scenario: Scenario, source: AgentSource) -> None:
    """Also if its scenario was read again."""
    again = replace(scenario)

    assert digest_run(scenario, Variant(), source, SPEC, {"seed": 0}) == digest_run(
        again, Variant(), source, SPEC, {"seed": 0}
    )


def test_the_scenario_counts(tmp_path: Path, scenario: Scenario, source: AgentSource) -> None:
    """Each character of its file."""
    before = digest_run(scenario, Variant(), source, SPEC, {})
    changed = load(tmp_path, SCENARIO + "# a comment\n")

    assert before != digest_run(changed, Variant(), source, SPEC, {})


def test_the_variant_the_options_and_the_agent_count(scenario: Scenario) -> None:
    """Each of them has digests of its own."""
    specs = [AgentSpec.parse(name) for name in ("reference", "meai")]
    digests = {
        digest_run(scenario, variant, create_source(resolve_local_agent(spec)), spec, options)
        for variant in (Variant(), Variant(stream=True))
        for options in ({"seed": 0}, {"seed": 1})
        for spec in specs
    }

    assert 8 == len(digests)


def test_the_files_that_the_agent_depends_on_count(
    tmp_path: Path, scenario: Scenario, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What they hold."""
    program = tmp_path / "program.json"
    monkeypatch.setattr(ReferenceAgent, "inputs", (str(program),))
    digests = []
    for text in ("{}", "[]"):
        program.write_text(text)
        digests.append(digest_run(scenario, Variant(), create_source(resolve_local_agent(SPEC)), SPEC, {}))

    assert 2 == len(set(digests))


def test_a_scenario_without_a_file_has_no_digest(scenario: Scenario, source: AgentSource) -> None:
    """Nothing tells whether it is the same another time."""
    assert digest_run(replace(scenario, path=None), Variant(), source, SPEC, {}) is None


def test_the_digest_is_the_same_in_every_process(tmp_path: Path, scenario: Scenario) -> None:
    """Whatever the order of sets is there."""
    code = (
        "import sys; from pathlib import Path\n"
        "from tests.runner.test_run_dependencies import *\n"
        "scenario = load_scenario(Path(sys.argv[1]), root=Path(sys.argv[2]))\n"
        "print(digest_run(scenario, Variant(), create_source(resolve_local_agent(SPEC)), SPEC, {}))"
    )
    command = [sys.executable, "-c", code, str(scenario.path), str(tmp_path)]
    found = {
        subprocess.run(
            command,
            cwd=PACKAGE.parent,
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert 1 == len(found)


# --- the code of this package -----------------------------------------------------------------------------------------


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with a file in each folder that matters."""
    folder = tmp_path / "package"
    for name in (
        "checks/a.py",
        "reporting/a.py",
        "runner/a.py",
        "cli/a.py",
        "simulation/a.py",
        "agent_side/adapters/pins.yaml",
        "agent_side/adapters/mine/a.py",
        "agent_side/adapters/mine/mine.waivers.yaml",
        "agent_side/adapters/mine/native.toml",
        "agent_side/adapters/other/a.py",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    return folder


def changed_digests(package: Path, name: str) -> set[str]:
    """Change a file, and return which digests that changes."""

    def read() -> dict[str, str]:
        played = {
            name: digest_files(package, list_playing_code(name, package)) for name in ("mine", "other", "reference")
        }
        return played | {"judging": digest_files(package, list_judging_code(package))}

    before = read()
    (package / name).write_text("22")
    after = read()
    return {name for name in before if before[name] != after[name]}


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("checks/a.py", {"judging"}),
        ("reporting/a.py", {"judging"}),
        ("runner/a.py", {"mine", "other", "reference"}),
        ("agent_side/adapters/mine/a.py", {"mine"}),
        ("agent_side/adapters/mine/mine.waivers.yaml", set()),
        ("agent_side/adapters/mine/native.toml", set()),
        ("agent_side/adapters/pins.yaml", {"mine", "other", "reference"}),
        ("simulation/a.py", {"reference"}),
        ("cli/a.py", set()),
    ],
)
def test_a_changed_file_concerns_what_depends_on_it(package: Path, name: str, changed: set[str]) -> None:
    """A check concerns verdicts alone, an adapter the runs on its own agents."""
    assert changed == changed_digests(package, name)


def test_no_run_imports_what_does_not_count_for_it() -> None:
    """Neither the runner nor an adapter reaches a folder that is left out, and no adapter reaches another one."""
    graph = read_import_graph(PACKAGE)
    left_out = (*JUDGING_CODE, *UNRELATED_CODE)

    def reach(module: str) -> set[str]:
        seen, waiting = set(), [module]
        while waiting:
            found = waiting.pop()
            if found not in seen:
                seen.add(found)
                waiting += graph[found]
        return seen

    adapters = [module for module in graph if ".agent_side.adapters." in module]
    foreign = {
        (module, found)
        for module in ["pytest_approvals.runner.run", *adapters]
        for found in reach(module)
        if found.split(".")[1:2] and found.split(".")[1] in left_out
    }
    crossing = {
        (module, found)
        for module in adapters
        for found in graph[module]
        if ".agent_side.adapters." in found and found.split(".")[3] != module.split(".")[3]
    }

    assert (set(), set()) == (foreign, crossing)


# --- files that are no part of a distribution -------------------------------------------------------------------------


def test_modules_of_a_project_are_local_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An installed one is not, nor is one of this package."""
    (tmp_path / "local_module_of_a_project.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("local_module_of_a_project")
    try:
        files = list_local_files()
    finally:
        del sys.modules["local_module_of_a_project"]

    assert str(tmp_path / "local_module_of_a_project.py") in files
    assert [] == [path for path in files if "site-packages" in path or path.startswith(str(PACKAGE))]


def test_a_module_that_takes_the_place_of_another_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There are as many modules as before."""
    for number in (1, 2):
        (tmp_path / f"{number}.py").write_text("")
    found = []
    for number in (1, 2):
        module = ModuleType("local_module_that_changes")
        module.__file__ = str(tmp_path / f"{number}.py")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        found.append([path for path in list_local_files() if path.startswith(str(tmp_path))])

    assert [[str(tmp_path / "1.py")], [str(tmp_path / "2.py")]] == found


def test_a_changed_local_file_is_noticed(tmp_path: Path) -> None:
    """One that is gone, too."""
    path = tmp_path / "adapter.py"
    path.write_text("1")
    known = {str(path): digest_file(path)}

    assert are_unchanged(known)
    path.write_text("22")
    assert not are_unchanged(known)
    path.unlink()
    assert not are_unchanged(known)


def test_a_checkout_counts_by_its_content(tmp_path: Path) -> None:
    """Hidden folders and what is built there do not."""
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "a.py").write_text("1")
    before = digest_checkout(tmp_path)
    for name in (".git", "build", "src/__pycache__"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("1")
    same = digest_checkout(tmp_path)
    (tmp_path / "src" / "a.py").write_text("22")

    assert (True, False) == (before == same, before == digest_checkout(tmp_path))
