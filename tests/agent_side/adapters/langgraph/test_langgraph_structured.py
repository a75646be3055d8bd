"""Agents that end with an object: the output tool is no tool that anybody is asked about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Play = Callable[..., Any]

TOOLS = """
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
answer: {total: integer}
"""
AFTER = """
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - answer: {total: 5}
"""
TWICE = """
model:
  - {answer: {total: much}, invalid: true}
  - answer: {total: 5}
"""
BESIDE = """
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
    answer: {total: 5}
"""


def output(played: Any) -> Any:
    return played.events("turn.end")[-1]["output"]


def test_the_answer_is_the_output(play: Play, flavour: str, variant: Any) -> None:
    """It comes out of every store as the object that it is."""
    played = play(text=TOOLS + AFTER, flavour=flavour, variant=variant)

    assert {"total": 5} == output(played)
    assert {"c1": "paid 5"} == played.told


def test_an_answer_that_does_not_fit_is_asked_for_again(play: Play) -> None:
    """The output tool tells the model what was wrong."""
    played = play(text=TOOLS + TWICE)

    assert {"total": 5} == output(played)
    assert ["user", "other", "other"] == [line.split(" ")[0] for line in played.inputs[-1]]


def test_a_call_beside_the_answer_runs_when_it_is_approved(play: Play, flavour: str, variant: Any) -> None:
    """The run pauses for the call and ends with the answer that came with it."""
    played = play(text=TOOLS + BESIDE, flavour=flavour, variant=variant)

    assert [("pay", {"amount": 5})] == played.ran
    assert {"total": 5} == output(played)
