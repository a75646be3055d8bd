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


@pytest.mark.parametrize(
    "made_up",
    [
        "2026-11-22T18:30:19.753102Z",
        "2026-11-22T18:30:19.007531Z",
        "01a20485-f995-7531-a9f9-fbbfb55a007d",
        "01a20485-f995-7678-a9f9-7531b55a007d",
        "1795372219.7531",
        "7531.25",
        "call_7531",
    ],
)
def test_digits_inside_a_made_up_value_are_not_rewritten(made_up: str) -> None:
    """A time stamp or an id that contains the digits by chance stays as it is, so that chance decides no verdict."""
    parts = (f'{{"at": "{made_up}", "cents": 7531}}',)

    assert [StatePosition(0, parts[0].rindex("7531"))] == find_positions(parts, "7531")


@pytest.mark.parametrize(
    "text", ['"7531"', "[7531]", "Pay 7531, then 1.", "Pay 7531.", r"{\"cents\":\n7531}", "a=7531"]
)
def test_digits_that_are_a_value_are_rewritten(text: str) -> None:
    """As a number or a word, also in JSON inside of JSON."""
    assert [StatePosition(0, text.index("7531"))] == find_positions((text,), "7531")


def test_letters_are_rewritten_inside_longer_words() -> None:
    """A name that is part of another one is no chance."""
    assert [StatePosition(0, 0), StatePosition(0, 7)] == find_positions(("payee, payees",), "pay")
