"""What the agents of the OpenAI Agents SDK for JavaScript do in a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import always, approve, call, calls, decide, go_on, reject, returns, say, send, stage, tool
from pytest_approvals.scenario.model import Variant

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
BOTH = calls(call("pay", amount=1), call("pay", amount=2))
AGENT = "openai_agents_js"


@pytest.mark.parametrize("agent", [AGENT, "openai_agents_js==0.16.1"])
@pytest.mark.parametrize(
    "variant",
    [Variant(), Variant(serialize="json", source="restored"), Variant(serialize="json", source="rebuilt", stream=True)],
    ids=lambda variant: variant.id,
)
def test_an_approved_call_runs(play_elsewhere: Callable[..., Any], agent: str, variant: Variant) -> None:
    """It runs once, with its arguments, and the model is told the result."""
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY], variant=variant)

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)
    assert {"c1": "paid 5"} == played.told


def test_a_rejected_call_is_told_with_its_reason(play_elsewhere: Callable[..., Any]) -> None:
    """The reason is what the model reads as the result."""
    story = [send("Pay 5"), decide(reject("c1", "no money"))]
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story)

    assert ([], {"c1": "no money"}) == (played.ran, played.told)


def test_a_partial_answer_leaves_the_other_request(play_elsewhere: Callable[..., Any]) -> None:
    """What is approved runs at once; the model is asked when all is answered."""
    story = [send("Pay both"), decide(approve("c2")), decide(reject("c1", "no"))]
    played = play_elsewhere(AGENT, BOTH, say("Done."), tools=[PAY], caller=story)

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert ([("pay", {"amount": 2})], 2) == (played.ran, len(played.inputs))


def test_a_standing_approval_asks_no_more(play_elsewhere: Callable[..., Any]) -> None:
    """The next call of the tool runs unasked."""
    story = [send("Pay"), decide(always("c1"))]
    played = play_elsewhere(
        AGENT, calls("pay", amount=1), calls("pay", amount=2), say("Done."), tools=[PAY], caller=story
    )

    assert [["c1"], []] == played.requests
    assert 2 == len(played.ran)


def test_a_staged_decision_is_kept_in_the_state(play_elsewhere: Callable[..., Any]) -> None:
    """It goes through text and counts when the run goes on."""
    story = [send("Pay 5"), stage(approve("c1")), go_on()]
    variant = Variant(serialize="json", source="restored")
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story, variant=variant)

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)


def test_a_stream_shows_what_it_asks(play_elsewhere: Callable[..., Any]) -> None:
    """The call and its request are shown, then the result and the text; each run ends."""
    variant = Variant(stream=True)
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], variant=variant)

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]


def test_a_late_decision_leaves_the_session_usable(play_elsewhere: Callable[..., Any]) -> None:
    """The run has ended, so the next message begins another one."""
    story = [send("Pay 5"), decide(approve("c1")), stage(reject("c1")), send("Thanks")]
    played = play_elsewhere(
        AGENT, calls("pay", amount=5), say("Done."), say("You are welcome."), tools=[PAY], caller=story
    )

    assert ["paused", "finished", "finished"] == played.outcomes
