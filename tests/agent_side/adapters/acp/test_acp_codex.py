"""What Codex does in a turn, behind its adapter for ACP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import always, approve, call, calls, cancel, decide, reject, returns, say, send, tool, when
from pytest_approvals.scenario.model import Variant

pytestmark = pytest.mark.timeout(300)

AMOUNT = {"amount": "integer"}
PAY = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always")
BOTH = calls(call("pay", amount=1), call("pay", amount=2))
AGENT = "acp.codex"


def test_an_approved_call_runs(play_elsewhere: Callable[..., Any]) -> None:
    """It runs once, with its arguments, and the model is told the result."""
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY])

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)
    assert {"c1": "paid 5"} == played.told


def test_a_rejected_call_does_not_run(play_elsewhere: Callable[..., Any]) -> None:
    """The model is told so, and has the last word."""
    story = [send("Pay 5"), decide(reject("c1"))]
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Not paid."), tools=[PAY], caller=story)

    assert [] == played.ran
    assert {"c1": "user cancelled MCP tool call"} == played.told


@pytest.mark.slow
def test_calls_of_one_reply_are_asked_about_one_by_one(play_elsewhere: Callable[..., Any]) -> None:
    """A decision counts for its own call."""
    story = [send("Pay both"), decide(reject("c1")), decide(approve("c2"))]
    played = play_elsewhere(AGENT, BOTH, say("Done."), tools=[PAY], caller=story)

    assert ([["c1"], ["c2"], []], [("pay", {"amount": 2})]) == (played.requests, played.ran)


@pytest.mark.slow
def test_a_standing_approval_ends_with_its_agent(play_elsewhere: Callable[..., Any]) -> None:
    """It is that of the session and the tool."""
    story = [send("Pay"), decide(always("c1")), decide(reject("c3"))]
    twice = (calls("pay", amount=1), calls(call("pay", amount=2), call("look")), say("Done."))
    tools = [PAY, tool("look", returns("nothing"), approval="always")]
    first, second = [play_elsewhere(AGENT, *twice, tools=tools, caller=story) for _ in range(2)]

    assert [["c1"], ["c3"], []] == first.requests == second.requests
    assert 2 == len(second.ran)


@pytest.mark.slow
def test_a_tool_of_a_server_is_gated(play_elsewhere: Callable[..., Any]) -> None:
    """The program connects to the server itself."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[pay])

    assert ([["c1"], []], [("pay", {"amount": 5})]) == (played.requests, played.ran)


@pytest.mark.slow
def test_the_client_answers_for_calls_that_need_no_approval(play_elsewhere: Callable[..., Any]) -> None:
    """The program asks about every call; the caller sees those that wait for a person."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval=when("amount", greater_than=1))
    story = [send("Pay both"), decide(approve("c2"))]
    played = play_elsewhere(AGENT, BOTH, say("Done."), tools=[pay], caller=story)

    assert ([["c2"], []], 2) == (played.requests, len(played.ran))


@pytest.mark.slow
def test_what_is_asked_can_be_given_up(play_elsewhere: Callable[..., Any]) -> None:
    """Nothing runs, and the session takes the next message."""
    story = [send("Pay 5"), cancel(), send("Hello")]
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Hello."), tools=[PAY], caller=story)

    assert (["paused", "finished"], []) == (played.outcomes, played.ran)


@pytest.mark.slow
def test_a_stream_shows_what_it_asks(play_elsewhere: Callable[..., Any]) -> None:
    """The call and its request are shown, then the result and the text; each turn ends."""
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], variant=Variant(stream=True))

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]
    assert ["paid 5"] == [one["text"] for one in played.shown if one["what"] == "result"]
