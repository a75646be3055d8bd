"""Agents of Pydantic AI that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, RunContext, ToolDefinition

from pytest_approvals import Approvals
from tests.attached_agents import FEW, NEVER_ASKED, OWN_FAILURE, OwnTool, compare, find_all

AGENT = "pydantic_ai"

DIFFERENT = {
    "decisions/approval-of-what-was-never-asked": NEVER_ASKED,
    "identity/same-id-gated-and-ungated": OWN_FAILURE,
}
"""The stories that differ, with the reason."""


def build(model: Any, tools: Sequence[OwnTool]) -> Agent[None, Any]:
    conditional = {tool.name: tool for tool in tools if tool.is_conditional}

    def is_risky(ctx: RunContext[None], definition: ToolDefinition, arguments: dict[str, Any]) -> bool:
        return conditional[definition.name].needs_approval(arguments)

    risky: FunctionToolset[None] = FunctionToolset([tool.write() for tool in conditional.values()])
    agent = Agent(
        model,
        toolsets=[risky.approval_required(is_risky)],
        output_type=[str, DeferredToolRequests],
    )
    for tool in tools:
        if not tool.is_conditional:
            agent.tool_plain(requires_approval=tool.is_gated)(tool.write())
    return agent


def test_both_ways_agree(approvals: Approvals) -> None:
    """Their journals say the same, and the checks find the same."""
    compared = compare(approvals, AGENT, build, FEW)

    assert {} == compared.differences
    assert set(FEW) == compared.played


def test_a_forgotten_gate_is_a_difference(approvals: Approvals) -> None:
    """The person's agent runs what the built one asks about."""

    def build_open(model: Any, tools: Sequence[OwnTool]) -> Agent[None, Any]:
        return build(model, [OwnTool(replace(tool.spec, approval="never"), tool.acts) for tool in tools])

    assert {"basics/approved"} == compare(approvals, AGENT, build_open, ["basics/approved"]).differing


@pytest.mark.slow
def test_both_ways_agree_in_all_stories(approvals: Approvals) -> None:
    """In every story of the catalogue that needs nothing but one agent with tools."""
    compared = compare(approvals, AGENT, build, find_all())

    assert DIFFERENT.keys() == compared.differing, compared.differences
    assert 100 <= len(compared.played)
