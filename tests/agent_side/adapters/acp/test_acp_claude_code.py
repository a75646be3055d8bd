"""What Claude Code does in a turn, behind its adapter for ACP."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import always, approve, call, calls, decide, reject, returns, say, send, tool

pytestmark = pytest.mark.timeout(300)

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
BOTH = calls(call("pay", amount=1), call("pay", amount=2))
AGENT = "acp.claude_code"


def test_calls_of_one_reply_are_asked_about_one_by_one(play_elsewhere: Callable[..., Any]) -> None:
    """A decision counts for its own call, and each call runs under its own arguments."""
    story = [send("Pay both"), decide(reject("c1")), decide(approve("c2"))]
    played = play_elsewhere(AGENT, BOTH, say("Done."), tools=[PAY], caller=story)

    assert ([["c1"], ["c2"], []], [("pay", {"amount": 2})]) == (played.requests, played.ran)


def test_a_standing_approval_ends_with_its_session(play_elsewhere: Callable[..., Any]) -> None:
    """It is written into the settings of the session's folder, of which each session has its own."""
    story = [send("Pay"), decide(always("c1"))]
    twice = (calls("pay", amount=1), calls("pay", amount=2), say("Done."))
    first, second = [play_elsewhere(AGENT, *twice, tools=[PAY], caller=story) for _ in range(2)]

    assert [["c1"], []] == first.requests == second.requests
