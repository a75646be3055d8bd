"""A support desk of a bank in Pydantic AI, after https://ai.pydantic.dev/examples/bank-support/.

The tools are a toolset that is wrapped by `approval_required`, as in
https://ai.pydantic.dev/toolsets/#requiring-tool-approval; the answer is structured.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel, Field
from pydantic_ai import Agent, DeferredToolRequests, FunctionToolset, RunContext, ToolDefinition

from pytest_approvals import Approvals, approve, approve_all, calls, edit, reject, reject_all, say, send, when


@dataclass
class Bank:
    blocked: list[str] = field(default_factory=list)
    sent: list[tuple[str, float]] = field(default_factory=list)


class Advice(BaseModel):
    advice: str = Field(description="What the customer is told")
    risk: int = Field(ge=0, le=10)


accounts: FunctionToolset[Bank] = FunctionToolset()


@accounts.tool
def customer_balance(ctx: RunContext[Bank], include_pending: bool = False) -> str:
    """Returns the balance of the customer's account."""
    return "$123.45" if include_pending else "$100.00"


@accounts.tool
def block_card(ctx: RunContext[Bank], card: str) -> str:
    """Blocks a card."""
    ctx.deps.blocked.append(card)
    return f"card {card} is blocked"


@accounts.tool
async def transfer(ctx: RunContext[Bank], to: str, amount: float) -> str:
    """Transfers money to another account."""
    ctx.deps.sent.append((to, amount))
    return f"sent {amount} to {to}"


def is_risky(ctx: RunContext[Bank], tool: ToolDefinition, arguments: dict[str, Any]) -> bool:
    return tool.name == "block_card" or (tool.name == "transfer" and arguments["amount"] > 50)


def build(model: Any) -> Agent[Bank, Any]:
    return Agent(
        model,
        deps_type=Bank,
        toolsets=[accounts.approval_required(is_risky)],
        output_type=[str, DeferredToolRequests],
        instructions="You are a support agent of a bank.",
    )


def build_structured(model: Any) -> Agent[Bank, Any]:
    return Agent(
        model,
        deps_type=Bank,
        toolsets=[accounts.approval_required(is_risky)],
        output_type=[Advice, DeferredToolRequests],
    )


GATES = {"block_card": "always", "transfer": when("amount", greater_than=50)}
LOST = [calls("customer_balance", include_pending=True), calls("block_card", card="4711"), say("Blocked.")]


def test_an_approved_card_is_blocked(approvals: Approvals) -> None:
    bank = Bank()
    run = approvals.run(build, "I lost my card", model=LOST, run_options={"deps": bank}, oracle=approve_all())

    assert ["4711"] == bank.blocked
    assert ["block_card"] == [request.tool for request in run.requests]


def test_a_rejected_card_is_not_blocked(approvals: Approvals) -> None:
    bank = Bank()
    approvals.run(build, "I lost my card", model=LOST, run_options={"deps": bank}, oracle=reject_all("found it"))

    assert [] == bank.blocked


def test_the_amount_of_a_transfer_is_edited(approvals: Approvals) -> None:
    bank = Bank()
    approvals.run(
        build,
        model=[calls("transfer", to="Ann", amount=500.0), say("Sent 60.")],
        run_options={"deps": bank},
        caller=[send("Send Ann 500"), edit("c1", {"to": "Ann", "amount": 60.0})],
        gated=GATES,
    )

    assert [("Ann", 60.0)] == bank.sent


@pytest.mark.parametrize("stream", [False, True])
def test_small_transfers_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    bank = Bank()
    run = approvals.run(
        build,
        model=[calls("transfer", to="Ann", amount=5.0), calls("transfer", to="Bob", amount=500.0), say("Sent 5.")],
        run_options={"deps": bank},
        caller=[send("Send Ann 5 and Bob 500"), reject("c2", "too much")],
        gated=GATES,
        stream=stream,
    )

    assert [("Ann", 5.0)] == bank.sent
    assert 1 == len(run.requests)


def test_each_mode_blocks_once(approvals: Approvals, serialize_mode: str) -> None:
    bank = Bank()
    approvals.run(build, "I lost my card", model=LOST, run_options={"deps": bank}, oracle=approve_all())

    assert ["4711"] == bank.blocked


def make_options() -> dict[str, Any]:
    return {"deps": Bank()}


def test_an_approval_survives_a_restart(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        "I lost my card",
        model=LOST,
        run_options=make_options,
        oracle=approve_all(),
        serialize="json",
        resume="fresh",
    )

    assert ["card 4711 is blocked"] == [one.result for one in run.calls["block_card"].executions]


def test_a_structured_answer_ends_the_run(approvals: Approvals) -> None:
    run = approvals.run(
        build_structured,
        model=[calls("block_card", card="4711"), calls("final_result", advice="Blocked.", risk=8)],
        run_options={"deps": Bank()},
        caller=[send("I lost my card"), approve("c1")],
        gated=GATES,
    )

    assert 1 == len(run.calls["block_card"].executions)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_card_is_blocked_in_an_asynchronous_test(approvals: Approvals, anyio_backend: str) -> None:
    bank = Bank()
    await approvals.arun(build, "I lost my card", model=LOST, run_options={"deps": bank}, oracle=approve_all())

    assert ["4711"] == bank.blocked
