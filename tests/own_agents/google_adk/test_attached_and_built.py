"""Agents of Google ADK that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from pytest_approvals import Approvals
from tests.attached_agents import FEW, NEVER_ASKED, OWN_FAILURE, OwnTool, compare, find_all

AGENT = "google_adk"

DIFFERENT = {
    "decisions/approval-of-what-was-never-asked": NEVER_ASKED,
    "identity/same-id-for-two-tools": OWN_FAILURE,
    "identity/same-id-gated-and-ungated": OWN_FAILURE,
    "identity/same-id-twice-answered-one-by-one": OWN_FAILURE,
    "identity/same-id-twice-first-rejected": OWN_FAILURE,
    "identity/same-id-twice-in-one-reply": OWN_FAILURE,
    "state/new-message-brings-another-request": OWN_FAILURE,
}
"""The stories that differ, with the reason."""

# The framework warns of its own code.
pytestmark = pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning")


def build(model: Any, tools: Sequence[OwnTool]) -> LlmAgent:
    return LlmAgent(name="desk", model=model, tools=[build_tool(tool) for tool in tools])


def build_tool(tool: OwnTool) -> FunctionTool:
    def is_risky(**arguments: Any) -> bool:
        return tool.needs_approval(arguments)

    return FunctionTool(tool.write(), require_confirmation=is_risky if tool.is_conditional else tool.is_gated)


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
