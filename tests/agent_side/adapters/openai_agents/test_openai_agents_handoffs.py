"""Hand-offs: the agent that was handed over to has the conversation, in the turns to come and after a restart, too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from pytest_approvals.agent_side.adapters.openai_agents import FLAVOURS
from pytest_approvals.agent_side.contract import Parameter, Reply, ToolSpec
from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.testing import AdapterSession, approve, call, reply, tool

Begin = Callable[..., AdapterSession]

TO_CLERK = ToolSpec(name="to_clerk", hands_over_to="clerk")
BACK = ToolSpec(name="back", agent="clerk", hands_over_to="main")
PAY = replace(tool("pay", "always", amount="integer"), agent="clerk")
TOOLS = (TO_CLERK, BACK, PAY)

HANDS_OVER = reply(None, call("to_clerk", "t1"))
PAYS = reply(None, call("pay", "c1", amount=5))
DONE = reply("Done.")

every_flavour = pytest.mark.parametrize("adapter", FLAVOURS.values(), ids=[name or "default" for name in FLAVOURS])


@every_flavour
def test_the_request_is_that_of_the_second_agent(begin: Begin, adapter: type[Agent]) -> None:
    """It carries that agent's name, and that agent goes on when it is approved."""
    session = begin(HANDS_OVER, PAYS, DONE, tools=TOOLS, adapter=adapter)
    (request,) = session.paused("Pay 5.")
    session.finished(None, approve(request))

    assert "clerk" == request.agent
    assert ("main", "clerk", "clerk") == session.world.askers
    assert [("pay", {"amount": 5})] == session.world.ran


@every_flavour
def test_the_conversation_stays_with_the_second_agent(begin: Begin, adapter: type[Agent]) -> None:
    """The next message goes to `last_agent`, also if the state was restored in between."""
    session = begin(HANDS_OVER, DONE, DONE, PAYS, DONE, tools=TOOLS, adapter=adapter, serialize="json")
    session.finished("Hello.")
    session.finished("And?")
    session.restart()
    (request,) = session.paused("Pay 5.")
    session.restart()
    session.finished(None, *map(approve, session.pending()))

    assert "clerk" == request.agent
    assert ("main", "clerk", "clerk", "clerk", "clerk") == session.world.askers
    assert [("pay", {"amount": 5})] == session.world.ran


@every_flavour
def test_the_second_agent_gives_the_answer_of_the_first(begin: Begin, adapter: type[Agent]) -> None:
    """Both end with an object if the main agent is to end with one."""
    answer = Reply(answer={"total": 5})
    session = begin(HANDS_OVER, answer, tools=TOOLS, answer={"total": Parameter(type="integer")}, adapter=adapter)

    assert {"total": 5} == session.finished("Hello.")


def test_a_hand_off_back_goes_round_in_a_circle(begin: Begin) -> None:
    """The first agent has the conversation again."""
    session = begin(HANDS_OVER, reply(None, call("back", "t2")), DONE, DONE, tools=TOOLS)
    session.finished("Hello.")
    session.finished("And?")

    assert ("main", "clerk", "main", "main") == session.world.askers


def test_the_stream_shows_the_call_and_its_result(begin: Begin) -> None:
    """The SDK's stream has names of its own for hand-offs."""
    session = begin(HANDS_OVER, DONE, tools=TOOLS)
    session.turn("Hello.", stream=True)

    assert [
        ("call", {"id": "t1", "tool": "to_clerk"}),
        ("result", {"id": "t1", "text": '{"assistant": "clerk"}'}),
        ("text", {"text": "Done."}),
        ("end", {}),
    ] == session.world.seen
