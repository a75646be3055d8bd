"""Tools as the documentation of Pydantic AI writes them: models, media, toolsets that a function gives, hidden tools.

https://ai.pydantic.dev/tools-advanced/, https://ai.pydantic.dev/toolsets/#dynamically-building-a-toolset
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from typing import Any

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import (
    Agent,
    BinaryContent,
    DeferredToolRequests,
    FunctionToolset,
    ModelRetry,
    RunContext,
    ToolDefinition,
    ToolReturn,
)
from pydantic_ai.capabilities import PrepareTools

from pytest_approvals import (
    Approvals,
    CheckFailed,
    approve,
    approve_all,
    call,
    calls,
    decide,
    edit,
    reject,
    reject_all,
    say,
    send,
)
from pytest_approvals.errors import UnknownName


class Currency(Enum):
    EUR = "eur"
    USD = "usd"


class Address(BaseModel):
    street: str
    city: str = "Bern"


class Order(BaseModel):
    """An order."""

    sku: str = Field(min_length=3)
    ship_to: Address


class Answer(BaseModel):
    text: str
    risk: int = Field(ge=0, le=10)


@dataclass
class Shop:
    orders: list[Order] = field(default_factory=list)
    wiped: list[str] = field(default_factory=list)
    refunds: list[int] = field(default_factory=list)


@pytest.fixture
def shop() -> Shop:
    return Shop()


def build(model: Any) -> Agent[Shop, Any]:
    agent: Agent[Shop, Any] = Agent(model, deps_type=Shop, output_type=[Answer, DeferredToolRequests], retries=2)

    @agent.tool(requires_approval=True)
    def place_order(ctx: RunContext[Shop], order: Order, currency: Currency = Currency.EUR) -> Order:
        ctx.deps.orders.append(order)
        return order

    @agent.tool(requires_approval=True)
    def quick_order(ctx: RunContext[Shop], order: Order) -> Order:
        ctx.deps.orders.append(order)
        return order

    @agent.tool(requires_approval=True)
    def refund(ctx: RunContext[Shop], number: int) -> dict[str, int]:
        if number < 100:
            raise ModelRetry("numbers have three digits")
        ctx.deps.refunds.append(number)
        return {"number": number}

    @agent.tool_plain
    def photo(sku: str) -> ToolReturn:
        picture = BinaryContent(b"\x89PNG", media_type="image/png")
        return ToolReturn(return_value="a photo", content=["It shows:", picture], metadata={"sku": sku})

    return agent


ORDER = {"sku": "abc", "ship_to": {"street": "Long Street 1"}}
DONE = calls("final_result", text="Done.", risk=1)


@pytest.mark.parametrize("stream", [False, True])
def test_models_and_media_of_tools(approvals: Approvals, shop: Shop, serialize_mode: str, stream: bool) -> None:
    """What a tool shows the model in the name of the caller is no finding, also after the messages were stored."""
    approvals.run(
        build,
        "Order",
        model=[calls("photo", sku="abc"), calls("place_order", order=ORDER, currency="usd"), DONE],
        run_options={"deps": shop},
        gated={"place_order"},
        oracle=approve_all(),
        stream=stream,
    )

    assert ["Bern"] == [order.ship_to.city for order in shop.orders]


@pytest.mark.parametrize("stream", [False, True])
def test_a_retry_is_another_call(approvals: Approvals, shop: Shop, serialize_mode: str, stream: bool) -> None:
    """`ModelRetry` of an approved call asks the model for another one, about which the person is asked again."""
    run = approvals.run(
        build,
        "Refund",
        model=[calls("refund", number=1), calls("refund", number=123), DONE],
        run_options={"deps": shop},
        gated={"refund"},
        oracle=approve_all(),
        stream=stream,
    )

    assert [123] == shop.refunds
    assert 2 == len(run.requests)


@pytest.mark.parametrize("arguments", [ORDER, {"order": ORDER}])
def test_the_one_model_of_a_tool(approvals: Approvals, shop: Shop, arguments: dict[str, Any]) -> None:
    """Its fields are the arguments, as the schema says, or it is one by its name, which the framework takes, too."""
    run = approvals.run(
        build,
        "Order",
        model=[calls(call("quick_order", arguments)), DONE],
        run_options={"deps": shop},
        gated={"quick_order"},
        oracle=approve_all(),
    )

    assert arguments.keys() == run.calls["quick_order"].executions[0].arguments.keys()


def give_admin_tools(*, gated: bool = True, present: bool = True) -> Any:
    def give(ctx: RunContext[Shop]) -> Any:
        tools: FunctionToolset[Shop] = FunctionToolset()

        @tools.tool
        def wipe(ctx: RunContext[Shop], table: str) -> str:
            ctx.deps.wiped.append(table)
            return "wiped"

        if not present:
            return None
        asking = tools.approval_required(lambda ctx, tool, arguments: arguments["table"] != "tmp") if gated else tools
        return asking.prefixed("admin")

    return give


def build_admin(model: Any, **options: Any) -> Agent[Shop, Any]:
    agent = build(model)
    agent.toolset(give_admin_tools(**options))
    return agent


GATES = {"admin_wipe": lambda arguments: arguments["table"] != "tmp"}


@pytest.mark.parametrize("stream", [False, True])
def test_tools_that_a_function_gives(approvals: Approvals, shop: Shop, serialize_mode: str, stream: bool) -> None:
    """They can be gated by name, though nobody knows of them before the agent runs."""
    both = calls(call("admin_wipe", table="users"), call("admin_wipe", table="mails"), call("admin_wipe", table="tmp"))
    run = approvals.run(
        build_admin,
        model=[both, DONE],
        run_options={"deps": shop},
        gated=GATES,
        caller=[send("Wipe"), decide(reject("c1"), approve("c2"))],
        stream=stream,
    )

    assert ["tmp", "mails"] == shop.wiped
    assert [[], ["mails"], ["tmp"]] == [
        [execution.arguments["table"] for execution in made.executions] for made in run.calls["admin_wipe"].made
    ]


def test_an_edit_reaches_such_a_tool(approvals: Approvals, shop: Shop) -> None:
    """As any other one."""
    approvals.run(
        build_admin,
        model=[calls("admin_wipe", table="users"), DONE],
        run_options={"deps": shop},
        gated=GATES,
        caller=[send("Wipe"), edit("c1", table="old")],
    )

    assert ["old"] == shop.wiped


def test_a_forgotten_gate_of_such_a_tool_is_found(approvals: Approvals, shop: Shop) -> None:
    """By the name in the test, and with the line of the factory, because the tool has none before it is there."""
    with pytest.raises(CheckFailed, match="approval-before-execution") as failed:
        approvals.run(
            partial(build_admin, gated=False),
            "Wipe",
            model=[calls("admin_wipe", table="users"), DONE],
            run_options={"deps": shop},
            gated=GATES,
        )

    assert "it starts with no decision about it" in str(failed.value)
    assert "test_idioms.py" in str(failed.value.__notes__)


def test_a_tool_that_is_never_there_is_unknown(approvals: Approvals, shop: Shop) -> None:
    """That the script calls it and the test gates it does not make it one."""
    with pytest.raises(UnknownName, match="Unknown tool 'admin_wipe' in gated="):
        approvals.run(
            partial(build_admin, present=False),
            "Wipe",
            model=[calls("admin_wipe", table="users"), DONE],
            run_options={"deps": shop},
            gated=GATES,
        )


def test_a_forgotten_gate_of_a_server_is_found(approvals: Approvals, mcp_server: Any) -> None:
    """A tool of an MCP server is known only when the agent is connected."""
    from pydantic_ai.mcp import MCPToolset

    from pytest_approvals import returns, tool

    bank = mcp_server("bank", tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}))
    with pytest.raises(CheckFailed, match="approval-before-execution"):
        approvals.run(
            lambda model: Agent(model, toolsets=[MCPToolset(bank.url)]),
            "Pay 5",
            model=[calls("pay", amount=5), say("Paid.")],
            gated={"pay"},
        )


def build_hiding(model: Any) -> Agent[None, str]:
    async def hide(ctx: RunContext[None], tools: list[ToolDefinition]) -> list[ToolDefinition]:
        return [tool for tool in tools if tool.name != "secret"]

    agent = Agent(model, capabilities=[PrepareTools(hide)])

    @agent.tool_plain
    def secret() -> str:
        return "42"

    @agent.tool_plain
    def look() -> str:
        return "seen"

    return agent


def test_a_hidden_tool_does_not_run(approvals: Approvals) -> None:
    """That the framework refuses a call of it is right, and a model that makes one is scripted on purpose."""
    run = approvals.run(build_hiding, "Look", model=[calls("secret"), calls("look"), say("Seen.")])

    assert [] == run.calls["secret"].executions
    assert "seen" == run.calls["look"].executions[0].result


def test_drawn_stories_leave_a_hidden_tool_alone(approvals: Approvals) -> None:
    """A story calls the tools that the model is offered."""
    approvals.explore(build_hiding, stories=5)

    assert all(not run.calls["secret"].made for run in approvals.runs)


def test_a_rejected_order_of_a_model_is_not_placed(approvals: Approvals, shop: Shop, serialize_mode: str) -> None:
    """Nor is anything else."""
    approvals.run(
        build,
        "Order",
        model=[calls("place_order", order=ORDER), DONE],
        run_options={"deps": shop},
        gated={"place_order"},
        oracle=reject_all("no"),
    )

    assert [] == shop.orders
