"""Drawn stories of an agent of Pydantic AI whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, pay, quote


def build(model: Any) -> Agent[None, Any]:
    agent = Agent(model, output_type=[str, DeferredToolRequests])
    agent.tool_plain(requires_approval=True)(order)
    agent.tool_plain(quote)
    agent.tool_plain(requires_approval=True)(pay)
    return agent


@pytest.mark.parametrize("serialize", ["none", "json", "copy"])
def test_drawn_orders(approvals: Approvals, serialize: Any) -> None:
    """Arguments are drawn by the JSON Schema that the framework makes of the functions."""
    approvals.explore(build, stories=15, serialize=serialize)
