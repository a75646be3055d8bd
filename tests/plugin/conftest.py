"""A project that uses the plugin, run as a person runs it."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

# What is imported here is not imported anew, and differently, in each run of pytest inside this process.
import pytest_approvals.checks
import pytest_approvals.plugin.items
import pytest_approvals.plugin.session_finish
import pytest_approvals.plugin.user_runs
import pytest_approvals.reporting.files
import pytest_approvals.scenario.from_file
import pytest_approvals.scenario.schema_base
import pytest_approvals.scenario.variants
import pytest_approvals.simulation.faults

__all__ = ["pytest_approvals"]

SCENARIO = """
title: A gated call is approved
tools:
  delete_file: {approval: always, parameters: {path: string}, returns: "deleted {path}"}
model:
  - calls:
      - {id: c1, tool: delete_file, arguments: {path: a.txt}}
  - say: Done.
caller:
  - send: Delete a.txt
  - decide: {c1: approve}
"""

INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
"""


class Project:
    """A folder with files, on which pytest is run; without an agent's name it runs the reference agent."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.write("pytest.ini", INI)

    def write(self, name: str, text: str) -> Path:
        """Writes a file."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def ini(self, *lines: str) -> None:
        """Adds entries to the ini file."""
        with (self.path / "pytest.ini").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def scenario(self, name: str = "scenarios/mine/one", text: str = SCENARIO, **replaced: str) -> Path:
        """Writes a scenario file; *replaced* exchanges words of its text."""
        for old, new in replaced.items():
            text = text.replace(old, new)
        return self.write(f"{name}.approval.yaml", text)

    def run(self, *words: str, agents: str = "reference", fresh: bool = False) -> pytest.RunResult:
        """Runs pytest in this process; with *fresh*, in another one."""
        chosen = [f"--approvals-agents={agents}"] if agents else []
        words = ("-p", "no:cacheprovider", "-p", "no:randomly", *chosen, *words)
        return self.pytester.runpytest_subprocess(*words) if fresh else self.pytester.runpytest_inprocess(*words)

    def items(self, *words: str, agents: str = "reference") -> list[str]:
        """Collects, and gives the ids of the items."""
        result = self.run("--collect-only", "-q", *words, agents=agents)
        return [line for line in result.outlines if "::" in line]


def without_times(text: str) -> str:
    """Gives what pytest printed without how long it took."""
    return re.sub(r"in \d+\.\d+s( \([\d:]+\))?", "in TIME", text)


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Project:
    """An empty project."""
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    return Project(pytester)
