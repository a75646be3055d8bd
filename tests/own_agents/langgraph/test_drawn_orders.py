"""Drawn stories of an agent of LangChain whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, pay, quote


def build(model: Any) -> Any:
    gates = HumanInTheLoopMiddleware(interrupt_on={"order": True, "pay": True})
    tools = [tool(order), tool(quote), tool(pay)]
    return create_agent(model, tools, middleware=[gates], checkpointer=InMemorySaver())


@pytest.mark.parametrize("serialize", ["none", "copy"])
def test_drawn_orders(approvals: Approvals, serialize: Any) -> None:
    """Arguments are drawn by the JSON Schema that the framework makes of the functions."""
    approvals.explore(build, stories=15, serialize=serialize)
