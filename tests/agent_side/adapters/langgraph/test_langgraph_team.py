"""Agents that hand the conversation over to each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

CLERK = """
tools:
  to_clerk: {hands_over_to: clerk}
  clerk/pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: t1, tool: to_clerk}]
  - calls: [{id: c1, tool: clerk/pay, arguments: {amount: 5}}]
  - say: Paid 5.
  - calls: [{id: c2, tool: clerk/pay, arguments: {amount: 6}}]
  - say: Paid 6.
caller:
  - send: Pay 5
  - oracle: true
  - send: Pay 6
  - oracle: true
oracles: [approve_all]
"""


def test_the_other_agent_keeps_the_conversation(play: Play, flavour: str, variant: Variant) -> None:
    """Its calls are asked about as its own, in the next turn, too, and out of every store."""
    played = play(text=CLERK, flavour=flavour, variant=variant)

    assert ["main", "clerk", "clerk", "clerk", "clerk"] == [
        one.get("agent", "main") for one in played.events("model.request")
    ]
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran
    assert {"t1": "Transferred to clerk.", "c1": "paid 5", "c2": "paid 6"} == played.told


ANSWERING_TEAM = """
answer: {total: integer}
tools:
  to_clerk: {hands_over_to: clerk}
model:
  - answer: {total: 5}
caller:
  - send: How much is it?
"""


def test_the_answer_of_the_main_agent_is_that_of_the_team(play: Play, variant: Variant) -> None:
    """The graph around the agents has its fields."""
    played = play(text=ANSWERING_TEAM, variant=variant)

    assert [{"total": 5}] == [event["output"] for event in played.events("turn.end")]


def test_a_stream_shows_what_agents_inside_do(play: Play, flavour: str) -> None:
    """Each request is shown once, although the graph around shows it again."""
    played = play(text=CLERK, flavour=flavour, variant=Variant(stream=True))
    shown = [event["what"] for event in played.shown]

    assert 2 == shown.count("request")
    assert "Paid 6." in "".join(event.get("text", "") for event in played.shown if event["what"] == "text")
