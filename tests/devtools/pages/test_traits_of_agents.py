"""The lists of traits on the page of the agents."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.devtools.pages.traits import format_traits, insert_traits, observe_agent

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"


@pytest.mark.parametrize("name", ["pydantic_ai", "openai_agents"])
def test_the_page_is_current(name: str) -> None:
    """`python -m pytest_approvals.devtools.pages.traits NAME` renews the list of an agent."""
    assert format_traits(name, observe_agent(name)) in PAGE.read_text(encoding="utf-8")


def test_a_list_is_added_once() -> None:
    """The second time it replaces the first."""
    first, second = (format_traits("mine", {"raising-tool": (value,)}) for value in ("ask", "fail"))
    page = insert_traits("# Agents\n\n## mine\n\nAn agent.\n\n## other\n", "mine", first)

    assert f"# Agents\n\n## mine\n\nAn agent.\n\n{first}\n\n## other\n" == page
    assert page.replace(first, second) == insert_traits(page, "mine", second)
