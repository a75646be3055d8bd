"""`pytest-approvals new-adapter`."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest


def test_it_writes_an_adapter_and_its_test(command_line) -> None:
    """Both stand in the current folder, and it says what comes next."""
    said = command_line("new-adapter", "toy_frame")

    assert (
        "wrote toy_frame_adapter.py\n"
        "wrote test_toy_frame_adapter.py\n"
        "\n"
        "pytest test_toy_frame_adapter.py says what is left to do.\n"
    ) == said.out
    assert ["test_toy_frame_adapter.py", "toy_frame_adapter.py"] == sorted(
        path.name for path in command_line.folder.glob("*.py")
    )


def test_the_written_test_says_what_is_left(command_line) -> None:
    """What needs no framework passes; what is not written fails and says so; what is not claimed is skipped."""
    command_line("new-adapter", "toy")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--tb=line", "-rf"],
        cwd=command_line.folder,
        capture_output=True,
        text=True,
        check=False,
    )
    endings = set(re.findall(r"\d+ (failed|passed|skipped)", done.stdout))

    assert {"failed", "passed"} == endings, done.stdout
    assert "turn: hand text and decisions to the framework, and give Paused or Finished" in done.stdout
    assert "pending: list the open requests" in done.stdout
    assert "TestToy::test_each_capability_was_looked_at" in done.stdout


def test_the_written_adapter_is_an_agent_of_the_project(command_line) -> None:
    """It can be named at once; it can do nothing yet."""
    command_line("new-adapter", "toy")

    assert re.search(r"^toy +ready +0 capabilities$", command_line("agents").out, re.MULTILINE)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("Toy", "Invalid adapter name 'Toy': expected lower-case letters, digits and single _"),
        ("reference", "there is an agent called 'reference' already; pytest-approvals agents lists them"),
    ],
)
def test_a_name_that_will_not_do_is_refused(command_line, name: str, error: str) -> None:
    """Nothing is written then."""
    said = command_line("new-adapter", name)

    assert (2, f"pytest-approvals: {error}\n", []) == (said.code, said.err, list(command_line.folder.iterdir()))


def test_nothing_is_overwritten(command_line) -> None:
    """Neither file is touched where one of them is there."""
    command_line.write("test_toy_adapter.py", "mine\n")
    said = command_line("new-adapter", "toy")

    assert (2, "pytest-approvals: test_toy_adapter.py exists already\n") == (said.code, said.err)
    assert ["test_toy_adapter.py"] == [path.name for path in command_line.folder.iterdir()]
