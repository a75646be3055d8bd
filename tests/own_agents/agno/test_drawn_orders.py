"""Drawn stories of an agent of Agno whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.tools import tool

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, quote


async def pay(amount: int, memo: Literal["rent", "a gift"] | None = None) -> str:
    """Pays an amount."""
    return f"paid {amount}, {memo}"


def build(model: Any) -> Agent:
    gated = tool(requires_confirmation=True)
    return Agent(model=model, tools=[gated(order), quote, gated(pay)], db=InMemoryDb())


@pytest.mark.parametrize("serialize", ["none", "copy"])
def test_drawn_orders(approvals: Approvals, serialize: Any) -> None:
    """Arguments are drawn by the JSON Schema that the framework makes of the functions.

    As JSON a paused run loses the approval, and a memo of any text may say "true": findings of their own
    (`agno-json-loses-the-approval`, `agno-text-that-says-true-becomes-a-boolean`).
    """
    approvals.explore(build, stories=15, serialize=serialize)
