"""How turns end: paused, finished, failed, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, edit, fails, go_on, reject, returns, say, tool
from pytest_approvals.agent_side.adapters.agno import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint, Limits, Parameter, Reply
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import AdapterSession, FakeWorld

Play = Callable[..., Any]

PAY = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always")
LOOK = tool("look", returns("saw {what}"), parameters={"what": "string"})


def test_an_approved_call_runs_once_and_is_told(play: Play, variant: Variant, flavour: str) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(variant=variant, flavour=flavour)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_rejection_reaches_the_model_with_its_reason(play: Play, variant: Variant, flavour: str) -> None:
    """The tool does not run, and the result is the note of the rejection."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour=flavour, variant=variant)

    assert ([], {"c1": "too much"}) == (played.ran, played.told)


def test_an_edit_runs_in_place_of_the_call(play: Play, variant: Variant) -> None:
    """The tool gets the arguments that the requirement was changed to; the model's call stays as it was."""
    played = play(caller=["Pay.", decide(edit("c1", {"amount": 4}))], variant=variant)

    assert [("pay", {"amount": 4})] == played.ran
    assert ["call c1 {'amount': 5}"] == [line for line in played.inputs[-1] if line.startswith("call")]


def test_a_free_sibling_runs_at_once(play: Play) -> None:
    """Its result stands before that of the call that waited."""
    both = calls(*calls("pay", amount=5).calls, *calls("look", what="a").calls)
    played = play(both, say("Done."))

    assert ["look", "pay"] == [name for name, _ in played.ran]
    assert {"c1": "paid 5", "c2": "saw a"} == played.told


def test_a_failing_model_fails_the_turn(play: Play, flavour: str) -> None:
    """The status `error` of a run is the failure that a caller sees; the run can be continued by its id."""
    played = play(fails(500), say("Hello."), caller=["Hi.", go_on()], flavour=flavour)

    assert ["RunFailed", "finished"] == played.outcomes


def test_a_new_message_is_a_new_run(play: Play) -> None:
    """The run that is paused stays so, and is left out of what the model is shown."""
    played = play(
        calls("pay", amount=5),
        say("Sunny."),
        say("Paid."),
        caller=["Pay.", "What is the weather?", decide(approve("c1"))],
    )

    assert ["paused", "finished", "finished"] == played.outcomes
    assert ["user What is the weather?"] == played.inputs[1]
    assert [("pay", {"amount": 5})] == played.ran


def test_a_stream_shows_calls_requests_results_and_text(play: Play, flavour: str) -> None:
    """What a consumer sees is told in the order in which it is shown."""
    played = play(flavour=flavour, variant=Variant(stream=True))

    assert ["call", "request", "end", "call", "result", "text", "end"] == _once(played.shown)


def _once(shown: list[dict[str, Any]]) -> list[str]:
    """The kinds of what was shown, each once where several follow each other."""
    kinds = [event["what"] for event in shown]
    return [kind for number, kind in enumerate(kinds) if number == 0 or kinds[number - 1] != kind]


def test_calls_over_the_limit_are_answered_by_the_framework(play: Play) -> None:
    """`tool_call_limit` leaves the call out and says so to the model."""
    both = calls(*calls("look", what="a").calls, *calls("look", what="b").calls)
    played = play(both, say("Done."), limits=Limits(tool_calls=1))

    assert [("look", {"what": "a"})] == played.ran
    assert "limit" in played.told["c2"].lower()


def test_a_member_of_a_team_is_asked_about(play: Play, variant: Variant) -> None:
    """Its request surfaces on the run of the team, and the leader is told what it answers."""
    inner = tool("pay", returns("paid {amount}"), parameters={"amount": "integer"}, approval="always", agent="helper")
    ask = tool("ask", parameters={"input": "string"}, runs="helper")
    played = play(
        calls("ask", input="Pay 5"),
        say("Settled."),
        tools=[ask, inner],
        agents={"helper": [calls("pay", amount=5), say("I paid.")]},
        flavour="team",
        variant=variant,
    )

    assert [["c1/c1"], []] == played.requests
    assert [("pay", {"amount": 5})] == played.ran
    assert "I paid." in played.told["c1"]


def test_a_structured_answer_is_an_object() -> None:
    """The framework's output schema makes one of the model's text."""
    blueprint = Blueprint(answer={"total": Parameter(type="integer")})
    session = AdapterSession(FLAVOURS[""], blueprint, FakeWorld([Reply(answer={"total": 5})], ()))

    assert {"total": 5} == session.finished("How much?")
    session.end()


OLD_REFERENCE = """
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - say: Hello.
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
caller:
  - send: Hello
  - save: before
  - send: Pay 5
  - restore: before
  - decide: {c1: approve}
"""


@pytest.mark.parametrize("store", ["sqlite", "async_sqlite"])
def test_what_is_saved_of_a_session_in_a_database_names_none_of_its_runs(play: Play, store: str) -> None:
    """It goes on from its newest run, also out of a reference that is older than that."""
    played = play(text=OLD_REFERENCE, variant=Variant(serialize=f"native.{store}", source="restored"))
    old = [event for event in played.events("store.restore") if event["name"] == "before"][-1]

    assert old["present"]
    assert ["finished", "paused", "finished"] == played.outcomes
    assert {"c1": "paid 5"} == played.told
