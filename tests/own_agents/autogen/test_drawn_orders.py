"""Drawn stories of an agent of AutoGen whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any

from autogen_agentchat.agents import AssistantAgent

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, pay, quote


def build(model: Any) -> AssistantAgent:
    return AssistantAgent(
        "shop", model_client=model, tools=[order, quote, pay], reflect_on_tool_use=True, max_tool_iterations=6
    )


def test_drawn_orders(approvals: Approvals) -> None:
    """Arguments are drawn by the JSON Schema that the framework makes of the functions.

    A saved state lacks the results of siblings that have run, which is a finding of its own
    (`autogen-saved-state-has-no-results-of-finished-siblings`).
    """
    approvals.explore(build, stories=15, gated=["order", "pay"])
