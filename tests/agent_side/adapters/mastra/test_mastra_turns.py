"""What the agents of Mastra do in a turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import (
    approve,
    call,
    calls,
    decide,
    elicits,
    leave,
    reject,
    returns,
    say,
    send,
    tool,
    unknown,
)
from pytest_approvals.scenario.model import Variant

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
LOOK = tool("look", returns("saw {what}"), parameters={"what": "string"})
BOTH = calls(call("pay", amount=1), call("pay", amount=2))
AGENT = "mastra"
STREAM = Variant(stream=True)


@pytest.mark.parametrize(
    "variant",
    [Variant(), STREAM, Variant(serialize="native.libsql", source="rebuilt", stream=True)],
    ids=lambda variant: variant.id,
)
def test_an_approved_call_runs(play_elsewhere: Callable[..., Any], variant: Variant) -> None:
    """It runs once, with its arguments, and the model is told the result."""
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], variant=variant)

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)
    assert {"c1": "paid 5"} == played.told


@pytest.mark.parametrize("variant", [Variant(), STREAM], ids=lambda variant: variant.id)
def test_a_rejected_call_is_told_with_its_reason(play_elsewhere: Callable[..., Any], variant: Variant) -> None:
    """The reason is what the model reads as the result."""
    story = [send("Pay 5"), decide(reject("c1", "no money"))]
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story, variant=variant)

    assert ([], {"c1": "no money"}) == (played.ran, played.told)


def test_calls_are_asked_about_one_by_one(play_elsewhere: Callable[..., Any]) -> None:
    """The second call of a reply is asked about when the first one has run."""
    story = [send("Pay both"), decide(approve("c1")), decide(approve("c2"))]
    played = play_elsewhere(AGENT, BOTH, say("Done."), tools=[PAY], caller=story)

    assert [["c1"], ["c2"], []] == played.requests
    assert [("pay", {"amount": 1}), ("pay", {"amount": 2})] == played.ran


@pytest.mark.parametrize("variant", [Variant(), STREAM], ids=lambda variant: variant.id)
def test_a_gate_can_be_given_with_the_message(play_elsewhere: Callable[..., Any], variant: Variant) -> None:
    """The tool has none of its own then: what is rejected does not run, and what needs no approval does."""
    story = [send("Look, then pay"), decide(reject("c2"))]
    model = [calls("look", what="it"), calls("pay", amount=5), say("Not paid.")]
    options = {"gate": "call"}
    played = play_elsewhere(AGENT, *model, tools=[PAY, LOOK], caller=story, options=options, variant=variant)

    assert ([["c2"], []], ["look"]) == (played.requests, [name for name, _ in played.ran])


def test_a_stream_shows_what_it_asks(play_elsewhere: Callable[..., Any]) -> None:
    """The call and its request are shown, then the result and the text; each run ends."""
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], variant=STREAM)

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]


def test_a_streamed_turn_ends_when_its_calls_have_ended(play_elsewhere: Callable[..., Any]) -> None:
    """The stream ends with the request; the call behind it runs then, and belongs to the turn."""
    story = [send("Pay and look"), leave()]
    model = calls(call("pay", amount=5), call("look", what="it"))
    played = play_elsewhere(AGENT, model, tools=[PAY, LOOK], caller=story, variant=STREAM)

    assert [("look", {"what": "it"})] == played.ran
    assert ["turn.start", "tool.start", "tool.end", "turn.end"] == [
        one["event"] for one in played.events("turn.start", "tool.start", "tool.end", "turn.end")
    ]


@pytest.mark.parametrize(
    ("told", "answer"),
    [
        ("paid 5 from main", {"accept": {"account": "main"}}),
        ("not done: the caller declined", "decline"),
    ],
    ids=["accepted", "declined"],
)
def test_a_server_asks_the_caller_in_an_approved_call(
    play_elsewhere: Callable[..., Any], told: str, answer: Any
) -> None:
    """The caller's answer reaches the server, and the model is told what that makes of it."""
    question = elicits("From where shall {amount} be paid?", form={"account": "string"})
    bank = tool(
        "pay",
        returns("paid {amount} from {account}", elicits=question),
        parameters={"amount": "integer"},
        approval="always",
        kind="mcp",
        server="bank",
    )
    story = [send("Pay 5"), decide(approve("c1"), elicitations={"c1": answer})]
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[bank], caller=story)

    assert f'"text":"{told}"' in played.told["c1"]


def test_an_answer_to_what_is_not_asked_makes_nothing_run(play_elsewhere: Callable[..., Any]) -> None:
    """Mastra refuses it before the answer beside it counts."""
    story = [send("Pay 5"), decide(approve("c1"), unknown("nope")), leave()]
    played = play_elsewhere(AGENT, calls("pay", amount=5), say("Done."), tools=[PAY], caller=story)

    assert (["paused", "Error"], []) == (played.outcomes, played.ran)
    assert ["c1"] == played.pending
