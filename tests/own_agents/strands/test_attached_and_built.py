"""Agents of Strands that a person wrote do in tests what those do that the adapter builds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from strands import Agent
from strands import tool as as_tool
from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry

from pytest_approvals import Approvals
from tests.attached_agents import FEW, NEVER_ASKED, OwnTool, compare, find_all

AGENT = "strands"

ONE_OF_EQUAL_IDS = "an interrupt of the person's gate has the id of its call, which two calls have"
DIFFERENT = {
    "decisions/approval-of-what-was-never-asked": NEVER_ASKED,
    "identity/same-id-for-two-tools": ONE_OF_EQUAL_IDS,
    "identity/same-id-twice-answered-one-by-one": ONE_OF_EQUAL_IDS,
    "identity/same-id-twice-first-rejected": ONE_OF_EQUAL_IDS,
    "identity/same-id-twice-in-one-reply": ONE_OF_EQUAL_IDS,
}
"""The stories that differ, with the reason."""


ANSWERS = {
    "approve": {"answer": "y"},
    "always": {"answer": "t"},
    "edit": lambda decision: {"answer": "y", "input": decision.arguments, "tool": decision.tool},
    "reject": lambda decision: {"answer": "n", "reason": decision.reason},
}
"""What the gate takes for decisions."""


class Gate(HookProvider):
    """Asks about the calls of gated tools that are not trusted."""

    def __init__(self, tools: Sequence[OwnTool]) -> None:
        self.tools = {tool.name: tool for tool in tools}

    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        tool, arguments, trusted = self.tools.get(event.tool_use["name"]), event.tool_use["input"], event.agent.state
        if tool is None or not tool.needs_approval(arguments) or trusted.get(tool.name):
            return
        response = event.interrupt("approval", reason=arguments)
        if response["answer"] == "n":
            event.cancel_tool = response["reason"] or "User denied permission to run this tool"
            return
        if response["answer"] == "t":
            trusted.set(tool.name, True)
        if response.get("input") is not None:
            name = response["tool"] or tool.name
            event.tool_use = {**event.tool_use, "name": name, "input": response["input"]}
            event.selected_tool = event.agent.tool_registry.registry[name]


def build(model: Any, tools: Sequence[OwnTool]) -> Agent:
    own = [as_tool(tool.write()) for tool in tools]
    return Agent(model=model, tools=own, hooks=[Gate(tools)], callback_handler=None)


def test_both_ways_agree(approvals: Approvals) -> None:
    """Their journals say the same, and the checks find the same."""
    compared = compare(approvals, AGENT, build, FEW, ANSWERS)

    assert {} == compared.differences
    assert set(FEW) == compared.played


@pytest.mark.slow
def test_both_ways_agree_in_all_stories(approvals: Approvals) -> None:
    """In every story of the catalogue that needs nothing but one agent with tools."""
    compared = compare(approvals, AGENT, build, find_all(), ANSWERS)

    assert DIFFERENT.keys() == compared.differing, compared.differences
    assert 100 <= len(compared.played)
