"""Agents go on after their process was killed, as their class attribute `recovery` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, leave, let_oracle, returns, say, send, tool
from pytest_approvals.scenario.model import Variant

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
STATES = {
    "autogen": "json",
    "ai_sdk": "json",
    "openai_agents_js": "json",
    "claude_agent_sdk": "native.home",
    "claude_agent_sdk_js": "native.home",
    "mastra": "native.libsql",
}
"""Agents, and where their state is."""


@pytest.mark.parametrize(("place", "runs"), [("before c1", 1), ("ended c1", 2)])
@pytest.mark.parametrize("agent", STATES)
def test_a_call_that_has_no_result_yet_is_asked_again(
    play_elsewhere: Callable[..., Any], agent: str, place: str, runs: int
) -> None:
    """No state has what a killed turn had begun, so that a call with an effect is approved once more."""
    story = [send("Pay 5"), decide(approve("c1"), crashes=place), let_oracle(), leave()]
    variant = Variant(serialize=STATES[agent], source="restored", oracle="approve_all")
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story, variant=variant)

    assert runs == len(played.ran)
    assert [place] == [event["place"] for event in played.events("agent.killed")]
    assert "finished" == played.outcomes[-1]


def test_half_a_write_to_a_database_leaves_the_request(play_elsewhere: Callable[..., Any]) -> None:
    """The kernel ends the process in the first write of the turn with the approval."""
    story = [send("Pay 5"), decide(approve("c1"), crashes="write"), let_oracle(), leave()]
    variant = Variant(serialize="native.libsql", source="restored", oracle="approve_all")
    played = play_elsewhere("mastra", calls("pay", amount=5), say("Done."), tools=[PAY], caller=story, variant=variant)

    assert ["write"] == [event["place"] for event in played.events("agent.killed")]
    assert "finished" == played.outcomes[-1]
