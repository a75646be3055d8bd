from __future__ import annotations

from pathlib import Path

import pytest

from pytest_approvals.agents.adapters import load_flavours
from pytest_approvals.checks import CHECKS

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


@pytest.mark.parametrize(
    "name", ["pydantic_ai", "openai_agents", "langgraph", "claude_agent_sdk_js", "mastra", "openai_agents_js"]
)
def test_what_cannot_be_decided_is_what_is_not_claimed(name: str) -> None:
    """The page says that contradictions are never judged, and the agent does not claim that they can be handed in."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {name}\n")[2].partition("\n## ")[0]

    assert "`contradiction-not-executed` is never decided" in section
    assert "contradiction-not-executed" in CHECKS
    assert "contradiction" not in load_flavours(name)[""].capabilities


@pytest.mark.parametrize(
    "name",
    [
        *("reference", "meai", "pydantic_ai", "openai_agents", "langgraph"),
        *("ai_sdk", "claude_agent_sdk_js", "openai_agents_js"),
    ],
)
def test_every_flavour_is_on_the_page(name: str) -> None:
    """Each flavour of an agent is named in its section."""
    section = PAGE.read_text(encoding="utf-8").partition(f"## {name}\n")[2].partition("\n## ")[0]

    assert [] == [flavour for flavour in load_flavours(name) if flavour and f"{flavour}`" not in section]
