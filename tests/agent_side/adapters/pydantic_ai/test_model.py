"""The scripted model: what it says in pieces, and what it is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic_ai.exceptions import ModelHTTPError

from pytest_approvals import approve, call, calls, decide, go_on, say
from pytest_approvals.agent_side.adapters.pydantic_ai import FLAVOURS
from pytest_approvals.agent_side.contract import Blueprint, ModelRefused
from pytest_approvals.runner.stream_chunks import CHUNKINGS
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import AdapterSession, FakeWorld

Play = Callable[..., Any]

BOTH = calls(call("pay", amount=5), call("look", what="ünïcode"), say="Let me see.")


@pytest.mark.parametrize("chunking", [chunking for chunking in CHUNKINGS if chunking != "changing_ids"])
def test_a_stream_in_awkward_pieces_means_the_same(play: Play, chunking: str) -> None:
    """Ids alone, arguments split anywhere, pieces of two calls in turns, empty pieces: the same calls run."""
    played = play(BOTH, say("Done."), variant=Variant(stream=True, chunking=chunking))

    assert [("look", {"what": "ünïcode"}), ("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5", "c2": "saw ünïcode"} == played.told


def test_a_call_of_which_the_stream_changes_the_id_runs(play: Play) -> None:
    """The call is known by its place, and one of its ids is that of its result."""
    played = play(BOTH, say("Done."), variant=Variant(stream=True, chunking="changing_ids"))

    assert [("look", {"what": "ünïcode"}), ("pay", {"amount": 5})] == played.ran
    assert ["paid 5", "saw ünïcode"] == sorted(played.told.values())


def test_a_stream_shows_what_happens(play: Play) -> None:
    """Text, calls once where the model makes them, results, the request, and the end."""
    played = play(BOTH, say("Done."), variant=Variant(stream=True))
    shown = [(one["what"], one.get("id", one.get("text"))) for one in played.events("caller.shown")]

    assert [
        ("text", "Let me see."), ("call", "c1"), ("call", "c2"), ("result", "c2"), ("request", "c1"), ("end", None),
        ("result", "c1"), ("text", "Done."), ("end", None),
    ] == shown  # fmt: skip


def test_a_call_without_an_id_gets_one(play: Play, variant: Variant) -> None:
    """The framework makes it up, and it stays the same until the result."""
    played = play(calls(call("pay", id=None, label="c1", amount=5)), say("Done."), variant=variant)
    (request,) = played.events("turn.end")[0]["requests"]

    assert {request["id"]: "paid 5"} == played.told


def test_an_id_that_comes_again_in_a_later_reply_is_a_new_call(play: Play, variant: Variant) -> None:
    """The result of the first does not settle the second."""
    again = calls(call("pay", id="c1", label="c1#2", repeats=True, amount=6))
    played = play(calls(call("pay", id="c1", amount=5)), again, say("Done."), variant=variant)

    assert [["c1"], ["c1#2"], []] == played.requests
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


def test_an_unknown_tool_is_told(play: Play, variant: Variant) -> None:
    """Nobody is asked about it."""
    played = play(calls(call("fly", unknown_tool=True)), say("Done."), variant=variant)

    assert ["finished"] == played.outcomes
    assert "Unknown tool name: 'fly'" in played.told["c1"]


def test_broken_arguments_are_told(play: Play, variant: Variant) -> None:
    """What is no object is sent back wrapped into one, with an error as its result."""
    played = play(calls(call("pay", '{"amount": 5')), say("Done."), variant=variant)

    assert """call c1 {'INVALID_JSON': '{"amount": 5'}""" in played.inputs[-1]
    assert "json_invalid" in played.told["c1"]


def test_an_empty_reply_is_answered_by_the_framework(play: Play, variant: Variant) -> None:
    """It asks the model to say something."""
    played = play(say(""), say("Done."), variant=variant)

    assert ["finished"] == played.outcomes
    assert "Please return text or call a tool" in played.inputs[-1][-1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_refusing_model_fails_the_turn(stream: bool) -> None:
    """It raises what the framework's model classes raise for status 400."""
    world = FakeWorld([ModelRefused("a call has no result")], [])
    session = AdapterSession(FLAVOURS[""], Blueprint(), world)

    with pytest.raises(ModelHTTPError) as raised:
        session.turn("Hello.", stream=stream)

    session.end()
    assert 400 == raised.value.status_code


def test_ids_that_come_twice_in_one_reply_fail_the_turn(play: Play, variant: Variant) -> None:
    """The framework refuses the reply."""
    twice = calls(call("look", id="c1", what="a"), call("look", id="c1", label="c1#2", repeats=True, what="b"))

    assert ["UnexpectedModelBehavior"] == play(twice, say("Done."), variant=variant).outcomes


def test_a_script_that_runs_out_fails_the_turn(play: Play, variant: Variant) -> None:
    """The harness' own error comes out."""
    assert ["paused", "ScriptExhausted"] == play(calls("pay", amount=5), variant=variant).outcomes[:2]


def test_the_model_is_offered_the_tools(play: Play) -> None:
    """By name."""
    assert ["pay", "look"] == play(say("Done.")).events("model.request")[0]["tools"]


def test_a_stream_that_broke_can_be_gone_on_with(play: Play) -> None:
    """Also where an approved tool ran before."""
    broken = say("Do", breaks_after=1)
    played = play(
        calls("pay", amount=5), broken, say("Done."), caller=["Pay.", decide(approve("c1")), go_on()],
        variant=Variant(stream=True), requires=["broken_stream"],
    )  # fmt: skip

    assert ["paused", "ModelConnectionError", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
