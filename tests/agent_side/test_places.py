"""What is read of a user's own tools: the places of their functions, and whether they have effects."""

from __future__ import annotations

from functools import partial, wraps
from typing import Any

import pytest
from pydantic import BaseModel, Field

from pytest_approvals.agent_side.kit.tool_schema import read_effects, show_place


def pay(amount: int) -> None: ...


@wraps(pay)
def wrapped(*arguments: Any) -> None: ...


class Payment: ...


class Annotations(BaseModel):
    read_only_hint: bool = Field(serialization_alias="readOnlyHint")


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


@pytest.mark.parametrize(
    ("annotations", "effects"),
    [
        ({"readOnlyHint": True}, False),
        ({"readOnlyHint": False}, True),
        ({"readOnlyHint": True, "destructiveHint": True}, False),
        ({"destructiveHint": True}, True),
        ({"destructiveHint": False}, None),
        ({"readOnlyHint": "yes"}, None),
        (Annotations(read_only_hint=False), True),
        (None, None),
    ],
    ids=str,
)
def test_annotations_say_whether_a_tool_has_effects(annotations: Any, effects: bool | None) -> None:
    """A tool that only reads cannot destroy, and one that destroys nothing may still add."""
    assert effects == read_effects(annotations)
