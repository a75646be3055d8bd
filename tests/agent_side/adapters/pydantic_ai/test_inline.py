"""Runs that wait in a handler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from pytest_approvals import approve, call, calls, cancel, decide, fails, go_on, leave, raw, reject, say, send, unknown
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]

BOTH = calls(call("pay", amount=5), call("pay", amount=6), call("look", what="x"))


@pytest.fixture
def waits(play: Play) -> Play:
    return partial(play, flavour="inline")


@pytest.mark.parametrize("stream", [False, True])
def test_the_run_goes_on_with_the_answers(waits: Play, stream: bool) -> None:
    """One run, two turns; the model sees the result."""
    played = waits(variant=Variant(stream=stream))

    assert ["paused", "finished"] == played.outcomes
    assert {"c1": "paid 5"} == played.told


def test_some_answers_run_and_the_others_surface_again(waits: Play) -> None:
    """What the handler leaves open is answered by another run."""
    played = waits(BOTH, say("Done."), caller=["Go.", decide(approve("c1")), decide(reject("c2", "no"))])

    assert [["c1", "c2"], ["c2"], []] == played.requests
    assert {"c1": "paid 5", "c2": "no", "c3": "saw x"} == played.told


def test_no_answer_leaves_all_open(waits: Play) -> None:
    """The handler declines, and the run ends with the same requests."""
    played = waits(BOTH, say("Done."), caller=["Go.", go_on(), decide(approve("c1"), approve("c2"))])

    assert [["c1", "c2"], ["c1", "c2"], []] == played.requests


def test_an_unknown_request_is_dropped(waits: Play) -> None:
    """The framework drops the answer without a word; the request stays open."""
    played = waits(caller=["Pay.", decide(unknown("c9")), decide(approve("c1"))])

    assert ["paused", "paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_a_verdict_that_is_none_ends_the_run(waits: Play) -> None:
    """What it asked stays open, and is answered by another run."""
    played = waits(caller=["Pay.", decide(raw("c1", "yes")), decide(approve("c1"))])

    assert ["paused", "UserError", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_a_model_that_fails_after_the_tool_ran_is_asked_again(waits: Play) -> None:
    """The failed run's messages hold the result."""
    played = waits(calls("pay", amount=5), fails(500), say("Done."), caller=["Pay.", decide(approve("c1")), go_on()])

    assert ["paused", "ModelServerError", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran


def test_a_run_that_waits_can_be_given_up(waits: Play) -> None:
    """It is cancelled, what it left open is closed, and the conversation goes on."""
    played = waits(caller=["Pay.", cancel(), "Thanks."])

    assert (["paused", "finished"], [], []) == (played.outcomes, played.ran, played.pending)
    assert "interrupted" in played.told["c1"]


def test_a_run_that_waits_when_all_is_over_is_let_go(waits: Play) -> None:
    """It is still pending, and nothing is left behind."""
    assert ["c1"] == waits(caller=["Pay.", leave()]).pending


def test_sessions_wait_side_by_side(waits: Play) -> None:
    """Each answers its own run."""
    played = waits(
        caller=[
            send("Pay.", session="a"), send("Pay.", session="b"),
            decide(approve("c1"), session="b"), decide(reject("c1", "no"), session="a"),
        ],
    )  # fmt: skip

    assert ["b"] == [one["session"] for one in played.events("tool.start")]
