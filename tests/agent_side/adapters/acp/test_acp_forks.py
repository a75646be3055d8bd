"""Forks of sessions of programs that speak ACP: the option `forks`, with which a stored session is not loaded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import always, approve, calls, decide, reject, restore, returns, save, say, send, tool
from pytest_approvals.scenario.model import Variant

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
each_program = pytest.mark.parametrize("agent", ["acp.opencode", "acp.claude_code", "acp.codex"])

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
STORED = Variant(serialize="native.sessions", resume="fresh")
PAID_TWICE = [calls("pay", amount=5), say("Paid 5."), calls("pay", amount=6), say("Paid 6.")]


@pytest.fixture
def play(play_elsewhere: Callable[..., Any]) -> Callable[..., Any]:
    """Plays a story of payments, in which other processes fork the session of each finished turn, or load it."""

    def played(agent: str, *replies: Any, caller: list[Any], forks: bool = True) -> Any:
        options = {"forks": True} if forks else {}
        return play_elsewhere(agent, *replies, tools=[PAY], caller=caller, variant=STORED, seconds=200, options=options)

    return played


@pytest.mark.parametrize(("forks", "known"), [(True, 1), (False, 2)])
@each_program
def test_a_saved_session_stays_as_it_is(play: Callable[..., Any], agent: str, forks: bool, known: int) -> None:
    """What was said and done since a save is not in a fork of it; a session that is loaded goes on at its end."""
    first = [send("Pay 5"), decide(approve("c1")), save("paid")]
    caller = [*first, send("Pay 6"), decide(approve("c2")), restore("paid"), send("Pay 6"), decide(reject("c2"))]
    played = play(agent, *PAID_TWICE, caller=caller, forks=forks)
    after = played.events("model.request")[4]["items"]

    assert known == sum(item["kind"] == "result" for item in after)


@each_program
def test_a_rejected_call_stays_one_in_a_fork(play: Callable[..., Any], agent: str) -> None:
    """It does not run there, and the model is told of it as before."""
    replies = [calls("pay", amount=5), say("Not paid."), say("No.")]
    played = play(agent, *replies, caller=[send("Pay 5"), decide(reject("c1")), send("Is it paid?")])
    told = [
        [item["text"] for item in event["items"] if item["kind"] == "result"]
        for event in played.events("model.request")
    ]

    assert ([], [1, 1], True) == (played.ran, [*map(len, told[1:])], told[1] == told[2])


@each_program
def test_a_standing_approval_holds_for_a_fork_if_it_is_stored(play: Callable[..., Any], agent: str) -> None:
    """That of Claude Code is in the settings of the folder; in the other programs another process asks again."""
    caller = [send("Pay 5"), decide(always("c1")), send("Pay 6")]
    played = play(agent, *PAID_TWICE, caller=caller)
    asked = [request for requests in played.requests for request in requests]

    assert (["c1"] if agent == "acp.claude_code" else ["c1", "c2"], 2) == (asked, len(played.ran))
