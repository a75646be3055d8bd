"""Agents of LangGraph that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import StructuredTool
from langgraph.checkpoint.memory import InMemorySaver

from pytest_approvals import Approvals
from tests.attached_agents import FEW, OWN_FAILURE, OwnTool, compare, find_all

AGENT = "langgraph"

DIFFERENT = {
    "decisions/malformed-beside-an-approval": OWN_FAILURE,
    "decisions/malformed-list": OWN_FAILURE,
    "decisions/malformed-mapping": OWN_FAILURE,
    "decisions/malformed-nothing": OWN_FAILURE,
    "decisions/malformed-word-that-means-no": OWN_FAILURE,
}
"""The stories that differ, with the reason."""

AS_READY = {
    "failures/free-call-does-not-fit-beside-a-gated-call",
    "failures/ungated-sibling-raises",
    "failures/unknown-tool-beside-a-gated-call",
}
"""The stories that may differ: a stream shows the results of parallel calls in the order in which they are ready."""


def build(model: Any, tools: Sequence[OwnTool]) -> Any:
    gates = {tool.name: write_gate(tool) for tool in tools if tool.is_gated or tool.is_conditional}
    own = [StructuredTool.from_function(coroutine=tool.write()) for tool in tools]
    return create_agent(
        model, own, middleware=[HumanInTheLoopMiddleware(interrupt_on=gates)], checkpointer=InMemorySaver()
    )


def write_gate(tool: OwnTool) -> Any:
    def when(request: Any) -> bool:
        return tool.needs_approval(request.tool_call["args"])

    return {"allowed_decisions": ["approve", "edit", "reject"], "when": when}


def test_both_ways_agree(approvals: Approvals) -> None:
    """Their journals say the same, and the checks find the same."""
    names = {*FEW, "identity/id-reused-in-a-later-reply"}
    compared = compare(approvals, AGENT, build, sorted(names))

    assert {} == compared.differences
    assert names == compared.played


@pytest.mark.slow
def test_both_ways_agree_in_all_stories(approvals: Approvals) -> None:
    """In every story of the catalogue that needs nothing but one agent with tools."""
    compared = compare(approvals, AGENT, build, find_all())

    assert DIFFERENT.keys() == compared.differing - AS_READY, compared.differences
    assert 100 <= len(compared.played)
