"""Agents of the OpenAI Agents SDK that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, function_tool

from pytest_approvals import Approvals
from tests.attached_agents import FEW, NEVER_ASKED, OWN_FAILURE, OwnTool, compare, find_all

AGENT = "openai_agents"

DIFFERENT = {
    "decisions/approval-of-what-was-never-asked": NEVER_ASKED,
    "hangups/between-two-approved-calls": OWN_FAILURE,
    "hangups/while-an-approved-call-runs": OWN_FAILURE,
    "hangups/while-an-approved-call-runs-and-approves-again": OWN_FAILURE,
    "hangups/while-an-approved-call-runs-and-goes-on": OWN_FAILURE,
    "hangups/while-another-request-is-open": OWN_FAILURE,
}
"""The stories that differ, with the reason."""


def build(model: Any, tools: Sequence[OwnTool]) -> Agent[Any]:
    return Agent(name="desk", model=model, tools=[build_tool(tool) for tool in tools])


def build_tool(tool: OwnTool) -> Any:
    async def is_risky(ctx: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        return tool.needs_approval(arguments)

    needs_approval = is_risky if tool.is_conditional else tool.is_gated
    return function_tool(needs_approval=needs_approval, strict_mode=False)(tool.write())


def test_both_ways_agree(approvals: Approvals) -> None:
    """Their journals say the same, and the checks find the same; the SDK has no edits."""
    compared = compare(approvals, AGENT, build, FEW)

    assert {} == compared.differences
    assert set(FEW) - {"decisions/edited-beside-rejected-and-approved"} == compared.played


@pytest.mark.slow
def test_both_ways_agree_in_all_stories(approvals: Approvals) -> None:
    """In every story of the catalogue that needs nothing but one agent with tools."""
    compared = compare(approvals, AGENT, build, find_all())

    assert DIFFERENT.keys() == compared.differing, compared.differences
    assert 100 <= len(compared.played)
