"""How turns end: paused, finished, failed, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, fails, go_on, raises, returns, say, send, tool
from pytest_approvals.agent_side.contract import Limits
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]


@pytest.mark.parametrize("flavour", ["", "raised"])
def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant, flavour: str) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(variant=variant, flavour=flavour)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_an_ungated_sibling_runs_in_the_pausing_turn(play: Play, variant: Variant) -> None:
    """The results of both come next to their calls, in the model's order."""
    both = calls(*calls("pay", amount=5).calls, *calls("look", what="x").calls)
    played = play(both, say("Done."), variant=variant)

    assert [["c1"], []] == played.requests
    assert [
        "user Go ahead.",
        "call c1 {'amount': 5}",
        "call c2 {'what': 'x'}",
        "result c1 paid 5",
        "result c2 saw x",
    ] == (played.inputs[-1])


def test_text_beside_a_pause_is_told(play: Play) -> None:
    """The last response of the framework's result has it."""
    played = play(calls(*calls("pay", amount=5).calls, say="Let me pay."), say("Done."))

    assert "Let me pay." == played.events("turn.end")[0]["text"]


def test_a_message_and_answers_go_together(play: Play, variant: Variant) -> None:
    """The message follows the results."""
    played = play(caller=["Pay.", send("And hurry.", approve("c1"))], variant=variant)

    assert ["result c1 paid 5", "user And hurry."] == played.inputs[-1][-2:]


def test_a_model_that_fails_after_the_tool_ran_is_asked_again(play: Play, variant: Variant) -> None:
    """The captured messages hold the result, so that going on runs nothing twice and adds nothing to the input."""
    played = play(
        calls("pay", amount=5),
        fails(500),
        say("Done."),
        caller=["Pay.", decide(approve("c1")), go_on()],
        variant=variant,
    )

    assert ["paused", "ModelServerError", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert played.inputs[-2] == played.inputs[-1]


def test_a_model_that_fails_at_once_is_asked_again(play: Play, variant: Variant) -> None:
    """The message is kept, and is sent once."""
    played = play(fails(429), say("Done."), caller=["Hello.", go_on()], variant=variant)

    assert ["ModelRateLimitError", "finished"] == played.outcomes
    assert [["user Hello."], ["user Hello."]] == played.inputs


def test_a_stream_that_breaks_leaves_nothing_of_its_answer(play: Play) -> None:
    """The broken response is discarded, and the model is asked again."""
    broken = calls(*calls("pay", amount=5).calls, say="Let me", breaks_after=2)
    played = play(
        broken,
        calls("pay", amount=5),
        say("Done."),
        caller=["Pay.", go_on(), decide(approve("c1"))],
        variant=Variant(stream=True),
        equal_arguments=True,
        requires=["broken_stream"],
    )

    assert ["ModelConnectionError", "paused", "finished"] == played.outcomes
    assert [["user Pay."], ["user Pay."]] == played.inputs[:2]
    assert [("pay", {"amount": 5})] == played.ran


def test_a_tool_that_raises_fails_the_turn_and_can_be_approved_again(play: Play, variant: Variant) -> None:
    """The call stays open, because it has no result."""
    flaky = tool("pay", raises("no money"), returns("paid"), parameters={"amount": "integer"}, approval="always")
    played = play(tools=[flaky], caller=["Pay.", decide(approve("c1")), decide(approve("c1"))], variant=variant)

    assert ["paused", "ToolRaised", "finished"] == played.outcomes
    assert 2 == len(played.ran)


def test_what_ran_beside_a_tool_that_raised_is_kept(play: Play, variant: Variant) -> None:
    """Its result is in the captured messages, and only the other call is still open."""
    flaky = tool("pay", raises("no money"), returns("paid"), parameters={"amount": "integer"}, approval="always")
    wipe = tool("wipe", returns("wiped"), approval="always")
    both = calls(*calls("pay", amount=5).calls, *calls("wipe").calls)
    played = play(
        both,
        say("Done."),
        tools=[flaky, wipe],
        variant=variant,
        caller=["Go.", decide(approve("c1"), approve("c2")), decide(approve("c1"))],
    )

    assert ["paused", "ToolRaised", "finished"] == played.outcomes
    assert 1 == played.ran.count(("wipe", {}))
    assert {"c1": "paid", "c2": "wiped"} == played.told


REUSED_ID = """
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - calls: [{id: c1, tool: pay, arguments: {amount: 6}, repeats: true}]
  - say: Done.
caller:
  - send: Pay 5
  - restart: {without: [pay]}
  - decide: {c1: approve}
  - go_on: true
"""


def test_a_later_call_with_the_same_id_does_not_open_a_request_again(play: Play) -> None:
    """The run fails with the second call of a tool that is gone, and asks about nothing."""
    played = play(text=REUSED_ID, variant=Variant(serialize="copy"))

    assert ["paused", "UnexpectedModelBehavior"] == played.outcomes[:2]
    restored = played.events("store.restore")
    assert [["c1"], []] == [[request["label"] for request in event["pending"]] for event in restored]


def test_going_on_without_an_answer_asks_again(play: Play, variant: Variant) -> None:
    """A run without answers surfaces the same request."""
    played = play(caller=["Pay.", go_on(), decide(approve("c1"))], variant=variant)

    assert [["c1"], ["c1"], []] == played.requests
    assert [("pay", {"amount": 5})] == played.ran


def test_a_message_instead_of_an_answer_is_refused(play: Play, variant: Variant) -> None:
    """The framework says so, and the request stays open."""
    played = play(caller=["Pay.", "Never mind.", decide(approve("c1"))], variant=variant)

    assert ["paused", "UserError", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


@pytest.mark.parametrize(
    ("limits", "outcomes"),
    [
        (Limits(model_replies=1), ["UsageLimitExceeded"]),
        (Limits(tool_calls=1), ["UsageLimitExceeded"]),
        (Limits(model_replies=2, tool_calls=2), ["finished"]),
    ],
)
def test_limits_stop_a_turn(play: Play, limits: Limits, outcomes: list[str]) -> None:
    """They are `UsageLimits` of one run."""
    two = calls(*calls("look", what="a").calls, *calls("look", what="b").calls)

    assert outcomes == play(two, say("Done."), limits=limits).outcomes


def test_a_limit_counts_a_resumed_turn_anew(play: Play, variant: Variant) -> None:
    """One reply a turn is enough for a pause and what follows it."""
    assert ["paused", "finished"] == play(limits=Limits(model_replies=1), variant=variant).outcomes
