"""What Codex and Gemini CLI do in a turn, each of which has a process for each agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import always, approve, call, calls, cancel, decide, reject, returns, say, send, tool, when
from pytest_approvals.scenario.model import Variant

AMOUNT = {"amount": "integer"}
PAY = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always")
BOTH = calls(call("pay", amount=1), call("pay", amount=2))

pytestmark = pytest.mark.timeout(300)
each_program = pytest.mark.parametrize("agent", ["acp.codex", "acp.gemini"])


@pytest.mark.parametrize(
    ("agent", "result"),
    [("acp.codex", "paid 5"), ("acp.gemini", "<untrusted_context>\npaid 5\n</untrusted_context>")],
)
def test_an_approved_call_runs(play_elsewhere: Callable[..., Any], agent: str, result: str) -> None:
    """It runs once, with its arguments, and the model is told the result, by Gemini CLI as one not to be trusted."""
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY])

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)
    assert {"c1": result} == played.told


@pytest.mark.parametrize(
    ("agent", "result"),
    [
        ("acp.codex", "user cancelled MCP tool call"),
        ("acp.gemini", 'Tool "mcp_tools_pay" was canceled by the user.'),
    ],
)
def test_a_rejected_call_does_not_run(play_elsewhere: Callable[..., Any], agent: str, result: str) -> None:
    """The model is told so, and has the last word: what it said before is no part of the answer."""
    story = [send("Pay 5"), decide(reject("c1"))]
    reply = calls(call("pay", amount=5), say="I pay.")
    played = play_elsewhere(agent, reply, say("Not paid."), tools=[PAY], caller=story)

    assert ([], {"c1": result}) == (played.ran, played.told)
    assert "Not paid." == played.events("turn.end")[-1]["output"]


@pytest.mark.slow
@each_program
def test_calls_of_one_reply_are_asked_about_one_by_one(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """A decision counts for its own call; nothing is waited for of one that was rejected."""
    story = [send("Pay both"), decide(reject("c1")), decide(approve("c2"))]
    played = play_elsewhere(agent, BOTH, say("Done."), tools=[PAY], caller=story)

    assert ([["c1"], ["c2"], []], [("pay", {"amount": 2})]) == (played.requests, played.ran)


@pytest.mark.slow
@each_program
def test_a_standing_approval_ends_with_its_agent(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """It is that of the tool."""
    story = [send("Pay"), decide(always("c1")), decide(reject("c3"))]
    twice = (calls("pay", amount=1), calls(call("pay", amount=2), call("look")), say("Done."))
    tools = [PAY, tool("look", returns("nothing"), approval="always")]
    first, second = [play_elsewhere(agent, *twice, tools=tools, caller=story) for _ in range(2)]

    assert [["c1"], ["c3"], []] == first.requests == second.requests
    assert 2 == len(second.ran)


@pytest.mark.slow
@each_program
def test_a_tool_of_a_server_is_gated(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """The program connects to the server itself."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[pay])

    assert ([["c1"], []], [("pay", {"amount": 5})]) == (played.requests, played.ran)


@pytest.mark.slow
@each_program
def test_the_client_answers_for_calls_that_need_no_approval(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """The program asks about every call; the caller sees those that wait for a person."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval=when("amount", greater_than=1))
    story = [send("Pay both"), decide(approve("c2"))]
    played = play_elsewhere(agent, BOTH, say("Done."), tools=[pay], caller=story)

    assert ([["c2"], []], 2) == (played.requests, len(played.ran))


@pytest.mark.slow
@each_program
def test_what_is_asked_can_be_given_up(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """Nothing runs."""
    played = play_elsewhere(agent, calls("pay", amount=5), say("Hello."), tools=[PAY], caller=[send("Pay 5"), cancel()])

    assert (["paused"], []) == (played.outcomes, played.ran)


@pytest.mark.slow
def test_a_session_of_codex_takes_the_message_after_a_cancellation(play_elsewhere: Callable[..., Any]) -> None:
    """That of Gemini CLI does not: the provider refuses a call without a result."""
    story = [send("Pay 5"), cancel(), send("Hello")]
    played = play_elsewhere("acp.codex", calls("pay", amount=5), say("Hello."), tools=[PAY], caller=story)

    assert (["paused", "finished"], []) == (played.outcomes, played.ran)


@pytest.mark.slow
@each_program
def test_a_stream_shows_what_it_asks(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """A question shows its call, too; the result and the text come then, and each turn ends."""
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY], variant=Variant(stream=True))

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]
