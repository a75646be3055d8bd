"""Agents of the Agent Framework that the body of a tool runs by itself are seen: their models and their tools."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_framework import Agent, tool

from pytest_approvals import Approvals, CheckFailed, calls, returns, say

refunded: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_refunded() -> None:
    refunded.clear()


def look_up(order: int) -> str:
    """Looks an order up."""
    return f"order {order} is old"


async def refund(order: int) -> str:
    """Refunds an order."""
    refunded.append(order)
    return f"order {order} is refunded"


@tool(approval_mode="always_require")
def pay(order: int) -> str:
    """Pays an order."""
    return f"order {order} is paid"


def build_agent(name: str, client: Any, *tools: Any) -> Agent:
    return Agent(client=client, name=name, tools=list(tools))


def build_desk(client: Any) -> Agent:
    async def audit(order: int) -> str:
        """Audits an order."""
        return (await build_agent("auditor", client, look_up, refund).run(f"Audit order {order}")).text

    return build_agent("desk", client, audit, refund, pay)


def build_blocking_desk(client: Any) -> Agent:
    def audit(order: int) -> str:
        """Audits an order, in a thread with a loop of its own."""
        return asyncio.run(build_agent("auditor", client, look_up, refund).run("Audit")).text

    return build_agent("desk", client, audit, refund, pay)


SHARED = build_agent("auditor", object(), look_up)


def build_desk_with_shared_auditor(client: Any) -> Agent:
    async def audit(order: int) -> str:
        """Audits an order."""
        return (await SHARED.run("Audit")).text

    return build_agent("desk", client, audit, pay)


def build_deep_desk(client: Any) -> Agent:
    async def check(order: int) -> str:
        """Checks an order."""
        return (await build_agent("clerk", client, look_up).run("Check")).text

    async def audit(order: int) -> str:
        """Audits an order."""
        texts = [update.text async for update in build_agent("auditor", client, check).run("Audit", stream=True)]
        return "".join(texts)

    return build_agent("desk", client, audit)


BY_NAME = {
    "main": [calls("audit", order=42), say("Done.")],
    "auditor": [calls("look_up", order=42), say("No objection.")],
}
IN_ORDER = [calls("audit", order=42), calls("look_up", order=42), say("No objection."), say("Done.")]


@pytest.mark.parametrize("build", [build_desk, build_blocking_desk])
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


@pytest.mark.parametrize("build", [build_desk, build_blocking_desk])
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
    before = dict(vars(Agent)), (SHARED.client, list(SHARED.default_options["tools"]))
    approvals.run(build_desk_with_shared_auditor, "Audit", model=BY_NAME)

    assert before == (dict(vars(Agent)), (SHARED.client, list(SHARED.default_options["tools"])))


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
