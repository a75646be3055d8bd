"""Agents of AutoGen that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool

from pytest_approvals import Approvals
from tests.attached_agents import FEW, OwnTool, compare, find_all

AGENT = "autogen"

STORIES = (*FEW, "failures/model-fails-after-a-rejection", "failures/required-argument-is-missing")


def build(client: Any, tools: Sequence[OwnTool]) -> AssistantAgent:
    own = [
        FunctionTool(tool.write(), description=tool.spec.description or f"Runs {tool.name}.", name=tool.name)
        for tool in tools
    ]
    return AssistantAgent(
        "main", client, tools=own, system_message=None, model_client_stream=True, max_tool_iterations=20
    )


def test_both_ways_agree(approvals: Approvals) -> None:
    """Their journals say the same, and the checks find the same."""
    compared = compare(approvals, AGENT, build, STORIES)

    assert {} == compared.differences
    assert set(STORIES) == compared.played


@pytest.mark.slow
# A team that was cancelled does not return, so that some stories last as long as a run may.
@pytest.mark.timeout(600)
def test_both_ways_agree_in_all_stories(approvals: Approvals) -> None:
    """In every story of the catalogue that needs nothing but one agent with tools."""
    compared = compare(approvals, AGENT, build, find_all())

    assert {} == compared.differences
    assert 100 <= len(compared.played)
