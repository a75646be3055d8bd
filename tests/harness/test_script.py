"""How the scripted model tells conversations apart."""

from __future__ import annotations

from typing import Any

from pytest_approvals.agent_side.contract import Item
from pytest_approvals.harness.progress import PlayedCall, Progress
from pytest_approvals.harness.script import conversation_of
from pytest_approvals.scenario.load import scenario_from_text

STORY = """
title: A story
tools:
  delegate: {parameters: {input: string}, runs: helper}
  helper/pay: {parameters: {amount: integer}}
agents:
  helper:
    model:
      - calls: [{id: h1, tool: pay, arguments: {amount: 5}}]
      - say: Paid.
model:
  - calls: [{id: c1, tool: delegate, arguments: {input: Pay 5}}]
  - say: Done.
"""


def asked(scenario: Any, progress: Progress, *items: Item) -> tuple[str, int]:
    """The conversation that an input of the helper's model belongs to, and how many replies it has."""
    conversation = conversation_of(scenario, "helper", items, progress)
    return conversation.name, len(conversation.replies)


def scenario() -> Any:
    return scenario_from_text(STORY, name="nested/story", path="story.approval.yaml")


def paid(**more: Any) -> Progress:
    """A session whose helper has made its call."""
    made: dict[str, Any] = {"label": "c1/h1", "reply": 1, "agent": "helper", "id": "h1", "tool": "pay"}
    call = PlayedCall(**{**made, "arguments": {"amount": 5}, **more})
    return Progress(calls=[call], delegated={"c1": ("helper", "Pay 5")})


CALL = Item(kind="call", id="h1", tool="pay", arguments={"amount": 5}, message=1)


def test_a_conversation_that_begins_otherwise_is_known_by_its_calls() -> None:
    """An agent that gives a sub-agent another first message after a pause goes on with the same script."""
    assert ("c1/helper", 2) == asked(scenario(), paid(), Item(kind="user", text="Clean up"), CALL)


def test_a_call_with_other_arguments_is_of_no_known_conversation() -> None:
    """Sub-agents that run side by side use the same ids."""
    assert ("helper", 2) == asked(scenario(), paid(arguments={"amount": 6}), Item(kind="user", text="Clean up"), CALL)


def test_a_first_message_says_more_than_calls() -> None:
    """Where it is known, the calls are not looked at."""
    progress = paid(label="c2/h1")
    progress.delegated["c2"] = ("helper", "Pay 6")

    assert ("c1/helper", 2) == asked(scenario(), progress, Item(kind="user", text="Pay 5"), CALL)
