"""Drawn stories of an agent of Google ADK whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, pay, quote


def is_large(amount: int, memo: str | None = None) -> bool:
    return amount > 100


def build(model: Any) -> LlmAgent:
    gated, conditional = (
        FunctionTool(order, require_confirmation=True),
        FunctionTool(pay, require_confirmation=is_large),
    )
    return LlmAgent(name="shop", model=model, tools=[gated, quote, conditional])


@pytest.mark.parametrize("serialize", ["none", "json", "copy"])
def test_drawn_orders(approvals: Approvals, serialize: Any) -> None:
    """Arguments are drawn by the JSON Schema that the framework makes of the functions."""
    approvals.explore(build, stories=15, serialize=serialize)
