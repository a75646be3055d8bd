"""Idioms of Strands' documentation for tools: content as a result, models among the arguments, methods."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel
from strands import Agent, ToolContext, tool
from strands.hooks import BeforeToolCallEvent

from pytest_approvals import Approvals, approve_all, calls, say


class Line(BaseModel):
    """A line of an order."""

    sku: str
    quantity: int = 1


class Shop:
    """Tools with a state of their own."""

    def __init__(self) -> None:
        self.shipped: list[Line] = []

    @tool
    def get_order(self, order: str) -> dict[str, Any]:
        """Looks an order up."""
        return {"status": "success", "content": [{"text": f"order {order}"}, {"json": {"total": 80}}]}

    @tool(context=True)
    async def ship(self, lines: list[Line], tool_context: ToolContext, express: bool = False) -> str:
        """Ships lines."""
        tool_context.agent.state.set("shipped", len(lines))
        self.shipped += lines
        return f"shipped {len(lines)}"


def ask(event: BeforeToolCallEvent) -> None:
    if event.tool_use["name"] == "ship" and event.interrupt("ship", reason=event.tool_use["input"]) != "y":
        event.cancel_tool = "no"


def test_content_is_a_result_and_models_are_arguments(approvals: Approvals) -> None:
    """What the framework adds to both is none of what was approved or returned."""

    def build(model: Any) -> Agent:
        shop = Shop()
        return Agent(model=model, tools=[shop.get_order, shop.ship], hooks=[ask], callback_handler=None)

    model = [calls("get_order", order="A"), calls("ship", lines=[{"sku": "x"}, {"sku": "y"}]), say("Shipped.")]
    run = approvals.run(build, "Ship A", model=model, oracle=approve_all(), gated={"ship"})

    assert "order A{'total': 80}" == run.calls["get_order"].executions[0].result
    assert {"lines": [{"sku": "x"}, {"sku": "y"}], "express": False} == run.calls["ship"].executions[0].arguments
