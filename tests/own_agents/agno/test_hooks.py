"""Hooks around tools of Agno: they may block, and they may rewrite results."""

from __future__ import annotations

from typing import Any

import pytest
from agno.agent import Agent

from pytest_approvals import Approvals, CheckFailed, call, calls, say

told: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    told.clear()


def look(card: int) -> str:
    """Looks a card up."""
    return f"number {card}"


def redact(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
    function_call(**arguments)
    return "[redacted]"


async def redact_slowly(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
    await function_call(**arguments)
    return "[redacted]"


def mix_up(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
    told.append(function_call(**arguments))
    return told[0]


def build(hook: Any) -> Any:
    return lambda model: Agent(model=model, tools=[look], tool_hooks=[hook], telemetry=False)


@pytest.mark.parametrize("hook", [redact, redact_slowly])
def test_a_result_that_a_hook_rewrites_is_no_finding(approvals: Approvals, hook: Any) -> None:
    """What the user's own code makes of a result is on purpose."""
    run = approvals.run(build(hook), "Look", model=[calls("look", card=42), say("Seen.")])

    assert "number 42" == run.calls["look"].executions[0].result
    assert '"[redacted]"' in str(run.transcript)


def test_a_hook_that_mixes_results_up_is_found(approvals: Approvals) -> None:
    """A result of another call is none of what may be told."""
    both = calls(call("look", card=4242), call("look", card=7777))
    with pytest.raises(CheckFailed, match="result-matches-its-call"):
        approvals.run(build(mix_up), "Look", model=[both, say("Seen.")])
