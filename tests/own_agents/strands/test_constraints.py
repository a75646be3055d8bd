"""Strands refuses an approved call for a value that its tool does not take: that is no finding."""

from __future__ import annotations

from typing import Any, Literal

from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent, HookProvider, HookRegistry

from pytest_approvals import Approvals, approve_all, call, calls, say

MOVES = [
    calls(call("move", to="nowhere", hour=9, invalid=True)),
    calls("move", to="shop", hour=9),
    say("Moved."),
]

moved: list[str] = []


@tool
def move(to: Literal["bank", "shop"], hour: int) -> str:
    """Moves the desk."""
    moved.append(to)
    return f"moved to {to}"


class Gate(HookProvider):
    """Asks about moves."""

    def register_hooks(self, registry: HookRegistry, **options: Any) -> None:
        registry.add_callback(BeforeToolCallEvent, self.ask)

    def ask(self, event: BeforeToolCallEvent) -> None:
        if event.interrupt("approval", reason=event.tool_use["input"]) != "y":
            event.cancel_tool = "rejected"


def build(model: Any) -> Agent:
    return Agent(model=model, tools=[move], hooks=[Gate()], callback_handler=None)


def test_values_that_the_tool_does_not_take_are_told_to_the_model(approvals: Approvals) -> None:
    """Approved or not, only a call whose values the tool takes runs."""
    moved.clear()
    run = approvals.run(build, "Move", model=MOVES, oracle=approve_all(), gated={"move"})

    assert 1 == len(run.calls["move"].executions)
    assert ["shop"] == moved
