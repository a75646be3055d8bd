"""Pydantic AI refuses an approved call for a value that its tool does not take: that is no finding."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field
from pydantic_ai import Agent, DeferredToolRequests, Tool

from pytest_approvals import Approvals, approve_all, call, calls, say

MOVES = [
    calls(call("move", to="nowhere", hour=9, invalid=True)),
    calls(call("move", to="shop", hour=25, invalid=True)),
    calls("move", to="shop", hour=9),
    say("Moved."),
]

moved: list[str] = []


def move(to: Literal["bank", "shop"], hour: Annotated[int, Field(ge=0, le=23)]) -> str:
    """Moves the desk."""
    moved.append(to)
    return f"moved to {to}"


def build(model: Any) -> Agent[None, Any]:
    return Agent(model, tools=[Tool(move, requires_approval=True)], output_type=[str, DeferredToolRequests], retries=2)


def test_values_that_the_tool_does_not_take_are_told_to_the_model(approvals: Approvals) -> None:
    """Approved or not, only a call whose values the tool takes runs."""
    moved.clear()
    run = approvals.run(build, "Move", model=MOVES, oracle=approve_all(), gated={"move"})

    assert 1 == len(run.calls["move"].executions)
    assert ["shop"] == moved
