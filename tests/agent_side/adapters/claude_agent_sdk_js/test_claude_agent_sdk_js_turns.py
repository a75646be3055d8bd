"""What the flavours of the Claude Agent SDK for TypeScript ask, run and tell."""

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
    elicits,
    fails,
    go_on,
    leave,
    reject,
    returns,
    rewrite,
    say,
    send,
    tool,
)
from pytest_approvals.journal.validation import find_violations
from pytest_approvals.scenario.model import Variant

pytestmark = pytest.mark.timeout(300)

Play = Callable[..., Any]

DEFERRED, INLINE, RULES = "claude_agent_sdk_js", "claude_agent_sdk_js.inline", "claude_agent_sdk_js.rules"
FLAVOURS = pytest.mark.parametrize("agent", [DEFERRED, INLINE, RULES])
WAITING = pytest.mark.parametrize("agent", [INLINE, RULES])

AMOUNT = {"amount": "integer"}
PAYS = calls("pay", amount=5)
BOTH = calls(call("pay", amount=5), call("pay", amount=6))
DONE = say("Done.")
APPROVED = [send("Pay 5."), decide(approve("c1"))]


@FLAVOURS
def test_an_approved_call_runs_once(play_elsewhere: Play, agent: str) -> None:
    """It runs with its arguments, and the model is told the result."""
    played = play_elsewhere(agent, PAYS, DONE, caller=APPROVED)

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)
    assert {"c1": "paid 5"} == played.told


@pytest.mark.slow
@pytest.mark.parametrize(
    "variant",
    [
        Variant(stream=True),
        Variant(serialize="copy", source="restored"),
        Variant(serialize="json", source="rebuilt"),
        Variant(serialize="json", history="append", source="restored"),
        Variant(serialize="native.home", source="restored"),
        Variant(serialize="native.home", resume="fresh", source="restored"),
    ],
    ids=lambda variant: variant.id,
)
def test_a_deferred_call_runs_once_however_its_session_is_kept(play_elsewhere: Play, variant: Variant) -> None:
    """Its state goes through every way to keep it."""
    played = play_elsewhere(DEFERRED, PAYS, DONE, caller=APPROVED, variant=variant)

    assert (["paused", "finished"], [("pay", {"amount": 5})]) == (played.outcomes, played.ran)


@FLAVOURS
def test_a_rejection_is_told_with_its_reason(play_elsewhere: Play, agent: str) -> None:
    """Nothing runs, and the model reads why."""
    played = play_elsewhere(agent, PAYS, DONE, caller=[send("Pay 5."), reject("c1", "too much")])

    assert [] == played.ran
    assert "too much" in played.told["c1"]


@pytest.mark.slow
@FLAVOURS
def test_an_edited_call_runs_with_the_edit(play_elsewhere: Play, agent: str) -> None:
    """`updatedInput` replaces the input of the call."""
    played = play_elsewhere(agent, PAYS, DONE, caller=[send("Pay 5."), edit("c1", amount=3)])

    assert [("pay", {"amount": 3})] == played.ran


@WAITING
def test_a_standing_approval_is_a_rule_of_the_cli(play_elsewhere: Play, agent: str) -> None:
    """The second call of the tool is not asked about."""
    story = (PAYS, calls("pay", amount=6), DONE)
    played = play_elsewhere(agent, *story, caller=[send("Pay."), decide(always("c1"))])

    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran
    assert ["paused", "finished"] == played.outcomes


