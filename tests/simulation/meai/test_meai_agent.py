"""The simulated client as an agent under test, in the harness."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.contract.types import (
    Blueprint,
    Chunk,
    Decision,
    Finished,
    ModelCall,
    Paused,
    Reply,
    ToolSpec,
)
from pytest_approvals.devtools.fault_detection import broken_checks, in_process_variants, play_in_process
from pytest_approvals.scenario.catalogue import stock_folder
from pytest_approvals.scenario.load import load_catalogue
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.simulation.meai.agent import BoundMeaiAgent, MeaiAgent

STORY = "state/rejection-survives-and-the-session-goes-on"
"""The turns of dotnet/extensions#7468."""


def find_release_class(adapter: type[MeaiAgent], name: str) -> type[MeaiAgent]:
    """Return the adapter that behaves as that range of releases."""
    return next(release for release in adapter.releases if release.release == name)  # type: ignore[return-value]


@pytest.fixture(scope="module")
def story() -> Scenario:
    return next(scenario for scenario in load_catalogue([stock_folder()]) if scenario.id == STORY)


def failing(story: Scenario, adapter: type[Agent]) -> set[str]:
    """The serialize mode, history and answer source of each variant that breaks a requirement."""
    return {
        f"{variant.serialize} {variant.history} {variant.source}"
        for variant in in_process_variants(story, adapter)
        if broken_checks(play_in_process(story, variant, adapter))
    }


@pytest.mark.parametrize("release", ["10.2", "10.6", "robust"])
def test_these_releases_go_on_wherever_the_state_was(story: Scenario, release: str) -> None:
    """No store and no answer source makes a difference to them."""
    assert set() == failing(story, find_release_class(MeaiAgent, release))


def test_10_4_fails_where_there_are_two_copies_of_a_call(story: Scenario) -> None:
    """A rebuilt answer has a copy of its own; a store that writes each message once keeps the request unflagged."""
    assert {
        "none whole rebuilt",
        "copy whole rebuilt",
        "json append restored",
        "json append rebuilt",
    } == failing(story, find_release_class(MeaiAgent, "10.4"))


@pytest.mark.parametrize("release", ["10.7", "10.9"])
def test_later_releases_fail_where_messages_are_written_once(story: Scenario, release: str) -> None:
    """Both copies are flagged, and the store keeps what the request was before."""
    assert {"json append restored", "json append rebuilt"} == failing(story, find_release_class(MeaiAgent, release))


def test_binding_makes_one_call_of_two_copies(story: Scenario) -> None:
    """
    A rebuilt answer is bound to the request that the history holds, so that the caller's own copy stays unflagged and
    10.4 goes on; one that shares its call is kept, flagged and stored next to the unflagged request.
    """
    assert {"json append restored"} == failing(story, find_release_class(BoundMeaiAgent, "10.4"))


WIPE = ToolSpec(name="wipe", approval="always")
REPLIES = (Reply(calls=(ModelCall(id="a", tool="wipe", arguments={"disk": 1}),)), Reply(say="Done."))


class World:
    """A script and its record."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = list(replies)
        self.inputs: list[list[tuple[str, Any]]] = []
        self.ran: list[Any] = []
        self.seen: list[str] = []

    async def model(self, items: Any, **_: Any) -> Reply:
        self.inputs.append([(item.kind, item.text or item.id) for item in items])
        return self.replies.pop(0)

    async def run(self, tool: str, arguments: Any, call_id: str | None, **_: Any) -> Any:
        self.ran.append((tool, arguments, call_id))
        return {"ok": True}

    def shown(self, what: str, **_: Any) -> None:
        self.seen.append(what)


def agent(*replies: Reply, kind: type[MeaiAgent] = MeaiAgent, **more: Any) -> MeaiAgent:
    return kind(World(*(replies or REPLIES)), Blueprint(tools=(WIPE,), **more))  # type: ignore[arg-type]


def take(subject: MeaiAgent, text: str | None, *decisions: Decision, stream: bool = False) -> Any:
    return asyncio.run(subject.turn(text, decisions, stream=stream))


def test_a_turn_pauses_and_goes_on() -> None:
    """The request shows the call; the approved call runs, and the model is told as JSON."""
    subject = agent()
    paused = take(subject, "go")
    assert isinstance(paused, Paused)
    [request] = paused.requests
    assert ("ficc_a", "a", "wipe", {"disk": 1}) == (request.id, request.call_id, request.tool, request.arguments)
    assert [request] == list(asyncio.run(subject.pending()))
    assert Finished(output="Done.") == take(subject, None, Decision(request=request, verdict="approve"))
    assert [("wipe", {"disk": 1}, "a")] == subject.world.ran  # type: ignore[attr-defined]
    assert [("user", "go"), ("call", "a"), ("result", '{"ok": true}')] == subject.world.inputs[1]  # type: ignore[attr-defined]
    assert [] == list(asyncio.run(subject.pending()))


def test_a_stream_shows_what_it_says() -> None:
    """Text piece by piece, the call that is asked about, and its request."""
    call = REPLIES[0].calls[0]
    streamed = Reply(say="Hm.", calls=(call,), chunks=(Chunk(text="H"), Chunk(text="m."), Chunk(call=0, id="a")))
    subject = agent(streamed)
    paused = take(subject, "go", stream=True)
    assert ("Hm.", 1) == (paused.text, len(paused.requests))
    assert ["text", "text", "call", "request", "end"] == subject.world.seen  # type: ignore[attr-defined]


def test_a_failed_turn_leaves_the_history_as_it_was() -> None:
    """Nothing is stored before a run has ended; the message of the failed turn is the caller's to send again."""
    subject = agent()
    take(subject, "go")
    before = list(subject.history)
    with pytest.raises(Exception, match="no matching ToolApprovalResponseContent"):
        take(subject, "never mind")
    assert before == subject.history


