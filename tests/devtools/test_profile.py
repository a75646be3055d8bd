from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_approvals.devtools import profile
from pytest_approvals.devtools.profile import SIDES, Profile, find_side, format_profile, insert_profile
from pytest_approvals.errors import UsageError

PACKAGE = str(Path(profile.__file__).parents[1])
RUNNER = ("/venv/site-packages/_pytest/runner.py", "runtestprotocol")
PLAY = (f"{PACKAGE}/runner/run.py", "run_scenario")
BUILD = (f"{PACKAGE}/processes/agent_source.py", "build")
CLIENT = ("/venv/site-packages/openai/_base_client.py", "post")
CONFIG = ("/venv/site-packages/_pytest/config/__init__.py", "main")


@pytest.mark.parametrize(
    ("side", "stack"),
    [
        ("pytest", [RUNNER, CONFIG]),
        ("start", [CONFIG]),
        ("play", [("/lib/json/encoder.py", "encode"), PLAY, RUNNER]),
        ("client", [("/lib/json/encoder.py", "encode"), CLIENT, PLAY, RUNNER]),
        ("build", [CLIENT, BUILD, PLAY, RUNNER]),
        ("start", [CLIENT, ("/venv/site-packages/openai/__init__.py", "<module>"), BUILD, PLAY, RUNNER]),
        ("judge", [(f"{PACKAGE}/journal/history_builder.py", "read_history"), PLAY]),
    ],
)
def test_the_innermost_side_counts(side: str, stack: list[tuple[str, str]]) -> None:
    """Time counts for the innermost side at work; a client counts during the play, an import always for the start."""
    assert side == find_side(stack)


def test_every_named_function_exists() -> None:
    """The functions that mark sides are in the files that the profile names."""
    missing = [
        f"{file}: {name}"
        for file, names in profile._SIDE_OF_FUNCTION.items()
        for name in names
        if f"def {name}(" not in (Path(PACKAGE) / file).read_text(encoding="utf-8")
    ]

    assert [] == missing


def test_the_page_explains_every_side() -> None:
    """The page says of each side what counts for it."""
    page = (Path(PACKAGE).parent / "docs" / "performance.md").read_text(encoding="utf-8")

    assert [] == [side for side in SIDES if f"| {side} | " not in page]


def test_a_table_is_replaced_in_place() -> None:
    """Writing a table changes nothing of the page but the lines between the markers of its agent."""
    profiled = Profile(agent="mine", runs=2, seconds={"play": 0.001})
    begin, end = profile._BEGIN.format(name="mine"), profile._END
    page = f"# Page\n\n{begin}\nold\n{end}\n\nmore\n"

    got = insert_profile(page, "mine", format_profile(profiled))

    assert page.replace("old", format_profile(profiled)) == got


def test_a_page_without_a_place_is_an_error() -> None:
    """An agent that the page has no markers for is refused with the lines to add."""
    with pytest.raises(UsageError, match=r"no table of 'mine': add the lines"):
        insert_profile("# Page\n", "mine", "| |")


def test_the_command_profiles_a_scenario(tmp_path: Path) -> None:
    """The command plays a scenario on an agent in all sides' sight, and prints the table."""
    command = [sys.executable, "-m", "pytest_approvals.devtools.profile", "--agent", "reference", "basics/approved"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    assert done.stdout.startswith("reference:\n\n| side | ms a run | share |"), done.stderr
    assert "| start | " in done.stdout


def test_the_command_refuses_an_unknown_scenario(tmp_path: Path) -> None:
    """An unknown scenario ends with a message and exit code 2."""
    command = [sys.executable, "-m", "pytest_approvals.devtools.profile", "--agent", "reference", "basics/aproved"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=tmp_path)

    assert (2, True) == (done.returncode, "did you mean 'basics/approved'" in done.stderr), done.stderr
