"""Agents go on after their process was killed, as their class attribute `recovery` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, leave, let_oracle, returns, say, send, tool
from pytest_approvals.scenario.model import Variant

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
KEPT_BY_THE_APPLICATION = ["autogen"]


def play_crash(play: Callable[..., Any], agent: str, place: str, variant: Variant) -> Any:
    """Play a turn with an approval whose process is killed, after which all that is asked is approved."""
    story = [send("Pay 5"), decide(approve("c1"), crashes=place), let_oracle(), leave()]
    return play(agent, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story, variant=variant)


@pytest.mark.parametrize("agent", KEPT_BY_THE_APPLICATION)
@pytest.mark.parametrize(("place", "runs"), [("before c1", 1), ("ended c1", 2), ("model", 2)])
def test_what_the_application_kept_is_asked_again(
    play_elsewhere: Callable[..., Any], agent: str, place: str, runs: int
) -> None:
    """The state is that of the pause, so that a call which has run since is approved once more."""
    variant = Variant(serialize="json", source="restored", oracle="approve_all")
    played = play_crash(play_elsewhere, agent, place, variant)

    assert runs == len(played.ran)
    assert [place] == [event["place"] for event in played.events("agent.killed")]
    assert "finished" == played.outcomes[-1]
