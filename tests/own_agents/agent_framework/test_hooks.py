"""Middleware around functions of the Agent Framework may rewrite results."""

from __future__ import annotations

from typing import Any

import pytest
from agent_framework import Agent, FunctionInvocationContext, function_middleware

from pytest_approvals import Approvals, CheckFailed, call, calls, say

told: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    told.clear()


async def look(card: int) -> str:
    """Looks a card up."""
    return f"number {card}"


@function_middleware
async def redact(context: FunctionInvocationContext, call_next: Any) -> None:
    await call_next()
    context.result = "[redacted]"


@function_middleware
async def mix_up(context: FunctionInvocationContext, call_next: Any) -> None:
    await call_next()
    told.append("number 4242")
    context.result = told[0]


def build(middleware: Any) -> Any:
    return lambda client: Agent(client=client, tools=[look], middleware=[middleware])


def test_a_result_that_a_hook_rewrites_is_no_finding(approvals: Approvals) -> None:
    """What the user's own code makes of a result is on purpose."""
    run = approvals.run(build(redact), "Look", model=[calls("look", card=42), say("Seen.")])

    assert "number 42" == run.calls["look"].executions[0].result
    assert '"[redacted]"' in str(run.transcript)


def test_a_hook_that_mixes_results_up_is_found(approvals: Approvals) -> None:
    """A result of another call is none of what may be told."""
    both = calls(call("look", card=4242), call("look", card=7777))
    with pytest.raises(CheckFailed, match="result-matches-its-call"):
        approvals.run(build(mix_up), "Look", model=[both, say("Seen.")])
