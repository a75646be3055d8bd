"""The model of a run, reached over a provider's protocol."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from http.client import RemoteDisconnected
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request as HttpRequest
from urllib.request import urlopen

import pytest

from pytest_approvals.agent_side.contract.agent import Agent
from pytest_approvals.agent_side.contract.types import Decision, Finished, ModelAddress, Outcome
from pytest_approvals.journal.events import Header, ModelRequest
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.runner.run_context import RunLimits
from pytest_approvals.scenario.model import Call, Scenario, Script, ScriptedReply, Tool, ToolBehaviour, Variant
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]

CHAT = Variant(protocol="chat")
HELLO = {"model": "main", "messages": [{"role": "user", "content": "Hello"}]}

SERVER = {"type": "mcp", "server_label": "s", "server_url": "http://s.invalid"}


def post(url: str, body: Any) -> Any:
    """Post JSON and return the JSON of the answer, of any status."""
    request = HttpRequest(url, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urlopen(request, timeout=20) as answer:
            return json.load(answer)
    except HTTPError as refused:
        with refused:
            return json.load(refused)


class Poster(ReferenceAgent):
    """An agent that posts the bodies of a test to its model and finishes with the answers."""

    path = "/chat/completions"
    bodies: tuple[Any, ...] = (HELLO,)
    addresses: list[ModelAddress]

    async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
        assert self.blueprint.model is not None
        self.addresses.append(self.blueprint.model)
        url = self.blueprint.model.url + self.path
        return Finished(output=[await asyncio.to_thread(post, url, body) for body in self.bodies])


@pytest.fixture
def posting() -> Callable[..., type[Agent]]:
    """Make an agent class that posts these bodies."""

    def make(*bodies: Any, path: str = Poster.path) -> type[Agent]:
        return type("Posting", (Poster,), {"bodies": bodies or Poster.bodies, "path": path, "addresses": []})

    return make


def test_a_request_is_answered_from_the_script(
    story: Story, played: Played, posting: Callable[..., type[Agent]]
) -> None:
    """The address of an agent's model answers in the protocol, with what the script says."""
    run = played(story(ScriptedReply(say="Done.")), CHAT, agent=posting())

    assert ["Done."] == [answer["choices"][0]["message"]["content"] for answer in run.output]


def test_the_world_of_the_agent_records(story: Story, played: Played, posting: Callable[..., type[Agent]]) -> None:
    """A request is in the journal as one to the model itself is."""
    run = played(story(ScriptedReply(say="Done.")), CHAT, agent=posting())

    asked = [event for event in run.events if isinstance(event, ModelRequest)]
    assert [[{"kind": "user", "text": "Hello", "message": 0}]] == [event.items for event in asked]


def test_the_rules_are_those_of_the_protocol(story: Story, played: Played, posting: Callable[..., type[Agent]]) -> None:
    """What reaches the model is judged by the rules of its provider, whatever the agent's own are."""
    run = played(story(ScriptedReply(say="Done.")), Variant(protocol="responses"), agent=posting())

    header = run.events[0]
    assert isinstance(header, Header)
    assert "responses" == header.wire_rules


def test_the_model_that_a_request_names_is_the_agent(
    story: Story, played: Played, posting: Callable[..., type[Agent]]
) -> None:
    """A sub-agent's requests are told by the model that they name, and every other name is the main agent's."""
    told = story(
        tools=(Tool(name="ask", runs="helper"),),
        agents={
            "main": Script(replies=(ScriptedReply(say="Main."),)),
            "helper": Script(replies=(ScriptedReply(say="Helper."),)),
        },
    )
    run = played(told, CHAT, agent=posting({**HELLO, "model": "helper"}, {**HELLO, "model": "gpt-x"}))

    assert ["Helper.", "Main."] == [answer["choices"][0]["message"]["content"] for answer in run.output]


def test_what_the_provider_refuses_is_refused(
    story: Story, played: Played, posting: Callable[..., type[Agent]]
) -> None:
    """A path that the protocol has not, and a body that is none, get the provider's errors."""
    lost = played(story(), CHAT, agent=posting(path="/messages"))
    shapeless = played(story(), CHAT, agent=posting({"messages": 1}))

    assert "Invalid URL" in lost.output[0]["error"]["message"]
    assert "invalid_request_error" == shapeless.output[0]["error"]["type"]


def test_an_address_ends_with_its_run(story: Story, played: Played, posting: Callable[..., type[Agent]]) -> None:
    """A client that asks later gets an error."""
    agent = posting()
    played(story(ScriptedReply(say="Done.")), CHAT, agent=agent)

    told = post(agent.addresses[0].url + "/chat/completions", HELLO)  # type: ignore[attr-defined]
    assert "it may be over" in told["error"]["message"]


def test_a_request_that_waits_ends_with_its_run(
    story: Story, played: Played, posting: Callable[..., type[Agent]]
) -> None:
    """If a run is cut off, nobody keeps waiting for an answer."""
    lost: list[BaseException] = []

    class Waits(Poster):
        path = "/responses"
        addresses: list[ModelAddress] = []  # noqa: RUF012 -- the test looks into it

        async def turn(self, text: str | None, decisions: Sequence[Decision], *, stream: bool) -> Outcome:
            assert self.blueprint.model is not None
            url = self.blueprint.model.url + self.path
            self.asking = asyncio.get_running_loop().run_in_executor(None, self._ask, url)
            await self.asking
            return Finished()

        def _ask(self, url: str) -> None:
            try:
                post(url, {"model": "main", "input": "Hello", "tools": [SERVER]})
            except RemoteDisconnected as error:
                lost.append(error)

    look = Tool(name="look", kind="hosted_mcp", server="s", behaviours=(ToolBehaviour(returns="x", waits_for="never"),))
    scenario = story(ScriptedReply(calls=(Call(label="c1", id="c1", tool="look", arguments={}),)), tools=(look,))
    played(scenario, Variant(protocol="responses"), agent=Waits, limit=RunLimits(seconds=0.3))

    assert ["RemoteDisconnected"] == [type(error).__name__ for error in lost]
