"""Agents that end with an object: what the model gives for it is a message, and no text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from agents.exceptions import ModelBehaviorError

from pytest_approvals.agent_side.adapters.openai_agents import FLAVOURS
from pytest_approvals.agent_side.contract import Item, Parameter, Reply
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.testing import AdapterSession, approve, call, reply

Begin = Callable[..., AdapterSession]

FIELDS = {"total": Parameter(type="integer"), "currency": Parameter(required=False, default="EUR")}
ANSWER = Reply(answer={"total": 5})
PAYS = reply(None, call("pay", amount=5))

every_flavour = pytest.mark.parametrize("adapter", FLAVOURS.values(), ids=[name or "default" for name in FLAVOURS])
streamed_and_not = pytest.mark.parametrize("stream", [False, True], ids=["plain", "stream"])


def kinds(items: Sequence[Item]) -> list[str]:
    return [item.kind for item in items]


@every_flavour
@streamed_and_not
def test_the_answer_is_the_output(begin: Begin, adapter: type[Agent], stream: bool) -> None:
    """It is a plain mapping, and the stream shows no text."""
    session = begin(PAYS, ANSWER, answer=FIELDS, adapter=adapter)
    (request,) = session.paused("Pay.", stream=stream)
    output = session.finished(None, approve(request), stream=stream)

    assert {"total": 5, "currency": "EUR"} == output
    assert "text" not in [what for what, _ in session.world.seen]


@every_flavour
def test_an_earlier_answer_is_no_text_of_the_model(begin: Begin, adapter: type[Agent]) -> None:
    """In what the next turn begins with it is an item of another kind."""
    session = begin(ANSWER, ANSWER, answer=FIELDS, adapter=adapter)
    session.finished("Sum up.")
    session.finished("Again.")

    assert ["user", "other", "user"] == kinds(session.world.inputs[-1])


@every_flavour
def test_a_call_beside_the_answer_comes_first(begin: Begin, adapter: type[Agent]) -> None:
    """The run pauses, the call runs, and the model is asked once more."""
    beside = Reply(answer={"total": 5}, calls=PAYS.calls, chunks=PAYS.chunks)
    session = begin(beside, Reply(answer={"total": 6}), answer=FIELDS, adapter=adapter)
    output = session.finished(None, *map(approve, session.paused("Pay.")))

    assert {"total": 6, "currency": "EUR"} == output
    assert ["user", "other", "call", "result"] == kinds(session.world.inputs[-1])


def test_an_answer_that_does_not_fit_fails_the_turn(begin: Begin) -> None:
    """The SDK asks no second time."""
    session = begin(Reply(answer={"total": "much"}), answer=FIELDS)

    with pytest.raises(ModelBehaviorError, match="Invalid JSON"):
        session.turn("Sum up.")
