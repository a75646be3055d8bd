"""AutoGen refuses an approved call for a value that its tool does not take: that is no finding."""

from __future__ import annotations

from typing import Any, Literal

from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool

from pytest_approvals import Approvals, approve_all, call, calls, say

MOVES = [
    calls(call("move", to="nowhere", invalid=True)),
    calls("move", to="shop"),
    say("Moved."),
]

moved: list[str] = []


async def move(to: Literal["bank", "shop"]) -> str:
    """Moves the desk."""
    moved.append(to)
    return f"moved to {to}"


def build(model: Any) -> AssistantAgent:
    return AssistantAgent("desk", model, tools=[FunctionTool(move, "Moves.", strict=False)], max_tool_iterations=9)


def test_values_that_the_tool_does_not_take_are_told_to_the_model(approvals: Approvals) -> None:
    """Approved or not, only a call whose values the tool takes runs."""
    moved.clear()
    run = approvals.run(build, "Move", model=MOVES, oracle=approve_all(), gated={"move"})

    assert 1 == len(run.calls["move"].executions)
    assert ["shop"] == moved
