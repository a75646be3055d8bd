"""The framework's own chat model classes, asked at an address over a protocol."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import calls, fails, say
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]
OVER_EACH = pytest.mark.parametrize("protocol", ["chat", "responses", "messages"])


@OVER_EACH
def test_a_model_that_is_asked_too_often_fails_the_turn(play: Play, flavour: str, protocol: str) -> None:
    """Nobody waits and asks again: the classes would by default, and so would the provider's client."""
    played = play(calls("pay", amount=5), fails(429), say("Done."), flavour=flavour, variant=Variant(protocol=protocol))

    assert (2, True) == (len(played.inputs), played.outcomes[-1].endswith("RateLimitError"))


@OVER_EACH
def test_agents_of_one_conversation_are_asked_by_their_names(play: Play, protocol: str) -> None:
    """Each has a model of its own."""
    text = """
tools:
  to_sales: {hands_over_to: sales}
model:
  - calls: [{id: t1, tool: to_sales}]
  - say: Hello.
"""
    played = play(text=text, variant=Variant(protocol=protocol))

    assert ["main", "sales"] == [one["agent"] for one in played.events("model.request")]
