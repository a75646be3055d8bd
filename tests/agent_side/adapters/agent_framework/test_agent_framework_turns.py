"""How turns end, and what the model is told, in the flavours that share one kind of session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pytest_approvals import approve, calls, decide, fails, go_on, raises, reject, say, tool
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]


def two(first: tuple[str, Any], second: tuple[str, Any]) -> Any:
    """One reply with two calls, c1 and c2."""
    return calls(*calls(first[0], **first[1]).calls, *calls(second[0], **second[1]).calls)


PAYS = ("pay", {"amount": 5}), ("pay", {"amount": 6})
TOLD_NO = "Error: Tool call invocation was rejected by user."


def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant, flavour: str) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(variant=variant, flavour=flavour)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_rejection_is_told_without_its_reason(play: Play, flavour: str) -> None:
    """The tool does not run, and the model reads the framework's own words."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour=flavour)

    assert ([], TOLD_NO) == (played.ran, played.told["c1"])


def test_a_free_sibling_waits_with_the_gated_call(play: Play, flavour: str) -> None:
    """The whole reply runs when its gated call is answered, also where that is rejected."""
    played = play(two(PAYS[0], ("look", {"what": "x"})), say("Done."), caller=["Go.", decide(reject("c1", "no"))])

    paused = played.events("turn.end")[0]["n"]
    assert [("look", {"what": "x"})] == played.ran
    assert [True] == [event["n"] > paused for event in played.events("tool.start")]


def test_the_first_answers_wait_for_the_last(play: Play, variant: Variant) -> None:
    """A partial answer asks neither model nor tool; what is still open is shown again."""
    played = play(
        two(*PAYS),
        say("Done."),
        caller=["Go.", decide(approve("c2")), decide(approve("c1"))],
        variant=variant,
    )

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran
    assert 2 == len(played.inputs)


def test_the_middleware_asks_one_by_one(play: Play, variant: Variant) -> None:
    """Of two requests the second one surfaces when the first one was answered."""
    played = play(
        two(*PAYS),
        say("Done."),
        caller=["Go.", decide(approve("c1"), approve("c2"))],
        flavour="approval_middleware",
        variant=variant,
    )

    assert [["c1"], ["c2"], []] == played.requests
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


def test_a_standing_approval_covers_later_calls(play: Play, variant: Variant) -> None:
    """The next call of the tool runs unasked."""
    played = play(
        text="""
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - calls: [{id: c2, tool: pay, arguments: {amount: 6}}]
  - say: Done.
caller:
  - send: Pay twice.
  - decide: {c1: always}
""",
        flavour="approval_middleware",
        variant=variant,
    )

    assert [["c1"], []] == played.requests
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


def test_a_condition_is_asked_about_each_call(play: Play) -> None:
    """What the condition lets pass runs unasked, and the policy sees arguments and call id."""
    played = play(
        text="""
tools:
  pay: {approval: {argument: amount, greater_than: 100}, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls:
      - {id: c1, tool: pay, arguments: {amount: 5}}
      - {id: c2, tool: pay, arguments: {amount: 500}}
  - say: Done.
caller:
  - send: Pay twice.
  - decide: {c2: approve}
""",
        flavour="approval_middleware",
    )

    assert [("c1", False), ("c2", True)] == [(one["call_id"], one["answer"]) for one in played.events("tool.gate")]
    assert [["c2"], []] == played.requests


def test_going_on_leaves_the_call_out(play: Play) -> None:
    """Without an answer the model is asked as if it had not made the call, which can still be answered."""
    played = play(calls("pay", amount=5), say("Hm."), say("Done."), caller=["Pay.", go_on()], variant=Variant())

    assert [["user Pay."], ["user Pay."]] == played.inputs[:2]
    assert ["paused", "finished"] == played.outcomes[:2]


def test_a_tool_that_raises_is_told_in_the_frameworks_words(play: Play, flavour: str) -> None:
    """What the tool said is kept from the model."""
    broken = tool("pay", raises("the bank is closed"), parameters={"amount": "integer"}, approval="always")
    played = play(tools=[broken], flavour=flavour)

    assert {"c1": "Error: Function failed."} == played.told


def test_a_failed_model_is_the_callers_to_see(play: Play) -> None:
    """What the scripted client raises goes out as it is."""
    played = play(fails(500), caller=["Pay."])

    assert ["ModelDown"] == played.outcomes


def test_a_failed_provider_is_an_error_of_the_client(play: Play) -> None:
    """The clients for OpenAI make an error of their own of it."""
    played = play(fails(500), caller=["Pay."], flavour="openai_chat")

    assert ["ChatClientException"] == played.outcomes


def test_defaults_and_coercion_are_the_frameworks(play: Play) -> None:
    """Arguments reach the body after validation, with the function's own defaults."""
    played = play(
        text="""
tools:
  pay:
    approval: always
    parameters: {amount: integer, to: {type: string, default: ann}}
    returns: paid
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: "5"}, invalid: true}]
  - say: Done.
caller:
  - send: Pay.
  - decide: {c1: approve}
"""
    )

    assert [("pay", {"amount": 5, "to": "ann"})] == played.ran
