"""The table of rules and formats: what it says is so, and each rule is shown somewhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.conversations.lint import RULES
from pytest_approvals.devtools.pages.lint_specimens import FormatSpecimens, collect, format_page

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def specimens() -> dict[str, FormatSpecimens]:
    """The specimens by format, from the root of the checkout."""
    return collect()


def test_the_page_is_of_these_specimens(specimens: dict[str, FormatSpecimens]) -> None:
    """It is made by the command that it names."""
    assert (ROOT / "docs/lint-specimens.md").read_text(encoding="utf-8") == format_page(specimens)


def test_each_rule_is_broken_somewhere(specimens: dict[str, FormatSpecimens]) -> None:
    """By an edit of what a framework has stored."""
    broken = {rule for each in specimens.values() for rule in each.broken}

    assert set(RULES) == broken


def test_each_format_has_a_healthy_specimen(specimens: dict[str, FormatSpecimens]) -> None:
    """Nothing is found in it."""
    assert [] == [name for name, each in specimens.items() if not each.healthy]


def test_a_format_that_shows_nothing_is_told_from_a_rule_that_nothing_breaks() -> None:
    """A dot is no question mark."""
    page = format_page({"chat": FormatSpecimens()})

    assert "| `approved-runs` | · |" in page
    assert "| `result-delivered-once` | ? |" in page
