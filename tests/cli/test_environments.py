"""The command `environments`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE
from pytest_approvals.agents.environments.cache import COMPLETION_MARK

if TYPE_CHECKING:
    from .conftest import CommandLine


@pytest.fixture(autouse=True)
def cache(command_line: CommandLine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache with an environment that was used long ago, and a half one."""
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, str(command_line.folder / "cache"))
    mark = command_line.write(f"cache/environments/a1b2/{COMPLETION_MARK}", '{"recipe": "frame==1.0"}')
    os.utime(mark, (1000, 1000))
    (command_line.folder / "cache" / "environments" / "c3d4").mkdir()


def test_environments_are_listed(command_line: CommandLine) -> None:
    """Each with its recipe, the latest used first."""
    said = command_line("environments")
    lines = said.out.splitlines()

    assert ["c3d4", "a1b2", "2"] == [line.split()[0] for line in lines]
    assert ["(not completed)", "frame==1.0"] == [line.partition("days ago  ")[2] for line in lines[:2]]
    assert f"2 environments in {command_line.folder / 'cache'}" == lines[-1]


def test_old_environments_are_pruned(command_line: CommandLine) -> None:
    """What nobody used for long goes, and what was never completed."""
    said = command_line("environments", "--prune", "--older-than", "1")

    assert 0 == said.code
    assert {"removed c3d4  (not completed)", "removed a1b2  frame==1.0"} == set(said.out.splitlines()[:2])
    assert f"2 removed, 0 left in {command_line.folder / 'cache'}" == said.out.splitlines()[-1]


def test_a_negative_age_is_refused(command_line: CommandLine) -> None:
    """It would remove what is used."""
    said = command_line("environments", "--prune", "--older-than=-1")

    assert (2, "pytest-approvals: --older-than: Invalid number -1: too small\n") == (said.code, said.err)
