"""How turns end: paused, finished, failed, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, call, calls, decide, edit, fails, go_on, raises, reject, returns, say, tool
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]


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


@pytest.mark.parametrize("flavour", ["workbench", "tools", "swarm", "code_executor"])
def test_a_rejection_reaches_the_model_with_its_reason(play: Play, flavour: str) -> None:
    """The tool does not run, and the result says why."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour=flavour)

    assert ([], True) == (played.ran, "too much" in played.told["c1"])


def test_a_rejection_without_agentchat_is_told(play: Play) -> None:
    """The tool does not run, and the result is an error."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour="intervention")

    assert ([], "Error: ") == (played.ran, played.told["c1"])


@pytest.mark.parametrize("flavour", ["workbench", "tools", "swarm", "intervention"])
def test_an_edited_call_runs_with_the_other_arguments(play: Play, flavour: str) -> None:
    """What the person wrote runs, and the call in the history stays as the model made it."""
    played = play(caller=["Pay.", decide(edit("c1", {"amount": 1}))], flavour=flavour)

    assert [("pay", {"amount": 1})] == played.ran
    assert "call c1 {'amount': 5}" in played.inputs[-1]


def test_a_handler_can_send_a_call_to_another_tool(play: Play) -> None:
    """An intervention handler may return another message."""
    played = play(caller=["Pay.", decide(edit("c1", {"what": "x"}, tool="look"))], flavour="intervention")

    assert [("look", {"what": "x"})] == played.ran


def test_parallel_calls_are_asked_about_together(play: Play, flavour: str, variant: Variant) -> None:
    """Each waits for its own answer, and what ran is not run again."""
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


def test_a_free_sibling_runs_at_once(play: Play, flavour: str) -> None:
    """It does not wait for the answer to the gated one."""
    played = play(two(PAYS[0], ("look", {"what": "x"})), say("Done."), caller=["Go.", decide(approve("c1"))])
    looked, paid = (event["n"] for event in played.events("tool.start"))
    paused = played.events("turn.end")[0]["n"]

    assert looked < paused < paid


def test_a_handler_is_asked_about_one_call_at_a_time(play: Play) -> None:
    """The runtime sees the next call when the first one was decided."""
    played = play(
        two(*PAYS), say("Done."), caller=["Go.", decide(approve("c1")), decide(approve("c2"))], flavour="intervention"
    )

    assert [["c1"], ["c2"], []] == played.requests


def test_going_on_without_an_answer_asks_again(play: Play, flavour: str, variant: Variant) -> None:
    """A run that waits still waits."""
    played = play(caller=["Pay.", go_on(), decide(approve("c1"))], flavour=flavour, variant=variant)

    assert [["c1"], ["c1"], []] == played.requests
    assert [("pay", {"amount": 5})] == played.ran


def test_a_model_that_fails_after_the_tool_ran_is_asked_again(play: Play, flavour: str, variant: Variant) -> None:
    """The conversation has the result, so that going on runs nothing twice."""
    played = play(
        calls("pay", amount=5),
        fails(500),
        say("Done."),
        caller=["Pay.", decide(approve("c1")), go_on()],
        flavour=flavour,
        variant=variant,
    )

    assert ["paused", "ModelDown", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert played.inputs[-2] == played.inputs[-1]


def test_a_tool_that_raises_is_told(play: Play, flavour: str) -> None:
    """The model reads the error."""
    flaky = tool("pay", raises("no money"), returns("paid"), parameters={"amount": "integer"}, approval="always")
    played = play(tools=[flaky], caller=["Pay.", decide(approve("c1"))], flavour=flavour)

    assert (["paused", "finished"], {"c1": "no money"}) == (played.outcomes, played.told)


@pytest.mark.parametrize("flavour", ["workbench", "tools", "swarm"])
def test_a_stream_shows_calls_requests_results_and_text(play: Play, flavour: str) -> None:
    """What a consumer sees is told in the order in which it is shown."""
    played = play(flavour=flavour, variant=Variant(stream=True))
    kinds = [event["what"] for event in played.shown]

    assert ["call", "request", "result", "text", "end"] == list(dict.fromkeys(kinds))


@pytest.mark.parametrize("flavour", ["workbench", "tools"])
def test_a_stream_shows_the_results_of_a_restored_run(play: Play, flavour: str) -> None:
    """Also in the turn that goes on after a save, in the order of the calls."""
    variant = Variant(stream=True, serialize="json", source="rebuilt")
    twice = calls(call("pay", amount=5), call("pay", amount=6))
    played = play(
        twice, say("Done."), caller=["Pay.", decide(approve("c1"), approve("c2"))], flavour=flavour, variant=variant
    )

    assert ["c1", "c2"] == [event["id"] for event in played.shown if event["what"] == "result"]


def test_reflection_is_a_last_reply_without_tools(play: Play) -> None:
    """With `reflect_on_tool_use` the model is asked once more, also when all calls were rejected."""
    played = play(
        caller=["Pay.", decide(reject("c1", "no"))], options={"reflect_on_tool_use": True, "max_tool_iterations": 1}
    )
    offered = [event["tools"] for event in played.events("model.request")]

    assert [["pay", "look"], []] == offered


def test_without_reflection_the_results_are_the_answer(play: Play) -> None:
    """An agent that does not go on ends with a summary of what its tools said."""
    played = play(caller=["Pay.", decide(reject("c1", "no"))], options={"max_tool_iterations": 1})

    assert "Tool execution not approved: no" == played.events("turn.end")[-1]["output"]


def test_a_message_gives_up_what_waits(play: Play, flavour: str, variant: Variant) -> None:
    """The call stays in the conversation without a result, which the model refuses."""
    played = play(calls("pay", amount=5), say("Hm."), caller=["Pay.", "Never mind"], flavour=flavour, variant=variant)

    assert (["paused", "ModelRefused"], []) == (played.outcomes, played.ran)


def test_an_answer_that_nobody_waits_for_is_refused(play: Play, flavour: str) -> None:
    """A request that was given up cannot be answered."""
    played = play(caller=["Pay.", "Never mind", decide(approve("c1"))], flavour=flavour)

    assert ("LookupError", []) == (played.outcomes[-1], played.ran)
