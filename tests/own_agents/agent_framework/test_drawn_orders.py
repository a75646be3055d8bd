"""Drawn stories of an agent of Agent Framework whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any

import pytest
from agent_framework import Agent, tool

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, pay, quote


def build(model: Any) -> Agent:
    gated = [tool(order, approval_mode="always_require"), tool(pay, approval_mode="always_require")]
    return Agent(client=model, instructions="Serve.", tools=[*gated, tool(quote, approval_mode="never_require")])


@pytest.mark.parametrize("serialize", ["none", "json", "copy"])
def test_drawn_orders(approvals: Approvals, serialize: Any) -> None:
    """Arguments are drawn by the JSON Schema that the framework makes of the functions."""
    approvals.explore(build, stories=15, serialize=serialize)
