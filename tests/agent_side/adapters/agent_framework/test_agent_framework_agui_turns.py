"""How turns end behind an interface, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pytest_approvals import approve, calls, decide, edit, reject, say
from pytest_approvals.scenario.model import Variant

Play = Callable[..., Any]


@pytest.fixture(params=["agui", "agui_chat"])
def interface(request: pytest.FixtureRequest) -> str:
    """The flavours with an interface in front, each once."""
    given: str = request.param
    return given


@pytest.mark.parametrize("stream", [False, True])
def test_an_approved_call_runs_once_and_is_told(play: Play, interface: str, stream: bool) -> None:
    """The call waits, runs after the approval, and the model reads its result."""
    played = play(flavour=interface, variant=Variant(stream=stream))

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_rejected_call_does_not_run(play: Play, interface: str) -> None:
    """The model is told so."""
    played = play(caller=["Pay.", decide(reject("c1"))], flavour=interface)

    assert ([], True) == (played.ran, "rejected" in played.told["c1"])


def test_an_edited_call_runs_with_the_other_arguments(play: Play, interface: str) -> None:
    """They replace the arguments as a whole."""
    played = play(caller=["Pay.", decide(edit("c1", {"amount": 1}))], flavour=interface)

    assert [("pay", {"amount": 1})] == played.ran


def test_a_message_is_refused_while_a_request_is_open(play: Play, interface: str) -> None:
    """The model is not asked, and the request can be answered afterwards."""
    played = play(caller=["Pay.", "And hurry.", decide(reject("c1"))], flavour=interface)

    assert ["paused", "RunError"] == played.outcomes[:2]
    assert [["user Pay."]] == played.inputs[:1]


def test_an_answer_that_comes_again_changes_nothing(play: Play, interface: str) -> None:
    """The tool does not run again, and the model is not asked."""
    played = play(caller=["Pay.", decide(approve("c1")), decide(approve("c1"))], flavour=interface)

    assert (1, 2) == (len(played.ran), len(played.inputs))


def test_a_stream_shows_what_happens(play: Play) -> None:
    """Call, request, result and text, and no call of `confirm_changes`."""
    played = play(calls("pay", amount=5), say("Done."), variant=Variant(stream=True), flavour="agui")

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]
    assert {"pay"} == {one["tool"] for one in played.shown if one["what"] == "call"}
