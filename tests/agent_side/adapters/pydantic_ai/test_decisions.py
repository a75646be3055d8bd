"""Decisions, right ones and wrong ones, as the framework takes them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import (
    approve,
    asks_again,
    call,
    calls,
    decide,
    edit,
    go_on,
    malformed,
    raises,
    raw,
    reject,
    returns,
    say,
    stage,
    tool,
    unknown,
)
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

DONE = say("Done.")


def test_a_rejection_is_told_with_its_reason(play: Play, variant: Variant) -> None:
    """Nothing runs; the reason takes the place of the result."""
    played = play(caller=["Pay.", decide(reject("c1", "over the limit"))], variant=variant)

    assert ([], {"c1": "over the limit"}) == (played.ran, played.told)


def test_a_rejection_without_a_reason_is_told_in_the_framework_s_words(play: Play) -> None:
    """The framework has a sentence for it."""
    assert {"c1": "The tool call was denied."} == play(caller=["Pay.", decide(reject("c1"))]).told


def test_an_edit_runs_with_the_other_arguments(play: Play, variant: Variant) -> None:
    """They are validated like the model's own."""
    played = play(caller=["Pay.", decide(edit("c1", {"amount": "7"}, invalid=True))], variant=variant)

    assert [("pay", {"amount": 7})] == played.ran


def test_an_edit_that_does_not_fit_runs_nothing(play: Play) -> None:
    """The model is told why."""
    played = play(caller=["Pay.", decide(edit("c1", {"amount": "much"}, invalid=True))])

    assert [] == played.ran
    assert "int_parsing" in played.told["c1"]


@pytest.mark.parametrize("value", ["yes", 1, None, {"approved": True}, []])
def test_a_verdict_that_is_none_is_refused(play: Play, variant: Variant, value: Any) -> None:
    """The framework gets the value as it is, refuses it, and takes the right answer afterwards."""
    played = play(caller=["Pay.", decide(raw("c1", value)), decide(approve("c1"))], variant=variant)

    assert ["paused", "UserError", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


@pytest.mark.parametrize(("address", "error"), [("nobody", "UserError"), (None, "UserError"), (["c1"], "TypeError")])
def test_an_address_that_is_none_is_refused(play: Play, variant: Variant, address: Any, error: str) -> None:
    """It takes the place of a call id; a list cannot, since ids are keys."""
    played = play(caller=["Pay.", decide(malformed(address)), decide(approve("c1"))], variant=variant)

    assert ["paused", error, "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_an_unknown_request_is_refused(play: Play, variant: Variant) -> None:
    """Nothing runs, and the request stays open."""
    played = play(caller=["Pay.", decide(unknown("c9")), decide(approve("c1"))], variant=variant)

    assert ["paused", "UserError", "finished"] == played.outcomes


def test_a_decision_that_comes_late_is_refused(play: Play, variant: Variant) -> None:
    """The history has no open call any more."""
    played = play(caller=["Pay.", decide(approve("c1")), decide(approve("c1"))], variant=variant)

    assert ["paused", "finished", "UserError"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_a_value_can_be_handed_in_as_the_result_of_a_call(play: Play) -> None:
    """With the option `raw_in`, it is in the field for calls that run elsewhere; the framework does not mind."""
    played = play(caller=["Pay.", decide(raw("c1", "paid 5"))], options={"raw_in": "calls"})

    assert ["paused", "finished"] == played.outcomes
    assert ([], {"c1": "paid 5"}) == (played.ran, played.told)


def test_two_calls_of_one_id_fail_the_turn(play: Play) -> None:
    """The framework refuses what it could not tell apart."""
    twice = calls(call("pay", id="c1", amount=5), call("pay", id="c1", label="c1#2", repeats=True, amount=6))

    assert ["UnexpectedModelBehavior"] == play(twice, DONE).outcomes


@pytest.mark.parametrize("flavour", ["", "raised"])
def test_a_tool_can_ask_again(play: Play, variant: Variant, flavour: str) -> None:
    """The second request has the id of the first; the body is entered again after it was approved."""
    careful = tool("pay", asks_again("Sure?"), returns("paid"), parameters={"amount": "integer"}, approval="always")
    played = play(
        tools=[careful], caller=["Pay.", decide(approve("c1")), decide(approve("c1"))], variant=variant, flavour=flavour
    )

    assert [["c1"], ["c1"], []] == played.requests
    assert ["asked", "returned"] == [one["how"] for one in played.events("tool.end")]


def test_going_on_uses_what_was_put_aside(play: Play, variant: Variant) -> None:
    """Staged answers are saved with the history and used once."""
    played = play(caller=["Pay.", stage(reject("c1", "no")), go_on()], variant=variant)

    assert ["paused", "finished"] == played.outcomes
    assert {"c1": "no"} == played.told


def test_what_was_put_aside_is_used_once(play: Play, variant: Variant) -> None:
    """A tool that raised needs a new approval."""
    flaky = tool("pay", raises("no money"), returns("paid"), parameters={"amount": "integer"}, approval="always")
    played = play(tools=[flaky], caller=["Pay.", stage(approve("c1")), go_on(), go_on()], variant=variant)

    assert ["paused", "ToolRaised", "paused", "finished"] == played.outcomes
