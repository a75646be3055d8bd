"""The OpenAI Agents SDK refuses an approved call for a value that its tool does not take: that is no finding."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from agents import Agent, function_tool
from pydantic import Field

from pytest_approvals import Approvals, approve_all, call, calls, say

MOVES = [
    calls(call("move", to="nowhere", hour=9, invalid=True)),
    calls(call("move", to="shop", hour=25, invalid=True)),
    calls("move", to="shop", hour=9),
    say("Moved."),
]

moved: list[str] = []


@function_tool(needs_approval=True)
def move(to: Literal["bank", "shop"], hour: Annotated[int, Field(ge=0, le=23)]) -> str:
    """Moves the desk."""
    moved.append(to)
    return f"moved to {to}"


def build(model: Any) -> Agent[None]:
    return Agent(name="desk", model=model, tools=[move])


def test_values_that_the_tool_does_not_take_are_told_to_the_model(approvals: Approvals) -> None:
    """Approved or not, only a call whose values the tool takes runs."""
    moved.clear()
    run = approvals.run(build, "Move", model=MOVES, oracle=approve_all(), gated={"move"})

    assert 1 == len(run.calls["move"].executions)
    assert ["shop"] == moved
