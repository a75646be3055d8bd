"""Drawn stories of an agent of Strands whose tools take choices, objects and lists: nothing is found."""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry

from pytest_approvals import Approvals
from tests.own_agents.ordering import order, pay, quote


class AskFirst(HookProvider):
    """Asks in the words of the application before an order and before a payment."""

    def register_hooks(self, registry: HookRegistry, **_: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        name, arguments = event.tool_use["name"], event.tool_use["input"]
        if name != "quote" and event.interrupt(f"may-{name}", reason=arguments) != "go":
            event.cancel_tool = "The user has not allowed it."


def build(model: Any) -> Agent:
    return Agent(model=model, tools=[tool(order), tool(quote), tool(pay)], hooks=[AskFirst()], callback_handler=None)


@pytest.mark.parametrize("serialize", ["none", "json", "copy"])
def test_drawn_orders(approvals: Approvals, serialize: Any) -> None:
    """Arguments are drawn by the JSON Schema that the framework makes of the functions."""
    answers = {"approve": "go", "reject": "stop"}
    approvals.explore(build, stories=15, gated=["order", "pay"], answers=answers, serialize=serialize)
