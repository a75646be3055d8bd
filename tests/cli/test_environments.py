"""The command `environments`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE
from pytest_approvals.agents.environments.cache import COMPLETION_MARK, FileLock

if TYPE_CHECKING:
    from .conftest import CommandLine


@pytest.fixture(autouse=True)
def cache(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with an environment that was used long ago, and a half one."""
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, str(command_line.folder / "cache"))
    mark = command_line.write(f"cache/environments/a1b2/{COMPLETION_MARK}", '{"recipe": "frame==1.0"}')
    command_line.write("cache/environments/a1b2/module.so", "x" * 1_000_000)
    os.utime(mark, (1000, 1000))
    (command_line.folder / "cache" / "environments" / "c3d4").mkdir()
    os.utime(command_line.folder / "cache" / "environments" / "c3d4", (2000, 2000))


def test_environments_are_listed(command_line: CommandLine) -> None:
    """Each with its recipe, the latest used first."""
    said = command_line("environments")
    lines = said.out.splitlines()

    assert ["c3d4", "a1b2", "2"] == [line.split()[0] for line in lines]
    assert ["(not completed)", "frame==1.0"] == [line.partition("days ago  ")[2] for line in lines[:2]]
    assert f"2 environments in {command_line.folder / 'cache'}" == lines[-1]


def test_old_environments_are_pruned(command_line: CommandLine) -> None:
    """What nobody used for long goes, and what was never completed; what goes is told first."""
    said = command_line("environments", "--prune", "--older-than", "1")
    lines = said.out.splitlines()

    assert 0 == said.code
    assert ["to be removed:", "c3d4", "a1b2", "2 environments, 1 MB"] == [
        lines[0],
        *(x[:4] for x in lines[1:3]),
        lines[3],
    ]
    assert {"removed c3d4  (not completed)", "removed a1b2  frame==1.0"} == set(lines[4:6])
    assert f"2 removed, 0 left in {command_line.folder / 'cache'}" == lines[6]


def test_what_another_folder_shares_is_told_to_stay(command_line: CommandLine) -> None:
    """Usually the cache of uv, which links its files into environments."""
    library = command_line.write("cache/environments/a1b2/shared.so", "x" * 3_000_000)
    (command_line.folder / "uv").hardlink_to(library)
    said = command_line("environments", "--prune", "--yes")

    assert (
        "2 environments, 4 MB; 3 MB of that also belong to another folder, usually the cache of uv, and stay"
    ) in said.out.splitlines()


def test_nothing_to_prune_is_told(command_line: CommandLine) -> None:
    """Nothing is asked then."""
    command_line("environments", "--prune")
    said = command_line("environments", "--prune")

    assert [f"0 removed, 0 left in {command_line.folder / 'cache'}"] == said.out.splitlines()


@pytest.mark.parametrize(
    ("typed", "words", "removed"),
    [("y\n", [], 2), ("Yes\n", [], 2), ("n\n", [], 0), ("\n", [], 0), ("\x04", [], 0), ("", ["--yes"], 2)],
    ids=["y", "yes", "no", "enter", "end", "unasked"],
)
def test_at_a_terminal_pruning_asks_first(
    command_line: CommandLine, monkeypatch: pytest.MonkeyPatch, typed: str, words: list[str], removed: int
) -> None:
    """Only a yes removes anything; with `--yes`, nothing is asked."""
    person, terminal = os.openpty()
    os.write(person, typed.encode())
    with os.fdopen(terminal) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        said = command_line("environments", "--prune", *words)
    os.close(person)

    assert 0 == said.code
    assert ("Remove them? [y/N]" in said.out) == (not words)
    assert f"{removed} removed, {2 - removed} left in {command_line.folder / 'cache'}" in said.out


def test_a_damaged_environment_is_listed_and_pruned(command_line: CommandLine) -> None:
    """One of them neither hides nor spares the others."""
    mark = command_line.write(f"cache/environments/e5f6/{COMPLETION_MARK}", "{")
    os.utime(mark.parent, (3000, 3000))
    listed = command_line("environments")
    pruned = command_line("environments", "--prune")

    assert "(damaged: environment.json is not JSON)" in listed.out
    assert "removed e5f6  (damaged: environment.json is not JSON)" in pruned.out
    assert f"3 removed, 0 left in {command_line.folder / 'cache'}" == pruned.out.splitlines()[-1]


def test_what_is_young_or_in_use_is_not_pruned(command_line: CommandLine) -> None:
    """However few days are asked for."""
    young = command_line.folder / "cache" / "environments" / "c3d4"
    os.utime(young)
    using = FileLock(command_line.folder / "cache" / "locks" / "a1b2.use")
    using.acquire(shared=True)
    said = command_line("environments", "--prune", "--older-than", "0")
    using.release()

    assert f"0 removed, 2 left in {command_line.folder / 'cache'}" == said.out.splitlines()[-1]


def test_a_negative_age_is_refused(command_line: CommandLine) -> None:
    """It would remove what is used."""
    said = command_line("environments", "--prune", "--older-than=-1")

    assert (2, "pytest-approvals: --older-than: Invalid number -1: too small\n") == (said.code, said.err)
