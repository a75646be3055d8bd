"""Hooks of Strands that see the results of tools, and may rewrite them."""

from __future__ import annotations

from typing import Any

import pytest
from strands import Agent, tool
from strands.hooks import AfterToolCallEvent
from strands.tools.executors import SequentialToolExecutor

from pytest_approvals import Approvals, CheckFailed, call, calls, say

told: list[str] = []


@pytest.fixture(autouse=True)
def _nothing_told() -> None:
    told.clear()


@tool
def look(card: int) -> str:
    """Looks a card up."""
    return f"number {card}"


def redact(event: AfterToolCallEvent) -> None:
    event.result["content"][0]["text"] = "[redacted]"


def mix_up(event: AfterToolCallEvent) -> None:
    told.append(event.result["content"][0]["text"])
    event.result["content"][0]["text"] = told[0]


def build(hook: Any) -> Any:
    executor = SequentialToolExecutor()
    return lambda model: Agent(model, tools=[look], hooks=[hook], callback_handler=None, tool_executor=executor)


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
