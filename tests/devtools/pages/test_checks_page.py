from __future__ import annotations

from pathlib import Path

from pytest_approvals.checks import CHECKS
from pytest_approvals.devtools.pages.checks import render_checks_page

PAGE = Path(__file__).parents[3] / "docs" / "checks.md"


def test_the_page_is_current() -> None:
    """`python -m pytest_approvals.devtools.pages.checks` prints `docs/checks.md`."""
    assert PAGE.read_text(encoding="utf-8") == render_checks_page()


def test_every_check_has_an_anchor() -> None:
    """Each slug is a heading of its own."""
    headings = [line.removeprefix("### ") for line in render_checks_page().splitlines() if line.startswith("### ")]

    assert list(CHECKS) == headings
