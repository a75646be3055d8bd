"""The folder below which servers keep their files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_approvals.agent_side.adapters.agent_framework.hosting import STATE_ROOT_VARIABLE, StateRoot


def test_servers_find_the_folder_while_it_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names it, and afterwards says what it said before."""
    monkeypatch.setenv(STATE_ROOT_VARIABLE, "before")

    with StateRoot(str(tmp_path)).use():
        assert str(tmp_path) == os.environ[STATE_ROOT_VARIABLE]
    assert "before" == os.environ[STATE_ROOT_VARIABLE]


def test_turns_at_the_same_time_use_it_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whichever ends first, the folder is there until the last one ends."""
    monkeypatch.delenv(STATE_ROOT_VARIABLE, raising=False)
    root = StateRoot(str(tmp_path))
    first, second = root.use(), root.use()

    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert str(tmp_path) == os.environ[STATE_ROOT_VARIABLE]
    second.__exit__(None, None, None)
    assert STATE_ROOT_VARIABLE not in os.environ


def test_a_folder_of_its_own_is_removed() -> None:
    """Where no folder is given, one is made, and nothing of it stays."""
    root = StateRoot()
    made = Path(root.path)

    assert made.is_dir()
    root.close()
    assert not made.exists()


def test_a_given_folder_stays(tmp_path: Path) -> None:
    """It belongs to the caller who passed it."""
    StateRoot(str(tmp_path)).close()

    assert tmp_path.is_dir()


def test_it_can_be_the_current_folder_for_a_while(tmp_path: Path) -> None:
    """And then it is the one that was before."""
    before = os.getcwd()

    with StateRoot(str(tmp_path)).as_current_folder():
        assert tmp_path.samefile(os.getcwd())
    assert before == os.getcwd()
