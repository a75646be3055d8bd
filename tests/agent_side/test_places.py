"""The places of a user's own functions, which findings name."""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

import pytest

from pytest_approvals.agent_side.kit.tool_schema import show_place


def pay(amount: int) -> None: ...


@wraps(pay)
def wrapped(*arguments: Any) -> None: ...


class Payment: ...


HERE = "tests/agent_side/test_places.py"


@pytest.mark.parametrize("code", [pay, wrapped, partial(pay, 5)])
def test_a_function_is_placed_at_its_first_line(code: Any) -> None:
    """Also behind a wrapper that says what it wraps, and behind `partial`."""
    assert f"{HERE}:14" == show_place(code)


def test_a_class_is_placed_at_its_first_line() -> None:
    """A tool may be an object of a class of the user's own."""
    assert f"{HERE}:21" == show_place(Payment)


@pytest.mark.parametrize("code", [print, pytest.fixture, 5, None], ids=["built-in", "installed", "no-code", "nothing"])
def test_what_is_not_the_users_has_no_place(code: Any) -> None:
    """There is no line that the user could change."""
    assert "" == show_place(code)


def test_a_path_outside_the_current_folder_is_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    """It is not written relative to a folder that it is not in."""
    monkeypatch.chdir(tmp_path)

    assert show_place(pay).endswith(f"/{HERE}:14")
