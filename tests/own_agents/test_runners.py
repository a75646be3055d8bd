"""The tests of an agent as other plugins run them: pytest-xdist, pytest-asyncio and anyio, with warnings as errors."""

from __future__ import annotations

from pathlib import Path

import pytest

AGENT = Path(__file__).parent / "pydantic_ai" / "test_files.py"

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
