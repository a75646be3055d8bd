"""The lists of traits on the page of the agents."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import list_adapter_names
from pytest_approvals.checks import TRAITS
from pytest_approvals.devtools.pages.traits import format_traits, insert_traits, observe_agent

PAGE = Path(__file__).parents[3] / "docs" / "agents.md"


LISTED = [name for name in list_adapter_names() if name != "reference"]
"""The agents with a list: all but the reference agent, which no user chooses."""


@pytest.mark.parametrize("name", ["meai", "pydantic_ai", "openai_agents"])
def test_the_page_is_current(name: str) -> None:
    """`python -m pytest_approvals.devtools.pages.traits NAME` renews the list of an agent.

    The lists of the other agents are held by the tests of their adapters.
    """
    assert format_traits(name, observe_agent(name)) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", LISTED)
def test_a_list_is_in_the_form_of_the_generator(name: str) -> None:
    """With traits and values that `TRAITS` has, in the section of its agent."""
    section = _read_section(PAGE.read_text(encoding="utf-8"), name)
    rows = dict(re.findall(r"^- ([a-z-]+): (.+)$", section.partition("<!-- traits:")[2], re.MULTILINE))
    traits = {trait: values.split(", ") for trait, values in rows.items()}

    assert format_traits(name, traits) in section
    assert [trait for trait in TRAITS if trait in traits] == list(traits)
    assert {} == {
        trait: unknown
        for trait, values in traits.items()
        if (unknown := set(values) - set(re.findall("`(.+?)`", TRAITS[trait].description)))
    }


def _read_section(page: str, name: str) -> str:
    return page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


def test_a_list_is_added_once() -> None:
    """The second time it replaces the first."""
    first, second = (format_traits("mine", {"raising-tool": (value,)}) for value in ("ask", "fail"))
    page = insert_traits("# Agents\n\n## mine\n\nAn agent.\n\n## other\n", "mine", first)

    assert f"# Agents\n\n## mine\n\nAn agent.\n\n{first}\n\n## other\n" == page
    assert page.replace(first, second) == insert_traits(page, "mine", second)
