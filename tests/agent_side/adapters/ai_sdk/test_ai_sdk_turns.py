"""What the AI SDK's agents do in a turn, in every flavour and in both major releases."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import (
    approve,
    call,
    calls,
    decide,
    go_on,
    leave,
    reject,
    returns,
    say,
    send,
    signal,
    stage,
    together,
    tool,
)
from pytest_approvals.scenario.model import Variant

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
BOTH = calls(call("pay", amount=1), call("pay", amount=2))
FLAVOURS = ["ai_sdk", "ai_sdk.stream", "ai_sdk.ui"]

every_flavour = pytest.mark.parametrize("agent", FLAVOURS)


@pytest.mark.parametrize("agent", [*FLAVOURS, "ai_sdk==6.0.326", "ai_sdk.stream==6.0.326", "ai_sdk.ui==6.0.326"])
@pytest.mark.parametrize(
    "variant",
    [Variant(), Variant(serialize="json", source="rebuilt"), Variant(serialize="copy", source="restored")],
    ids=lambda variant: variant.id,
)
def test_an_approved_call_runs(play_elsewhere: Callable[..., Any], agent: str, variant: Variant) -> None:
    """It runs once, with its arguments, and the model is told the result."""
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY], variant=variant)

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)
    assert {"c1": "paid 5"} == played.told


@every_flavour
def test_a_rejected_call_is_told_with_its_reason(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """The reason is what the model reads as the result."""
    story = [send("Pay 5"), decide(reject("c1", "no money"))]
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story)

    assert ([], {"c1": "no money"}) == (played.ran, played.told)


@pytest.mark.parametrize("agent", ["ai_sdk.stream", "ai_sdk.ui"])
def test_a_stream_shows_what_it_asks(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """The call and its request are shown, then the result and the text, and that is the end."""
    variant = Variant(stream=True)
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY], variant=variant)

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]


@pytest.mark.parametrize("agent", ["ai_sdk", "ai_sdk.stream"])
def test_a_partial_answer_is_refused_after_it_ran(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """The caller takes it back: both requests are open again."""
    story = [send("Pay both"), decide(approve("c1")), leave()]
    played = play_elsewhere(agent, BOTH, say("Done."), tools=[PAY], caller=story)

    assert ["paused", "AI_MissingToolResultsError"] == played.outcomes
    assert (["c1", "c2"], [("pay", {"amount": 1})]) == (played.pending, played.ran)


def test_a_chat_waits_for_all_answers(play_elsewhere: Callable[..., Any]) -> None:
    """Nothing is sent before the last request is answered."""
    story = [send("Pay both"), decide(approve("c1")), decide(approve("c2"))]
    played = play_elsewhere("ai_sdk.ui", BOTH, say("Done."), tools=[PAY], caller=story)

    assert [["c1", "c2"], ["c2"], []] == played.requests
    assert 2 == len(played.inputs)


def test_a_chat_tells_two_turns_apart(play_elsewhere: Callable[..., Any]) -> None:
    """A message that is refused while an approved call runs fails its own turn only."""
    slow = tool("pay", returns("paid", waits_for="the bank"), parameters={"amount": "integer"}, approval="always")
    story = [send("Pay 5"), together(decide(approve("c1")), send("Hurry up"), signal("the bank"))]
    played = play_elsewhere("ai_sdk.ui", calls("pay", amount=5), say("Paid."), tools=[slow], caller=story)

    assert ["AI_MissingToolResultsError", "finished", "paused"] == sorted(played.outcomes)


@pytest.mark.parametrize("agent", ["ai_sdk", "ai_sdk.stream"])
def test_a_staged_answer_gives_way_to_a_newer_one(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """The message with answers is the caller's until it is handed in."""
    story = [send("Pay 5"), stage(approve("c1")), stage(reject("c1", "no")), go_on()]
    played = play_elsewhere(agent, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story)

    assert ([], {"c1": "no"}) == (played.ran, played.told)


@pytest.mark.parametrize("agent", ["ai_sdk", "ai_sdk.stream"])
def test_a_newer_answer_is_saved_by_a_caller_that_appends(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """It is in the message that it replaces, which was saved before."""
    story = [send("Pay both"), stage(approve("c1")), stage(reject("c1", "no"), approve("c2")), go_on()]
    variant = Variant(serialize="json", history="append", source="restored")
    played = play_elsewhere(agent, BOTH, say("Done."), tools=[PAY], caller=story, variant=variant)

    assert ([("pay", {"amount": 2})], {"c1": "no", "c2": "paid 2"}) == (played.ran, played.told)


@pytest.mark.parametrize("agent", ["ai_sdk.stream", "ai_sdk.ui"])
def test_a_stream_that_breaks_off_fails_the_turn(play_elsewhere: Callable[..., Any], agent: str) -> None:
    """The SDK tells it as a finish reason, and not as an error."""
    played = play_elsewhere(agent, say("I will pay", breaks_after=1), tools=[PAY], caller=[send("Pay 5")])

    assert ["Interrupted"] == played.outcomes
