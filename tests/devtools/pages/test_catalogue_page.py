"""The page of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest

import pytest_approvals
from pytest_approvals.devtools.pages.catalogue import (
    CATALOGUE_FAMILIES,
    CROSSED_FEATURES,
    CROSSING_REASONS,
    DRAWN_STORIES,
    FeatureCounts,
    draw_counts,
    format_catalogue_page,
    format_crossings_page,
    format_drawn_page,
    possible_pairs,
)
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue, parse_scenario

PAGE = Path(pytest_approvals.__file__).parents[1] / "docs" / "catalogue.md"
DRAWN_PAGE = PAGE.with_name("drawn-stories.md")
CROSSINGS_PAGE = PAGE.with_name("crossings.md")

STORY = """
title: One call is rejected
sources: [somebody/agents#7, https://example.org/report]
tools: {pay: {approval: always, parameters: {amount: integer}}}
model: [{calls: [{id: c1, tool: pay, arguments: {amount: 5}}]}, {say: Not paid.}]
caller: [{send: Pay 5}, {decide: {c1: {reject: no money}}}]
"""


def test_the_committed_page_is_current() -> None:
    """`python -m pytest_approvals.devtools.pages.catalogue > docs/catalogue.md` renews it."""
    assert format_catalogue_page(load_catalogue([stock_folder()])) == PAGE.read_text(encoding="utf-8")


def test_a_scenario_is_a_line_in_its_family() -> None:
    """Its file, its title, what an agent must be able to do, and the reports that it models."""
    page = format_catalogue_page([parse_scenario(STORY, name="basics/rejected", path="x")])
    line = (
        "| [rejected](../scenarios/basics/rejected.approval.yaml) | One call is rejected | `reject_reason` | "
        "[somebody/agents#7](https://github.com/somebody/agents/issues/7), https://example.org/report |"
    )

    assert line in page.splitlines()
    assert "1 scenarios, each one story" in page


def test_every_family_has_a_table() -> None:
    """Under its name and a sentence about it."""
    page = format_catalogue_page([])

    assert [] == [
        family
        for family, about in CATALOGUE_FAMILIES.items()
        if f"## {family.capitalize()}\n\n{about}\n\n|" not in page
    ]


@pytest.mark.slow
def test_the_committed_page_of_drawn_stories_is_current() -> None:
    """`python -m pytest_approvals.devtools.pages.catalogue drawn > docs/drawn-stories.md` renews it."""
    written = FeatureCounts(load_catalogue([stock_folder()]))

    assert format_drawn_page(draw_counts(DRAWN_STORIES), written) == DRAWN_PAGE.read_text(encoding="utf-8")


@pytest.mark.slow
def test_every_pair_that_can_stand_together_is_drawn() -> None:
    """In the stories of the page, no pair of features is missing."""
    drawn = draw_counts(DRAWN_STORIES)

    assert [] == [pair for pair in possible_pairs() if not drawn.pairs[pair]]


def test_a_pair_that_no_story_has_is_named() -> None:
    """The page says which pairs are missing, and counts those that are there."""
    story = parse_scenario(STORY, name="basics/rejected", path="x")
    page = format_drawn_page(FeatureCounts([story]), FeatureCounts([]))

    assert "No drawn story has `always` with `annotations`, " in page
    assert "| `reject_reason` | 1 | 0 | 0, 0, " in page
    assert f"Of {len(possible_pairs())} pairs" in page


def test_the_committed_page_of_crossings_is_current() -> None:
    """`python -m pytest_approvals.devtools.pages.catalogue crossings > docs/crossings.md` renews it."""
    assert format_crossings_page(load_catalogue([stock_folder()])) == CROSSINGS_PAGE.read_text(encoding="utf-8")


def test_a_crossing_names_the_stories_that_have_both_features() -> None:
    """Those that no story of the catalogue has are named below."""
    text = STORY.replace("always", "{argument: amount, greater_than: 5}")
    page = format_crossings_page([parse_scenario(text, name="basics/rejected", path="x")])

    assert "the catalogue has 0." in page
    assert "Explained there: [`asks_again`](#asks_again), " in page
    assert "Without a story and without a reason: `always`, " in page


def test_every_crossing_has_a_story_or_a_reason() -> None:
    """And each reason explains some pair that has no story: one that explains none would be out of date."""
    page = CROSSINGS_PAGE.read_text(encoding="utf-8")

    assert "Without a story and without a reason" not in page
    assert [] == [name for name, why in CROSSING_REASONS.items() if f"{why} So no story has it with" not in page]
    assert {*CROSSING_REASONS} <= {*CROSSED_FEATURES}
