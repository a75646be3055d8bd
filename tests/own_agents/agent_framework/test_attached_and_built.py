"""Agents of the Agent Framework that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from agent_framework import Agent
from agent_framework import tool as as_tool

from pytest_approvals import Approvals
from tests.attached_agents import FEW, NEVER_ASKED, OWN_FAILURE, OwnTool, compare, find_all

AGENT = "agent_framework"

DIFFERENT = {
    "decisions/approval-of-what-was-never-asked": NEVER_ASKED,
    "decisions/message-together-with-a-partial-answer": OWN_FAILURE,
    "identity/call-without-an-id": OWN_FAILURE,
}
"""The stories that differ, with the reason."""

# The framework makes an id for a call without one, and warns.
pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning")


def build(client: Any, tools: Sequence[OwnTool]) -> Agent:
    own = [as_tool(approval_mode="always_require" if tool.is_gated else None)(tool.write()) for tool in tools]
    return Agent(client=client, tools=own)


def test_both_ways_agree(approvals: Approvals) -> None:
    """Their journals say the same, and the checks find the same; the framework has no edits."""
    compared = compare(approvals, AGENT, build, FEW)

    assert {} == compared.differences
    assert set(FEW) - {"decisions/edited-beside-rejected-and-approved"} == compared.played


@pytest.mark.slow
def test_both_ways_agree_in_all_stories(approvals: Approvals) -> None:
    """In every story of the catalogue that needs nothing but one agent with tools."""
    compared = compare(approvals, AGENT, build, find_all())

    assert DIFFERENT.keys() == compared.differing, compared.differences
    assert 100 <= len(compared.played)
