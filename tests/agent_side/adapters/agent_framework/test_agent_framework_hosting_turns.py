"""How turns end behind a server, and what can be done after that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import Agent, tool

from pytest_approvals import approve, calls, decide, reject, say
from pytest_approvals.agent_side.adapters.agent_framework.model import ScriptedClient
from pytest_approvals.scenario.model import Variant
from pytest_approvals.testing import AdapterSession, call, reply
from pytest_approvals.testing import approve as yes

Play = Callable[..., Any]
Attach = Callable[..., AdapterSession]


@pytest.fixture(params=["hosted", "hosted_chat", "hosted_conversation", "hosted_workflow"])
def hosted(request: pytest.FixtureRequest) -> str:
    """The flavours with a server in front, each once."""
    given: str = request.param
    return given


@pytest.fixture(
    params=[
        Variant(),
        Variant(stream=True),
        Variant(serialize="native.files", source="restored"),
        Variant(serialize="native.files", source="rebuilt", stream=True),
    ],
    ids=lambda variant: variant.id,
)
def way(request: pytest.FixtureRequest) -> Variant:
    """The ways in which a story can be played."""
    given: Variant = request.param
    return given


def two(first: int, second: int) -> Any:
    """One reply with two calls, c1 and c2."""
    return calls(*calls("pay", amount=first).calls, *calls("pay", amount=second).calls)


def test_an_approved_call_runs_once_and_is_told(play: Play, hosted: str, way: Variant) -> None:
    """In every mode the call waits, runs after the approval, and the model reads its result."""
    played = play(variant=way, flavour=hosted)

    assert ["paused", "finished"] == played.outcomes
    assert [("pay", {"amount": 5})] == played.ran
    assert {"c1": "paid 5"} == played.told


def test_a_rejected_call_does_not_run(play: Play, hosted: str) -> None:
    """The model is told so."""
    played = play(caller=["Pay.", decide(reject("c1", "too much"))], flavour=hosted)

    assert ([], True) == (played.ran, "rejected" in played.told["c1"])


def test_a_request_does_not_say_the_id_of_its_call(play: Play) -> None:
    """The item of the protocol has an id of its own only."""
    (request,) = play(flavour="hosted").events("turn.end")[0]["requests"]

    assert ("pay", {"amount": 5}, False) == (request["tool"], request["arguments"], "call_id" in request)
    assert request["id"].startswith("mcpr_")


def test_what_is_not_answered_is_asked_again(play: Play) -> None:
    """Nothing runs before both are answered; the request that is left gets another id."""
    played = play(
        two(5, 6), say("Done."), caller=["Go.", decide(approve("c2")), decide(approve("c1"))], flavour="hosted"
    )
    first, second = played.events("turn.end")[:2]

    assert [["c1", "c2"], ["c1"], []] == played.requests
    assert first["requests"][0]["id"] != second["requests"][0]["id"]
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6})] == played.ran


def test_a_stream_shows_what_happens(play: Play) -> None:
    """Call, request, result and text, in the order in which they come."""
    played = play(variant=Variant(stream=True), flavour="hosted")

    assert ["call", "request", "end", "result", "text", "end"] == [one["what"] for one in played.shown]


ASKS = """
tools:
  pay: {approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
caller:
  - send: Pay
  - decide: [%s]
  - decide: {c1: approve}
"""


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [("{unknown: mcpr_unknown, verdict: approve}", "ResponseFailed"), ("{c1: {raw: yes sir}}", "RequestRefused")],
    ids=["unknown request", "a word"],
)
def test_a_wrong_answer_is_refused(play: Play, answer: str, outcome: str) -> None:
    """And the right one works afterwards."""
    played = play(text=ASKS % answer, flavour="hosted")

    assert ["paused", outcome, "finished"] == played.outcomes


def test_nothing_is_left_behind(play: Play, hosted: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the person's home nor in the current folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    play(flavour=hosted)

    assert [] == list(tmp_path.iterdir())


def test_a_persons_agent_can_be_hosted(attach: Attach) -> None:
    """Their tool runs for real behind the server, after its approval."""

    @tool(approval_mode="always_require")
    def refund(order: int) -> str:
        """Refunds an order."""
        return f"refunded {order}"

    agent = Agent(client=ScriptedClient(), name="main", tools=[refund])
    story = attach(agent, reply(None, call("refund", order=42)), reply("Done."), flavour="hosted")
    (request,) = story.paused("Refund it.")

    assert "Done." == story.finished(None, yes(request))
    assert ["refund"] == story.world.real
