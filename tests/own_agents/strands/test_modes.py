"""What a user's own agent of Strands can do, and how the rest is refused."""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent

from pytest_approvals import Approvals, approve_all, calls, say
from pytest_approvals.errors import UsageError

paid: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


@tool
def pay(amount: int) -> str:
    """Pays an amount."""
    paid.append(amount)
    return f"paid {amount}"


def ask(event: BeforeToolCallEvent) -> None:
    if event.interrupt("pay", reason=event.tool_use["input"]) != "y":
        event.cancel_tool = "no"


def build(model: Any) -> Agent:
    return Agent(model=model, tools=[pay], hooks=[ask], callback_handler=None)


@pytest.mark.parametrize("mode", ["native.files", "native.snapshots"])
def test_a_store_of_the_adapter_is_refused(approvals: Approvals, mode: Any) -> None:
    """The message says why, and lists the modes that work."""
    with pytest.raises(UsageError, match=r"gets its session manager when it is made.*it can do none, copy, json$"):
        approvals.run(build, "Pay 5", model=[calls("pay", amount=5), say("Paid.")], serialize=mode)


@pytest.mark.parametrize("serialize_mode", ["none", "copy", "json"])
def test_modes_of_the_fixture_take_effect(approvals: Approvals, serialize_mode: str) -> None:
    """In each of them the approval is kept."""
    run = approvals.run(build, "Pay 5", model=[calls("pay", amount=5), say("Paid.")], oracle=approve_all())

    assert serialize_mode == run.variant.serialize
    assert [5] == paid
