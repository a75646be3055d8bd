"""How turns end: paused, finished, failed, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import always, approve, calls, decide, edit, fails, raises, raw, reject, returns, say, tool
from pytest_approvals.agent_side.contract import Limits
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]
DETAILED = pytest.mark.parametrize("flavour", ["", "sequential", "tool", "middleware", "handler"])


def two(first: tuple[str, Any], second: tuple[str, Any], **more: Any) -> Any:
    """One reply with two calls, c1 and c2."""
    return calls(*calls(first[0], **first[1]).calls, *calls(second[0], **second[1]).calls, **more)


PAYS = ("pay", {"amount": 5}), ("pay", {"amount": 6})


def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant, flavour: str) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(variant=variant, flavour=flavour)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


@DETAILED
def test_a_rejection_reaches_the_model_with_its_reason(play: Play, flavour: str) -> None:
    """The tool does not run, and its result is the reason."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour=flavour)

    assert ([], {"c1": "too much"}) == (played.ran, played.told)


def test_the_intervention_tells_the_model_what_was_asked(play: Play) -> None:
    """It takes no reason."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour="intervention")

    assert {"c1": 'CONFIRMATION_FAILED: Approve "pay"?\n  Input: {"amount": 5}'} == played.told


@DETAILED
def test_an_edited_call_runs_with_the_other_arguments(play: Play, flavour: str) -> None:
    """What the person wrote runs, and the call in the history stays as the model made it."""
    played = play(caller=["Pay.", decide(edit("c1", {"amount": 1}))], flavour=flavour)

    assert [("pay", {"amount": 1})] == played.ran
    assert "call c1 {'amount': 5}" in played.inputs[-1]


@pytest.mark.parametrize("flavour", ["", "tool", "middleware", "handler", "intervention"])
def test_calls_of_one_reply_wait_for_their_own_answers(play: Play, flavour: str, variant: Variant) -> None:
    """The other request stays open, and what ran is not run again."""
    played = play(
        two(*PAYS),
        say("Done."),
        caller=["Go.", decide(approve("c2")), decide(approve("c1"))],
        flavour=flavour,
        variant=variant,
    )

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert [("pay", {"amount": 6}), ("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5", "c2": "paid 6"} == played.told


def test_a_sequential_executor_asks_one_after_the_other(play: Play) -> None:
    """What stands behind the first question waits, free or not."""
    replies = two(PAYS[0], ("look", {"what": "x"})), say("Done.")
    played = play(*replies, caller=["Go.", decide(approve("c1"))], flavour="sequential")

    assert [("pay", {"amount": 5}), ("look", {"what": "x"})] == played.ran


def test_a_free_call_runs_beside_the_question(play: Play) -> None:
    """Its result is kept in the interrupt state, through JSON, too."""
    replies = two(PAYS[0], ("look", {"what": "x"})), say("Done.")
    json = Variant(serialize="json", source="restored")
    played = play(*replies, caller=["Go.", decide(approve("c1"))], variant=json)

    assert [("look", {"what": "x"}), ("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5", "c2": "saw x"} == played.told


def test_trust_is_kept_in_the_state_of_the_agent(play: Play, variant: Variant, flavour: str) -> None:
    """The next call of that tool is not asked about."""
    replies = calls("pay", amount=5), calls("pay", amount=6), say("Done.")
    played = play(*replies, caller=["Pay.", decide(always("c1"))], flavour=flavour, variant=variant)

    assert [["c1"], []] == played.requests
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


def test_text_beside_a_pause_is_told(play: Play, flavour: str) -> None:
    """It is in the message of the result."""
    played = play(calls(*calls("pay", amount=5).calls, say="Let me pay."), say("Done."), flavour=flavour)

    assert "Let me pay." == played.events("turn.end")[0]["text"]


def test_a_new_message_is_refused_while_a_question_is_open(play: Play, flavour: str) -> None:
    """The caller can see it, and the question stays open."""
    played = play(caller=["Pay.", "And hurry.", decide(approve("c1"))], flavour=flavour)

    assert ["paused", "TypeError", "finished"] == played.outcomes


def test_an_answer_that_the_gate_cannot_read_fails_the_turn(play: Play) -> None:
    """The right answer works afterwards."""
    played = play(caller=["Pay.", decide(raw("c1", "perhaps")), decide(approve("c1"))])

    assert ["paused", "EventLoopException", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_a_tool_that_raises_is_told_to_the_model(play: Play, flavour: str) -> None:
    """The framework makes an error of it, and goes on."""
    broken = tool("pay", raises("no connection"), parameters={"amount": "integer"}, approval="always")
    played = play(tools=[broken], flavour=flavour)

    assert (["paused", "finished"], {"c1": "Error: ToolRaised - no connection"}) == (played.outcomes, played.told)


def test_a_model_that_fails_fails_the_turn(play: Play, flavour: str) -> None:
    """What ran before is not run again when the next turn goes on."""
    replies = calls("pay", amount=5), fails(500), say("Done.")
    played = play(*replies, caller=["Pay.", decide(approve("c1")), "Go on."], flavour=flavour)

    assert ["paused", "EventLoopException", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_a_limit_of_turns_ends_the_turn(play: Play) -> None:
    """The framework finishes without a word of the model."""
    played = play(calls("look", what="x"), say("Done."), caller=["Go."], limits=Limits(model_replies=1))

    assert (["finished"], None) == (played.outcomes, played.events("turn.end")[0].get("output"))


def test_the_stream_shows_text_calls_requests_and_results(play: Play, flavour: str) -> None:
    """In the order in which a consumer sees them."""
    played = play(variant=Variant(stream=True), flavour=flavour)

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]


def test_a_tool_asks_again_in_its_middle(play: Play, flavour: str) -> None:
    """The body is entered again after the second answer, and what it did before is not done again."""
    from pytest_approvals import asks_again

    wire = tool("pay", asks_again("sure?"), returns("paid {amount}"), parameters={"amount": "integer"})
    played = play(tools=[wire], caller=["Pay.", decide(approve("c1"))], flavour=flavour)

    assert (["paused", "finished"], 2) == (played.outcomes, len(played.ran))
    assert {"c1": "paid 5"} == played.told


def test_a_result_that_is_no_text_is_told_as_json(play: Play) -> None:
    """As the framework's decorator makes it."""
    count = tool("pay", returns({"left": 3}), parameters={"amount": "integer"}, approval="always")

    assert {"c1": '{"left": 3}'} == play(tools=[count]).told


def test_a_call_whose_sub_agent_asks_is_not_asked_about_again(play: Play) -> None:
    """It was approved and has begun, so what a saved agent waits for is the question of its sub-agent only."""
    story = """
tools:
  ask: {approval: always, runs: helper}
  helper/pay: {approval: always, parameters: {amount: integer}}
agents:
  helper: {model: [{calls: [{id: h1, tool: pay, arguments: {amount: 5}}]}, {say: Paid.}]}
model:
  - calls: [{id: c1, tool: ask, arguments: {input: Pay}}]
  - say: Done.
caller:
  - send: Pay
  - decide: {c1: approve}
  - decide: {c1/h1: approve}
"""
    played = play(text=story, variant=Variant(serialize="copy", source="restored"))

    restored = [[one["label"] for one in event["pending"]] for event in played.events("store.restore")]
    assert ["c1/h1"] == restored[-1]