@pytest.mark.slow
@FLAVOURS
def test_a_tool_of_a_server_is_gated(play_elsewhere: Play, agent: str) -> None:
    """The CLI connects to a server itself, and asks about its tools as about others."""
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    played = play_elsewhere(agent, PAYS, DONE, tools=[pay], caller=APPROVED)

    assert ([("pay", {"amount": 5})], {"c1": "paid 5"}) == (played.ran, played.told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("told", "answer"),
    [("paid 5 from main", {"accept": {"account": "main"}}), ("not done: the caller declined", "decline")],
    ids=["accepted", "declined"],
)
def test_a_server_asks_the_caller_in_an_approved_call(play_elsewhere: Play, told: str, answer: Any) -> None:
    """`onElicitation` takes the question, and the caller's answer reaches the server."""
    question = elicits("From where shall {amount} be paid?", form={"account": "string"})
    result = returns("paid {amount} from {account}", elicits=question)
    bank = tool("pay", result, parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    story = [send("Pay 5."), decide(approve("c1"), elicitations={"c1": answer})]
    played = play_elsewhere(INLINE, PAYS, DONE, tools=[bank], caller=story)

    assert told in played.told["c1"]


def test_an_ask_rule_comes_before_the_rule_of_the_server(play_elsewhere: Play) -> None:
    """The server is allowed as a whole, and one of its tools is asked about; a standing approval lifts the rule."""
    look = tool("look", returns("saw"), kind="mcp", server="bank")
    pay = tool("pay", returns("paid {amount}"), parameters=AMOUNT, approval="always", kind="mcp", server="bank")
    story = (calls("look"), calls(call("pay", amount=5)), calls(call("pay", amount=6)), DONE)
    played = play_elsewhere(RULES, *story, tools=[look, pay], caller=[send("Pay."), decide(always("c2"))])

    assert [["c2"], []] == played.requests
    assert [("look", {}), ("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


def test_a_function_in_the_process_is_lost_to_a_resumed_session(play_elsewhere: Play) -> None:
    """This is why the functions of the flavour that defers are behind an address."""
    story = {"caller": APPROVED, "options": {"functions": "in_process"}}
    played = play_elsewhere(DEFERRED, PAYS, DONE, **story)

    assert (["paused", "Error"], []) == (played.outcomes[:2], played.ran)


@pytest.mark.slow
def test_of_two_deferred_calls_one_is_lost(play_elsewhere: Play) -> None:
    """Both are deferred and one is reported; the other is never run, and gone from what the model is sent.

    This is why `parallel` is not claimed; the guide to hooks says that a reply with several calls cannot be deferred.
    """
    played = play_elsewhere(DEFERRED, BOTH, DONE, caller=[send("Pay 5 and 6."), approve("c2")])

    assert ([["c2"], []], [("pay", {"amount": 6})]) == (played.requests, played.ran)
    assert ["c2"] == list(played.told)


def test_of_two_calls_that_wait_the_second_is_asked_about_later(play_elsewhere: Play) -> None:
    """`canUseTool` is asked about a call when the one before it has run."""
    played = play_elsewhere(INLINE, BOTH, DONE, caller=[send("Pay."), approve("c1"), reject("c2")])

    assert ([["c1"], ["c2"], []], [("pay", {"amount": 5})]) == (played.requests, played.ran)


def test_a_message_closes_a_deferred_call(play_elsewhere: Play) -> None:
    """The model reads an error in place of its result, and nothing runs."""
    played = play_elsewhere(DEFERRED, PAYS, DONE, caller=[send("Pay 5."), send("Never mind.")])

    assert ([], {"c1": "[Tool result missing due to internal error]"}) == (played.ran, played.told)


@pytest.mark.slow
def test_a_deferred_call_is_asked_about_again(play_elsewhere: Play) -> None:
    """A session that is resumed without an answer defers the call again."""
    played = play_elsewhere(DEFERRED, PAYS, DONE, caller=[send("Pay 5."), go_on(), approve("c1")])

    assert ["paused", "paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


@pytest.mark.slow
def test_an_approval_is_about_the_call_as_it_was_shown(play_elsewhere: Play) -> None:
    """A session whose stored call was changed since then does not run it, and the model reads why."""
    pay = tool("pay", parameters={"to": "string"}, approval="always")
    story = [send("Pay."), rewrite("account-1111", "account-9999", where="hidden"), approve("c1")]
    saved = Variant(serialize="json", source="restored")
    played = play_elsewhere(DEFERRED, calls("pay", to="account-1111"), DONE, tools=[pay], caller=story, variant=saved)

    assert [] == played.ran
    assert "is not the one that was shown" in played.told["c1"]


def test_a_stream_shows_what_it_asks(play_elsewhere: Play) -> None:
    """The call and its request are shown, then the result and the text; each turn ends."""
    played = play_elsewhere(INLINE, PAYS, DONE, caller=APPROVED, variant=Variant(stream=True))

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]


@WAITING
def test_a_run_that_is_given_up_shows_nothing_more(play_elsewhere: Play, agent: str) -> None:
    """The result that the CLI makes up for the call is no part of a turn."""
    story = {"caller": [send("Pay 5."), cancel()], "variant": Variant(stream=True)}
    played = play_elsewhere(agent, PAYS, DONE, **story)

    assert [] == [one for one in played.shown if one["what"] == "result"]
    assert [] == find_violations(played.run.events)


@pytest.mark.slow
@WAITING
def test_a_run_that_is_left_asks_its_model_nothing_more(play_elsewhere: Play, agent: str) -> None:
    """The CLI wants to tell it of a question that nobody answers, and does not reach it."""
    played = play_elsewhere(agent, PAYS, DONE, caller=[send("Pay 5."), leave()])

    assert 1 == len(played.inputs)
    assert [] == find_violations(played.run.events)


@FLAVOURS
def test_a_model_that_fails_fails_the_turn(play_elsewhere: Play, agent: str) -> None:
    """The result is an error, which is thrown."""
    played = play_elsewhere(agent, fails(500), caller=[send("Pay 5.")])

    assert ["Error"] == played.outcomes
