"""The page about .NET: what it says of the releases is what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.devtools.pages.dotnet import fill_page

PAGE = Path(__file__).parents[2] / "docs" / "dotnet.md"


@pytest.mark.timeout(300)
def test_the_generated_parts_are_what_the_releases_do() -> None:
    """Two copies of a call break the releases that the page says, and nothing breaks the robust one."""
    text = PAGE.read_text(encoding="utf-8")

    assert fill_page(text) == text
    assert "| the request's JSON, in memory | ✓ | ✗ | ✓ | ✓ | ✓ | ✓ |" in text
