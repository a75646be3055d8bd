"""The tests of an agent as other plugins run them: pytest-xdist, pytest-asyncio and anyio, with warnings as errors."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
AGENT = Path(__file__).parent / "pydantic_ai" / "test_files.py"

FRAMEWORKS = sorted(folder.name for folder in AGENT.parents[1].iterdir() if list(folder.glob("test_*.py")))

ASYNCHRONOUS = """
import pytest
from test_files import DELETION, Disk, build
from pytest_approvals import approve_all

async def delete(approvals):
    disk = Disk()
    await approvals.arun(build, "Delete", model=DELETION, run_options={"deps": disk}, oracle=approve_all())
    assert [".env"] == list(disk.files)

@pytest.mark.asyncio
async def test_in_the_loop_of_pytest_asyncio(approvals):
    await delete(approvals)

@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_in_the_loop_of_anyio(approvals, anyio_backend):
    await delete(approvals)
"""


def test_workers_and_loops_of_other_plugins_run_them(pytester: pytest.Pytester) -> None:
    """A worker of pytest-xdist runs them all, and awaits those that are asynchronous in the loop of their plugin."""
    pytester.path.joinpath("test_files.py").write_text(AGENT.read_text(encoding="utf-8"), encoding="utf-8")
    pytester.makepyfile(test_loops=ASYNCHRONOUS)
    # pytest-asyncio warns of a project without it.
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function")
    result = pytester.runpytest_subprocess("-Werror", "-n1")

    result.assert_outcomes(passed=9)


def run_corpus(name: str) -> str:
    """Run all agents of a framework, where it is installed, in two workers and with warnings as errors."""
    options = ["-q", "-Werror", "-n2", "-m", "not slow"]
    if (ROOT / "requirements" / "adapters" / f"{name}.txt").exists():
        words = " ".join(f"'{option}'" for option in [*options, "--ignore=tests/agent_side"])
        command = [sys.executable, "tools/adapter_tests.py", name, f"--pytest={words}"]
    else:
        command = [sys.executable, "-m", "pytest", *options, f"tests/own_agents/{name}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode else ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", FRAMEWORKS)
def test_workers_run_the_whole_corpus(name: str) -> None:
    """No agent of any framework depends on the order of tests, on its worker, or on a warning that nobody reads."""
    assert "" == run_corpus(name)
