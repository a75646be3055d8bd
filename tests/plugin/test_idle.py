"""The plugin where nobody uses it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

PROBE = """
import json, sys, pytest

class Probe:
    def pytest_sessionfinish(self):
        with open("modules.json", "w") as file:
            json.dump(sorted(sys.modules), file)

pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider", *sys.argv[1:]], plugins=[Probe()])
"""


def modules(folder: Path, *words: str) -> set[str]:
    """Names the modules that a pytest run in an empty folder has imported, no other plugin being loaded."""
    (folder / "probe.py").write_text(PROBE)
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    subprocess.run([sys.executable, "probe.py", *words], cwd=folder, env=environment, check=True, capture_output=True)
    return set(json.loads((folder / "modules.json").read_text()))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """What the plugin adds to the modules of an idle pytest run."""
    folder = tmp_path_factory.mktemp("idle")
    return modules(folder, "-p", "pytest_approvals.plugin") - modules(folder)


def test_it_imports_only_itself(imported: set[str]) -> None:
    """Ten modules at most, all of this package."""
    assert {"pytest_approvals"} == {name.partition(".")[0] for name in imported}
    assert len(imported) <= 10, sorted(imported)


@pytest.mark.parametrize("name", ["asyncio", "pydantic", "httpx", "yaml", "faker", "syrupy", "respx"])
def test_it_imports_nothing_heavy(imported: set[str], name: str) -> None:
    """What takes long to import is left for those who need it."""
    assert name not in imported


def test_it_says_nothing(project) -> None:
    """A session without scenarios and without its fixtures shows no trace of it."""
    project.write("test_of_somebody.py", "def test_something(): pass")
    result = project.run(agents="")

    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= approvals =*")


def test_its_help_names_every_option_once(project) -> None:
    """Options and ini entries are listed; what the command line uses underneath is not."""
    result = project.run("--help", agents="")
    text = result.stdout.str()

    assert 1 == text.count("--approvals-agents=SPEC")
    assert 1 == text.count("approvals_scenarios (args)")
    assert "--approvals-chosen" not in text
