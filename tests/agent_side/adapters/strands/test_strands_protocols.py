"""The framework's own model classes, asked at an address over a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import calls, fails, say
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]
OVER_EACH = pytest.mark.parametrize("protocol", ["chat", "responses", "messages", "converse"])


@OVER_EACH
def test_a_model_that_is_asked_too_often_fails_the_turn(play: Play, protocol: str) -> None:
    """Nobody waits and asks again, as agents do by default."""
    played = play(calls("pay", amount=5), fails(429), say("Done."), variant=Variant(protocol=protocol))

    assert (["paused", "EventLoopException"], 2) == (played.outcomes, len(played.inputs))


@OVER_EACH
def test_an_agent_behind_a_tool_is_asked_over_it_too(play: Play, protocol: str) -> None:
    """Its model goes by its own name."""
    text = """
tools:
  delegate: {parameters: {input: string}, runs: helper}
  helper/pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
agents:
  helper:
    model:
      - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
      - say: Paid.
model:
  - calls: [{id: o1, tool: delegate, arguments: {input: Pay 5}}]
  - say: Done.
"""
    played = play(text=text, variant=Variant(protocol=protocol))

    assert ["main", "helper", "helper", "main"] == [one["agent"] for one in played.events("model.request")]
    assert ["paused", "finished"] == played.outcomes
