"""The framework's own model clients, asked at an address over a protocol."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from autogen_core import FunctionCall
from autogen_core.models import AssistantMessage, UserMessage
from pydantic import BaseModel

from pytest_approvals import calls, say
from pytest_approvals.agent_side.adapters.autogen import CodeExecutorSession
from pytest_approvals.agent_side.adapters.autogen.model import build_model
from pytest_approvals.agent_side.contract import ModelAddress
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import FakeWorld

Play = Callable[..., Any]
OVER_EACH = pytest.mark.parametrize("protocol", ["chat", "messages"])

TWO_AGENTS = """
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

ANSWER = """
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
answer: {total: integer}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - answer: {total: 5}
"""


@OVER_EACH
def test_an_agent_behind_a_tool_is_asked_over_it_too(play: Play, protocol: str) -> None:
    """Its model goes by its own name, and the run pauses where only its call is left."""
    played = play(text=TWO_AGENTS, variant=Variant(protocol=protocol))

    assert ["main", "helper", "helper", "main"] == [one["agent"] for one in played.events("model.request")]
    assert [["o1/c1"], []] == played.requests


@OVER_EACH
def test_a_loop_without_agents_asks_over_it(play: Play, protocol: str) -> None:
    """The client of `tool_agent_caller_loop` is the framework's own."""
    played = play(calls("pay", amount=5), say("Done."), flavour="intervention", variant=Variant(protocol=protocol))

    assert ["paused", "finished"] == played.outcomes


def test_a_structured_answer_is_not_told_as_text(play: Play) -> None:
    """It streams as text does."""
    played = play(text=ANSWER, variant=Variant(protocol="chat", stream=True))

    assert ["call", "request", "result", "end"] == [one["what"] for one in played.shown]
    assert {"total": 5} == played.events("turn.end")[-1]["output"]


class Total(BaseModel):
    """An answer."""

    total: int


CALLS_A_LIST = AssistantMessage(content=[FunctionCall(id="c1", name="pay", arguments="[5]")], source="main")


@pytest.mark.parametrize(
    ("messages", "more", "refused"),
    [
        ([], {"json_output": Total}, "not supported for Anthropic"),
        ([CALLS_A_LIST], {}, "Input should be a valid dictionary"),
    ],
    ids=["structured answer", "arguments that are no object"],
)
def test_the_client_for_messages_refuses(messages: list[Any], more: dict[str, Any], refused: str) -> None:
    """It asks nobody."""
    model = build_model(FakeWorld((), ()), "main", ModelAddress(protocol="messages", url="http://127.0.0.1:1"))
    with pytest.raises(ValueError, match=refused):
        asyncio.run(model.create([UserMessage(content="Sum up.", source="user"), *messages], **more))


def test_a_coder_writes_no_calls() -> None:
    """Its model is the scripted one."""
    assert {} == CodeExecutorSession.protocols
