"""Sessions of programs that other processes load again: the store `native.sessions`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import always, approve, calls, decide, reject, returns, say, send, tool
from pytest_approvals.scenario.model import Variant

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
each_program = pytest.mark.parametrize("agent", ["acp.opencode", "acp.claude_code", "acp.codex"])

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
STORED = Variant(serialize="native.sessions", resume="fresh")


@pytest.fixture
def play(play_elsewhere: Callable[..., Any]) -> Callable[..., Any]:
    """Plays a story of payments whose finished turns are taken up by other processes."""

    def played(agent: str, *replies: Any, caller: list[Any]) -> Any:
        return play_elsewhere(agent, *replies, tools=[PAY], caller=caller, variant=STORED, seconds=200)

    return played


@each_program
def test_a_session_goes_on_in_another_process(play: Callable[..., Any], agent: str) -> None:
    """Its model is told what was said and done there, and its next call is asked about."""
    replies = [calls("pay", amount=5), say("Paid 5."), calls("pay", amount=6), say("Paid 6.")]
    played = play(agent, *replies, caller=[send("Pay 5"), decide(approve("c1")), send("Pay 6"), decide(approve("c2"))])
    (third,) = [event["items"] for event in played.events("model.request") if event["m"] == 3]

    assert ["user", "call", "result", "say", "user"] == [item["kind"] for item in third]
    assert ([["c1"], [], ["c2"], []], 2) == (played.requests, len(played.ran))
    assert ["built", "fresh"] == [event["how"] for event in played.events("agent.start")]


@each_program
def test_a_rejected_call_stays_one_in_another_process(play: Callable[..., Any], agent: str) -> None:
    """It does not run there, and the model is told of it as before."""
    replies = [calls("pay", amount=5), say("Not paid."), say("No.")]
    played = play(agent, *replies, caller=[send("Pay 5"), decide(reject("c1")), send("Is it paid?")])
    told = [
        [item["text"] for item in event["items"] if item["kind"] == "result"]
        for event in played.events("model.request")
    ]

    assert ([], [1, 1], True) == (played.ran, [*map(len, told[1:])], told[1] == told[2])


@each_program
def test_a_standing_approval_ends_with_its_process_or_is_stored(play: Callable[..., Any], agent: str) -> None:
    """That of Claude Code is in the settings of the session's folder; the others ask again."""
    replies = [calls("pay", amount=5), say("Paid 5."), calls("pay", amount=6), say("Paid 6.")]
    played = play(agent, *replies, caller=[send("Pay 5"), decide(always("c1")), send("Pay 6")])
    asked = [request for requests in played.requests for request in requests]

    assert (["c1"] if agent == "acp.claude_code" else ["c1", "c2"], 2) == (asked, len(played.ran))
