"""A clerk for expenses in Google ADK, after https://google.github.io/adk-docs/tools-custom/confirmation/.

`require_confirmation` is True for one tool and a function of the arguments for another.
"""

from __future__ import annotations

from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools import FunctionTool, ToolContext

from pytest_approvals import Approvals, approve, approve_all, calls, reject, reject_all, say, send, when

paid: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_paid() -> None:
    paid.clear()


def reimburse(amount: int, tool_context: ToolContext) -> dict[str, Any]:
    """Reimburses an expense."""
    paid.append(amount)
    return {"status": "ok", "paid": amount}


def close_account(employee: str) -> str:
    """Closes the account of an employee."""
    return f"closed {employee}"


async def find_receipt(amount: int) -> str:
    """Finds a receipt."""
    return f"receipt of {amount}"


async def is_large(amount: int, tool_context: ToolContext) -> bool:
    return amount > 1000


def build(model: Any) -> LlmAgent:
    return LlmAgent(
        name="clerk",
        model=model,
        instruction="Reimburse expenses.",
        tools=[
            find_receipt,
            FunctionTool(reimburse, require_confirmation=is_large),
            FunctionTool(close_account, require_confirmation=True),
        ],
    )


GATES = {"reimburse": when("amount", greater_than=1000), "close_account": "always"}
LARGE = [calls("find_receipt", amount=5000), calls("reimburse", amount=5000), say("Done.")]


def test_an_approved_expense_is_paid_once(approvals: Approvals) -> None:
    run = approvals.run(build, "Pay 5000", model=LARGE, oracle=approve_all(), gated=GATES)

    assert [5000] == paid
    assert ["reimburse"] == [request.tool for request in run.requests]


def test_a_rejected_expense_is_not_paid(approvals: Approvals) -> None:
    approvals.run(build, "Pay 5000", model=LARGE, oracle=reject_all(), gated=GATES)

    assert [] == paid


@pytest.mark.parametrize("stream", [False, True])
def test_small_expenses_are_not_asked_about(approvals: Approvals, stream: bool) -> None:
    run = approvals.run(build, "Pay 5", model=[calls("reimburse", amount=5), say("Done.")], gated=GATES, stream=stream)

    assert [] == run.requests
    assert [5] == paid


def test_what_the_framework_asks_about_needs_no_description(approvals: Approvals) -> None:
    run = approvals.run(
        build,
        model=[calls("close_account", employee="Ann"), say("Closed.")],
        caller=[send("Close Ann's"), approve("c1")],
    )

    assert ["closed Ann"] == [one.result for one in run.calls["close_account"].executions]


def test_each_call_has_its_answer(approvals: Approvals) -> None:
    model = [calls("reimburse", amount=2000), calls("reimburse", amount=3000), say("One.")]
    approvals.run(build, model=model, caller=[send("Pay both"), reject("c1"), approve("c2")], gated=GATES)

    assert [3000] == paid


@pytest.mark.parametrize("serialize", ["copy", "json", "native.sqlite"])
def test_an_approval_survives_a_save(approvals: Approvals, serialize: Any) -> None:
    approvals.run(build, "Pay 5000", model=LARGE, oracle=approve_all(), gated=GATES, serialize=serialize)

    assert [5000] == paid
