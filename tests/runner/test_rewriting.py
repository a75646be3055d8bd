"""Which places of a save are changed."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from pytest_approvals.runner.saved_states import StatePosition, find_positions, replace_text, select_positions
from pytest_approvals.scenario.model import RewriteStep

PARTS = ("id ann; show ann", "ann; hash ann")


async def lists(parts: Sequence[str]) -> Any:
    """Show what the first part says last, and refuse a hash of somebody else."""
    if not parts[1].endswith("ann"):
        return None
    return [parts[0].rpartition(" ")[2]]


async def checks(parts: Sequence[str]) -> Any:
    """Refuse whatever was changed."""
    return ["ann"] if tuple(parts) == PARTS else None


def test_every_place_is_found() -> None:
    """In all parts, from the first to the last."""
    assert [StatePosition(0, 3), StatePosition(0, 13), StatePosition(1, 0), StatePosition(1, 10)] == find_positions(
        PARTS, "ann"
    )


def test_what_is_longer_stands_in_the_chosen_places_only() -> None:
    """The others keep their text, wherever they are then."""
    step = RewriteStep(old="ann", new="mallory")

    assert ("id mallory; show mallory", "ann; hash ann") == replace_text(
        PARTS, step, [StatePosition(0, 3), StatePosition(0, 13)]
    )


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("every", [StatePosition(0, 3), StatePosition(0, 13), StatePosition(1, 0), StatePosition(1, 10)]),
        ("shown", [StatePosition(0, 13)]),
        ("hidden", [StatePosition(0, 3), StatePosition(1, 0), StatePosition(1, 10)]),
    ],
)
def test_what_is_shown_is_found_out_by_trial(
    where: Literal["every", "shown", "hidden"], found: list[StatePosition]
) -> None:
    """The place whose change alone changes what is listed is shown; all others are hidden."""
    assert found == asyncio.run(select_positions(PARTS, RewriteStep(old="ann", new="bob", where=where), lists))


def test_a_change_that_is_refused_counts_as_shown() -> None:
    """If an agent refuses each change, there is no other place to change."""
    step = RewriteStep(old="show ann", new="show bob", where="shown")

    assert [StatePosition(0, 8)] == asyncio.run(select_positions(PARTS, step, checks))
