"""Drawn stories of an agent of the OpenAI Agents SDK whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any

import pytest
from agents import Agent, function_tool

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, pay, quote


async def is_large(context: Any, arguments: dict[str, Any], call_id: str) -> bool:
    return bool(arguments["amount"] > 100)


def build(model: Any) -> Agent[None]:
    gated, conditional = function_tool(needs_approval=True), function_tool(needs_approval=is_large)
    return Agent("shop", model=model, tools=[gated(order), function_tool(quote), conditional(pay)])


@pytest.mark.parametrize("serialize", ["none", "json"])
def test_drawn_orders(approvals: Approvals, serialize: Any) -> None:
    """Arguments are drawn by the strict JSON Schema that the framework makes of the functions."""
    approvals.explore(build, stories=15, serialize=serialize)
