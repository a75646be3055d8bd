"""Stories on the Claude Agent SDK: what each flavour asks, runs and tells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import (
    always,
    approve,
    call,
    calls,
    cancel,
    decide,
    edit,
    fails,
    go_on,
    leave,
    reject,
    restart,
    returns,
    rewrite,
    say,
    send,
    tool,
)
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

PAYS = calls("pay", amount=5)
AMOUNT = {"amount": "integer"}
DONE = say("Done.")


def test_an_approved_call_runs_once(play: Play, variant: Variant) -> None:
    """Its state goes through every way to keep it."""
    played = play(PAYS, DONE, caller=[send("Pay 5."), decide(approve("c1"))], variant=variant)

    assert [("pay", {"amount": 5})] == played.ran
    assert ["paused", "finished"] == played.outcomes


def test_a_rejection_is_told_with_its_reason(play: Play, flavour: str) -> None:
    """Nothing runs, and the model reads why."""
    played = play(PAYS, DONE, caller=[send("Pay 5."), reject("c1", "too much")], flavour=flavour)

    assert [] == played.ran
    assert "too much" in played.told["c1"]


def test_an_edited_call_runs_with_the_edit(play: Play, flavour: str) -> None:
    """`updated_input` replaces the input of the call."""
    played = play(PAYS, DONE, caller=[send("Pay 5."), edit("c1", amount=3)], flavour=flavour)

    assert [("pay", {"amount": 3})] == played.ran


@pytest.mark.parametrize("flavour", ["inline", "rules"])
def test_a_standing_approval_is_a_rule_of_the_cli(play: Play, flavour: str) -> None:
    """The second call of the tool is not asked about."""
    story = (PAYS, calls("pay", amount=6), DONE)
    played = play(*story, caller=[send("Pay."), decide(always("c1"))], flavour=flavour)

    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran
    assert ["paused", "finished"] == played.outcomes


def test_a_tool_of_a_server_is_gated(play: Play, flavour: str) -> None:
    """The CLI connects to a server itself, and asks about its tools as about others."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    played = play(PAYS, DONE, tools=[pay], caller=[send("Pay 5."), approve("c1")], flavour=flavour)

    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_message_closes_a_deferred_call(play: Play) -> None:
    """The model reads an error in place of its result, and nothing runs."""
    played = play(PAYS, DONE, caller=[send("Pay 5."), send("Never mind.")])

    assert [] == played.ran
    assert {"c1": "[Tool result missing due to internal error]"} == played.told


def test_the_reply_to_a_later_message_is_read(play: Play, variant: Variant) -> None:
    """A session of a store defers the call, which a message went past, once more; that is not what the turn came to."""
    replies = (PAYS, DONE, say("Goodbye."))
    played = play(*replies, caller=[send("Pay 5."), send("Never mind."), send("Goodbye")], variant=variant)

    assert [] == played.ran
    assert ["paused", "finished", "finished"] == played.outcomes


def test_a_message_goes_past_a_deferred_call_whose_tool_is_gone(play: Play) -> None:
    """The session says of an answer that the tool is not available; with a message it drops the call."""
    story = [send("Pay 5."), restart(without=["pay"]), approve("c1"), send("Never mind.")]
    variant = Variant(serialize="json", source="restored")
    played = play(PAYS, DONE, caller=story, variant=variant)

    assert [] == played.ran
    assert ["paused", "ResultError", "finished"] == [name.rpartition(".")[2] for name in played.outcomes]


def test_a_deferred_call_is_asked_about_again(play: Play) -> None:
    """A session that is resumed without an answer defers the call again."""
    played = play(PAYS, DONE, caller=[send("Pay 5."), go_on(), approve("c1")])

    assert ["paused", "paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_of_two_deferred_calls_one_is_lost(play: Play) -> None:
    """Both are deferred and one is reported; the other is never run, and gone from what the model is sent.

    This is why `parallel` is not claimed; the guide to hooks says that a reply with several calls cannot be deferred.
    """
    both = calls(call("pay", amount=5), call("pay", amount=6))
    played = play(both, DONE, caller=[send("Pay 5 and 6."), approve("c2")])

    assert [["c2"], []] == played.requests
    assert [("pay", {"amount": 6})] == played.ran
    assert ["c2"] == list(played.told)


def test_of_two_calls_that_wait_the_second_is_asked_about_later(play: Play) -> None:
    """`can_use_tool` is asked about a call when the one before it has run."""
    both = calls(call("pay", amount=5), call("pay", amount=6))
    played = play(both, DONE, caller=[send("Pay."), approve("c1"), reject("c2")], flavour="inline")

    assert [["c1"], ["c2"], []] == played.requests
    assert [("pay", {"amount": 5})] == played.ran


@pytest.mark.parametrize("flavour", ["inline", "rules"])
def test_a_run_that_is_given_up_shows_nothing_more(play: Play, flavour: str) -> None:
    """The result that the CLI makes up for the call is no part of a turn."""
    story = [send("Pay 5."), cancel()]
    played = play(PAYS, DONE, caller=story, flavour=flavour, variant=Variant(stream=True))

    assert [] == [one for one in played.shown if one["what"] == "result"]
    assert [] == find_violations(played.run.events)


@pytest.mark.parametrize("flavour", ["inline", "rules"])
def test_a_run_that_is_left_asks_its_model_nothing_more(play: Play, flavour: str) -> None:
    """The CLI wants to tell it of a question that nobody answers, and does not reach it."""
    played = play(PAYS, DONE, caller=[send("Pay 5."), leave()], flavour=flavour)

    assert 1 == len(played.inputs)
    assert [] == find_violations(played.run.events)


def test_a_model_that_fails_fails_the_turn(play: Play, flavour: str) -> None:
    """The error of the result is raised as the SDK's `query` does."""
    played = play(fails(500), caller=[send("Pay 5.")], flavour=flavour)

    assert ["ResultError"] == [name.rpartition(".")[2] for name in played.outcomes]


def test_an_approval_is_about_the_call_as_it_was_shown(play: Play) -> None:
    """A session whose stored call was changed since then does not run it, and the model reads why."""
    pay = tool("pay", parameters={"to": "string"}, approval="always")
    story = [send("Pay."), rewrite("account-1111", "account-9999", where="hidden"), approve("c1")]
    saved = Variant(serialize="json", source="restored")
    played = play(calls("pay", to="account-1111"), DONE, tools=[pay], caller=story, variant=saved)

    assert [] == played.ran
    assert "is not the one that was shown" in played.told["c1"]
