"""Agents of Agno that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from agno.agent import Agent
from agno.tools import tool as as_tool

from pytest_approvals import Approvals
from tests.attached_agents import FEW, NEVER_ASKED, OWN_FAILURE, OwnTool, compare, find_all

AGENT = "agno"

DIFFERENT = {
    "decisions/approval-of-what-was-never-asked": NEVER_ASKED,
    "decisions/contradiction-in-one-submission": OWN_FAILURE,
    "decisions/contradiction-rejected-first": OWN_FAILURE,
    "failures/required-argument-is-missing": "built tools take arguments by keyword only, as the error's text says",
}
"""The stories that differ, with the reason."""


def build(model: Any, tools: Sequence[OwnTool]) -> Agent:
    own = [as_tool(requires_confirmation=tool.is_gated)(tool.write()) for tool in tools]
    return Agent(model=model, tools=own, add_history_to_context=True, num_history_runs=100, telemetry=False)


def test_both_ways_agree(approvals: Approvals) -> None:
    """Their journals say the same, and the checks find the same."""
    compared = compare(approvals, AGENT, build, FEW)

    assert {} == compared.differences
    assert set(FEW) == compared.played


@pytest.mark.slow
def test_both_ways_agree_in_all_stories(approvals: Approvals) -> None:
    """In every story of the catalogue that needs nothing but one agent with tools."""
    compared = compare(approvals, AGENT, build, find_all())

    assert DIFFERENT.keys() == compared.differing, compared.differences
    assert 100 <= len(compared.played)
