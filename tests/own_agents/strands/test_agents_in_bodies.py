"""Agents of Strands that the body of a tool runs by itself are seen: their models and their tools."""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.openai import OpenAIModel

from pytest_approvals import Approvals, CheckFailed, calls, returns, say

refunded: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_refunded() -> None:
    refunded.clear()


@tool
def look_up(order: int) -> str:
    """Looks an order up."""
    return f"order {order} is old"


@tool
async def refund(order: int) -> str:
    """Refunds an order."""
    refunded.append(order)
    return f"order {order} is refunded"


@tool
def pay(order: int) -> str:
    """Pays an order."""
    return f"order {order} is paid"


def ask(event: BeforeToolCallEvent) -> None:
    if event.tool_use["name"] == "pay" and event.interrupt("pay", reason=event.tool_use["input"]) != "y":
        event.cancel_tool = "no"


def build_agent(name: str, model: Any, *tools: Any) -> Agent:
    return Agent(model=model, name=name, tools=list(tools), callback_handler=None, hooks=[ask])


def build_desk(model: Any) -> Agent:
    @tool
    async def audit(order: int) -> str:
        """Audits an order."""
        auditor = build_agent("auditor", model, look_up, refund)
        return str(await auditor.invoke_async(f"Audit order {order}")).strip()

    return build_agent("desk", model, audit, refund, pay)


def build_blocking_desk(model: Any) -> Agent:
    @tool
    def audit(order: int) -> str:
        """Audits an order, as the guide "Agents as tools" does."""
        return str(build_agent("auditor", model, look_up, refund)(f"Audit order {order}")).strip()

    return build_agent("desk", model, audit, refund, pay)


def build_holding_desk(model: Any) -> Agent:
    @tool
    async def audit(order: int) -> str:
        """Audits an order, and holds the event loop meanwhile."""
        return str(build_agent("auditor", model, look_up, refund)(f"Audit order {order}")).strip()

    return build_agent("desk", model, audit)


SHARED = build_agent("auditor", OpenAIModel(client_args={"api_key": "none"}, model_id="any"), look_up)


def build_desk_with_shared_auditor(model: Any) -> Agent:
    @tool
    def audit(order: int) -> str:
        """Audits an order."""
        return str(SHARED(f"Audit order {order}")).strip()

    return build_agent("desk", model, audit, pay)


def build_deep_desk(model: Any) -> Agent:
    @tool
    def check(order: int) -> str:
        """Checks an order."""
        return str(build_agent("clerk", model, look_up)("Check")).strip()

    @tool
    async def audit(order: int) -> str:
        """Audits an order."""
        events = [event async for event in build_agent("auditor", model, check).stream_async("Audit")]
        return str(events[-1]["result"]).strip()

    return build_agent("desk", model, audit)


BY_NAME = {
    "main": [calls("audit", order=42), say("Done.")],
    "auditor": [calls("look_up", order=42), say("No objection.")],
}
IN_ORDER = [calls("audit", order=42), calls("look_up", order=42), say("No objection."), say("Done.")]


@pytest.mark.parametrize("build", [build_desk, build_blocking_desk, build_holding_desk])
@pytest.mark.parametrize("model", [BY_NAME, IN_ORDER], ids=["by name", "in order"])
@pytest.mark.parametrize("stream", [False, True])
def test_an_agent_in_a_body_is_seen(approvals: Approvals, build: Any, model: Any, stream: bool) -> None:
    """Its replies come from the script, and the runs of its tools are recorded."""
    run = approvals.run(build, "Audit", model=model, stream=stream)

    assert ["order 42 is old"] == [one.result for one in run.calls["look_up"].executions]
    assert ["No objection."] == [one.result for one in run.calls["audit"].executions]
    assert "Done." == run.output


def test_agents_two_deep_are_seen(approvals: Approvals) -> None:
    """A body of an agent in a body may run a third one."""
    model = {
        "main": [calls("audit", order=42), say("Done.")],
        "auditor": [calls("check", order=42), say("Fine.")],
        "clerk": [calls("look_up", order=42), say("It is old.")],
    }
    run = approvals.run(build_deep_desk, "Audit", model=model)

    assert ["order 42 is old"] == [one.result for one in run.calls["look_up"].executions]
    assert ["It is old."] == [one.result for one in run.calls["check"].executions]
    assert ["Fine."] == [one.result for one in run.calls["audit"].executions]


FORGOTTEN = {
    "main": [calls("audit", order=42), say("Done.")],
    "auditor": [calls("refund", order=42), say("Refunded.")],
}


@pytest.mark.parametrize("build", [build_desk, build_blocking_desk, build_holding_desk])
def test_a_forgotten_gate_inside_is_found(approvals: Approvals, build: Any) -> None:
    """A call of a tool that needs approval is found where nobody asks about it."""
    with pytest.raises(CheckFailed, match="approval-before-execution") as failed:
        approvals.run(build, "Audit", model=FORGOTTEN, gated={"refund"})

    assert "c1/c2 refund(order=42) starts" in str(failed.value)


def test_a_stub_inside_is_not_run(approvals: Approvals) -> None:
    """A stub replaces the tool of an agent in a body, too."""
    run = approvals.run(build_desk, "Audit", model=FORGOTTEN, tools={"refund": returns("ok")}, gated=set())

    assert [] == refunded
    assert ["ok"] == [one.result for one in run.calls["refund"].executions]


def test_nothing_stays_replaced(approvals: Approvals) -> None:
    """After the run, agents run as they did before; one that lives as long as its module is as it was."""
    before = dict(vars(Agent)), (SHARED.model, dict(SHARED.tool_registry.registry))
    approvals.run(build_desk_with_shared_auditor, "Audit", model=BY_NAME)

    assert before == (dict(vars(Agent)), (SHARED.model, dict(SHARED.tool_registry.registry)))


@pytest.mark.parametrize("serialize", ["none", "json"])
def test_a_body_after_a_restart_is_seen(approvals: Approvals, serialize: Any) -> None:
    """Also with an agent that both sessions share."""
    model = {**BY_NAME, "main": [calls("pay", order=42), calls("audit", order=42), say("Done.")]}
    run = approvals.run(build_desk_with_shared_auditor, "Pay", model=model, serialize=serialize)

    assert ["order 42 is old"] == [one.result for one in run.calls["look_up"].executions]


def test_a_body_in_a_fresh_process_is_seen(approvals: Approvals) -> None:
    """Its requests are sent to this process."""
    model = {**BY_NAME, "main": [calls("pay", order=42), calls("audit", order=42), say("Done.")]}
    run = approvals.run(build_blocking_desk, "Pay", model=model, serialize="json", resume="fresh")

    assert ["order 42 is old"] == [one.result for one in run.calls["look_up"].executions]
