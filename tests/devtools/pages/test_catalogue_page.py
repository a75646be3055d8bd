"""The page of the catalogue."""

from __future__ import annotations

from pathlib import Path

import pytest_approvals
from pytest_approvals.devtools.pages.catalogue import CATALOGUE_FAMILIES, format_catalogue_page
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue, parse_scenario

PAGE = Path(pytest_approvals.__file__).parents[1] / "docs" / "catalogue.md"

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