@pytest.mark.parametrize("kind", [MeaiAgent, BoundMeaiAgent])
@pytest.mark.parametrize("history", ["whole", "append"])
def test_the_state_goes_through_text(kind: type[MeaiAgent], history: Any) -> None:
    """Whole, or each message once; and with what the binding layer remembers."""
    first = agent(kind=kind, history=history)
    asyncio.run(first.dump())
    take(first, "go")
    second = agent(REPLIES[1], kind=kind, history=history)
    empty = '{"messages":[],"answers":0,"_pendingApprovalRequests":[]}'
    asyncio.run(second.load([empty, asyncio.run(first.dump())]))
    [request] = asyncio.run(second.pending())
    assert Finished(output="Done.") == take(second, None, Decision(request=request, verdict="approve"))


def test_what_cannot_be_said_is_refused() -> None:
    """A response is a yes or a no."""
    subject = agent()
    [request] = take(subject, "go").requests
    with pytest.raises(Unsupported, match="edit"):
        take(subject, None, Decision(request=request, verdict="edit", arguments={}))


LOOK = ToolSpec(name="look")
BOTH = Reply(calls=(REPLIES[0].calls[0], ModelCall(id="b", tool="look", arguments={"at": 1})))


def asked_about(kind: type[MeaiAgent]) -> tuple[MeaiAgent, list[str]]:
    """An agent whose model has called a gated tool and a free one, and the calls that it asks about."""
    subject = kind(World(BOTH, REPLIES[1]), Blueprint(tools=(WIPE, LOOK)))  # type: ignore[arg-type]
    return subject, [request.call_id for request in take(subject, "go").requests]


def test_what_only_waits_is_approved_along_with_what_is_asked() -> None:
    """From 10.8 on a request says that its own tool is ungated; nobody is asked about it, and it runs in any case."""
    subject, asked = asked_about(MeaiAgent)
    [request] = asyncio.run(subject.pending())
    take(subject, None, Decision(request=request, verdict="reject"))
    assert (["a"], [("look", {"at": 1}, "b")]) == (asked, subject.world.ran)  # type: ignore[attr-defined]


def test_earlier_releases_ask_about_every_call() -> None:
    """Their requests do not say which tool is gated."""
    assert ["a", "b"] == asked_about(find_release_class(MeaiAgent, "10.7"))[1]


def test_a_stream_shows_a_call_once() -> None:
    """It comes again with its result when it was decided about, and is no news then."""
    subject = agent()
    [request] = take(subject, "go", stream=True).requests
    take(subject, None, Decision(request=request, verdict="approve"), stream=True)
    assert 1 == subject.world.seen.count("call")  # type: ignore[attr-defined]
    assert 1 == subject.world.seen.count("result")  # type: ignore[attr-defined]


def test_nothing_goes_on_without_an_answer() -> None:
    """The client refuses a request without a response, so that some of several cannot be answered, either."""
    subject = agent()
    take(subject, "go")
    with pytest.raises(Exception, match="no matching ToolApprovalResponseContent"):
        take(subject, None)
