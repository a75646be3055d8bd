"""An agent of LangChain in tests that are coroutines, in the loops of pytest-asyncio and of anyio."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.tools import tool

from pytest_approvals import Approvals, approve_all, calls, say

done: list[Any] = []


@tool
def pay(amount: int) -> str:
    """Pays an amount."""
    done.append(amount)
    return f"paid {amount}"


def build(model: Any) -> Any:
    return create_agent(model, [pay], middleware=[HumanInTheLoopMiddleware({"pay": True})])


async def run_it(approvals: Approvals) -> None:
    done.clear()
    model = [calls("pay", amount=5), say("Paid.")]
    run = await approvals.arun(build, "Pay", model=model, oracle=approve_all())

    assert [5] == done
    assert "Paid." == run.output


@pytest.mark.asyncio
async def test_in_the_loop_of_pytest_asyncio(approvals: Approvals) -> None:
    await run_it(approvals)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_in_the_loop_of_anyio(approvals: Approvals, anyio_backend: str) -> None:
    await run_it(approvals)
