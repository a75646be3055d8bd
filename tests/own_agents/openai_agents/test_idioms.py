"""Tools and hand-offs as the documentation of the OpenAI Agents SDK writes them, beside a gate.

https://openai.github.io/openai-agents-python/tools/, https://openai.github.io/openai-agents-python/handoffs/
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    RunConfig,
    RunContextWrapper,
    StopAtTools,
    ToolOutputImage,
    function_tool,
    handoff,
)
from agents.extensions import handoff_filters
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext
from pydantic import BaseModel

from pytest_approvals import (
    Approvals,
    CheckFailed,
    approve,
    approve_all,
    call,
    calls,
    decide,
    reject,
    returns,
    say,
    send,
    tool,
)


class Item(BaseModel):
    sku: str
    quantity: int = 1


class Reason(BaseModel):
    reason: str


@dataclass
class Shop:
    bought: list[tuple[str, int]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


@pytest.fixture
def shop() -> Shop:
    return Shop()


@function_tool(needs_approval=True, strict_mode=False)
async def buy(ctx: RunContextWrapper[Shop], item: Item, notes: dict[str, str] | None = None) -> Item:
    """Buys an item."""
    ctx.context.bought.append((item.sku, item.quantity))
    return item


@function_tool(needs_approval=True, name_override="cancel_order")
def cancel(ctx: ToolContext[Shop], order: int) -> dict[str, Any]:
    """Cancels an order."""
    ctx.context.cancelled.append(order)
    return {"order": order, "call": ctx.tool_call_id}


@function_tool
def photo(sku: str) -> ToolOutputImage:
    """Shows an item."""
    return ToolOutputImage(image_url="data:image/png;base64,AA==")


async def invoke(ctx: ToolContext[Any], arguments: str) -> str:
    return f"raw {arguments}"


RAW = FunctionTool(
    name="raw",
    description="A tool that reads its arguments itself.",
    params_json_schema={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
    on_invoke_tool=invoke,
    needs_approval=True,
    strict_json_schema=False,
)


class Logging(AgentHooks[Shop]):
    async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
        context.context.log.append(tool.name)


def build(model: Any, **options: Any) -> Agent[Shop]:
    return Agent(name="shop", model=model, tools=[buy, cancel, photo, RAW], hooks=Logging(), **options)


GATES = {"buy", "cancel_order", "raw"}


@pytest.mark.parametrize("stream", [False, True])
def test_all_kinds_of_tools(approvals: Approvals, shop: Shop, serialize_mode: str, stream: bool) -> None:
    """Each call runs once; what a model of an argument has defaults for may be left out."""
    run = approvals.run(
        build,
        "Go",
        model=[calls("photo", sku="a"), calls("buy", item={"sku": "a"}), calls("raw", a="b"), say("Done.")],
        run_options={"context": shop},
        gated=GATES,
        oracle=approve_all(),
        stream=stream,
    )

    assert [("a", 1)] == shop.bought
    assert 'raw {"a": "b"}' == run.calls["raw"].executions[0].result


@pytest.mark.parametrize("stream", [False, True])
def test_each_call_has_its_own_answer(approvals: Approvals, shop: Shop, serialize_mode: str, stream: bool) -> None:
    """Of two calls of one tool, too."""
    both = calls(call("cancel_order", order=1), call("cancel_order", order=2), call("buy", item={"sku": "a"}))
    approvals.run(
        build,
        model=[both, say("Done.")],
        run_options={"context": shop},
        gated=GATES,
        caller=[send("Go"), decide(reject("c1"), approve("c2"), reject("c3"))],
        stream=stream,
    )

    assert ([], [2]) == (shop.bought, shop.cancelled)


@pytest.mark.parametrize("stream", [False, True])
def test_a_tool_that_ends_the_run(approvals: Approvals, shop: Shop, stream: bool) -> None:
    """Its result is the output, and the model is not asked again."""
    run = approvals.run(
        lambda model: build(model, tool_use_behavior=StopAtTools(stop_at_tool_names=["cancel_order"])),
        "Cancel",
        model=[calls("cancel_order", order=7)],
        run_options={"context": shop},
        gated=GATES,
        oracle=approve_all(),
        stream=stream,
    )

    assert [7] == shop.cancelled
    assert "'order': 7" in run.output


def build_desk(model: Any) -> Agent[Shop]:
    async def note(ctx: RunContextWrapper[Shop], given: Reason) -> None:
        ctx.context.log.append(given.reason)

    billing = Agent[Shop](name="billing", model=model, tools=[cancel])
    to_billing = handoff(billing, on_handoff=note, input_type=Reason, input_filter=handoff_filters.remove_all_tools)
    return Agent(name="desk", model=model, handoffs=[to_billing], tools=[photo])


@pytest.mark.parametrize("stream", [False, True])
def test_a_hand_off_with_a_reason(approvals: Approvals, shop: Shop, serialize_mode: str, stream: bool) -> None:
    """The reason reaches the application, and a filter may leave calls out of what the other agent is told."""
    run = approvals.run(
        build_desk,
        model={
            "main": [calls("photo", sku="a"), calls("transfer_to_billing", reason="wrong bill")],
            "billing": [calls("cancel_order", order=7), say("Cancelled.")],
        },
        run_options={"context": shop},
        gated={"cancel_order"},
        caller=[send("Cancel order 7"), approve("c3")],
        stream=stream,
    )

    assert (["wrong bill"], [7]) == (shop.log, shop.cancelled)
    assert "Cancelled." == run.output


def test_a_filter_of_the_input(approvals: Approvals, shop: Shop) -> None:
    """What an application leaves out of earlier turns is its own choice."""

    def keep_five(data: CallModelData[Shop]) -> ModelInputData:
        return ModelInputData(input=data.model_data.input[-5:], instructions=data.model_data.instructions)

    approvals.run(
        build,
        model=[say("A."), say("B."), calls("cancel_order", order=7), say("Done.")],
        run_options={"context": shop, "run_config": RunConfig(call_model_input_filter=keep_five)},
        gated=GATES,
        caller=[send("First"), send("Second"), send("Cancel order 7"), approve("c1")],
    )

    assert [7] == shop.cancelled


def test_a_filter_that_drops_what_a_call_is_about_is_found(approvals: Approvals, shop: Shop) -> None:
    """The message of the turn must be there when its result is."""

    def keep_two(data: CallModelData[Shop]) -> ModelInputData:
        return ModelInputData(input=data.model_data.input[-2:], instructions=data.model_data.instructions)

    with pytest.raises(CheckFailed, match="(?s)caller-messages-kept: .*'Cancel' is not in the model's input"):
        approvals.run(
            build,
            "Cancel",
            model=[calls("cancel_order", order=7), say("Done.")],
            run_options={"context": shop, "run_config": RunConfig(call_model_input_filter=keep_two)},
            gated=GATES,
            oracle=approve_all(),
        )


@pytest.mark.parametrize("policy", ["always", "never"])
def test_the_gate_of_a_server(approvals: Approvals, mcp_server: Any, policy: str) -> None:
    """A tool of an MCP server is known when the agent is connected; a gate before it that was forgotten is found."""
    from agents.mcp import MCPServerStreamableHttp

    bank = mcp_server("bank", tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}))

    async def run() -> Any:
        async with MCPServerStreamableHttp(params={"url": bank.url}, require_approval=policy) as server:
            return await approvals.arun(
                lambda model: Agent(name="clerk", model=model, mcp_servers=[server]),
                "Pay 5",
                model=[calls("pay", amount=5), say("Paid.")],
                gated={"pay"},
                oracle=approve_all(),
                unused=policy == "never",
            )

    import asyncio

    if policy == "always":
        assert "Paid." == asyncio.run(run()).output
        return
    with pytest.raises(CheckFailed, match="approval-before-execution"):
        asyncio.run(run())
