"""The MCP servers of a run, with an agent that reaches its tools by the SDK's own client."""

from __future__ import annotations

import asyncio
import contextlib
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from pytest_approvals.agent_side.contract import Blueprint, ServerAddress, ToolRaised
from pytest_approvals.agent_side.contract.agent import Agent, World
from pytest_approvals.agent_side.contract.types import Parameter, ToolSpec
from pytest_approvals.checks import judge
from pytest_approvals.errors import ScenarioError
from pytest_approvals.runner.mcp.servers import RunMcpServers, build_manner
from pytest_approvals.runner.run import RecordedRun
from pytest_approvals.scenario.load import parse_scenario
from pytest_approvals.scenario.model import Scenario, Tool, ToolBehaviour
from pytest_approvals.scenario.to_file import format_scenario
from pytest_approvals.simulation.reference import ReferenceAgent

Story = Callable[..., Scenario]
Played = Callable[..., RecordedRun]

BUILT: list[Blueprint] = []


class Disconnected(ReferenceAgent):
    """An agent that has no client, and notes what it is built from."""

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        BUILT.append(blueprint)
        super().__init__(world, blueprint)


class Connected(Disconnected):
    """An agent that runs the tools of servers with a client."""

    connects = True

    def __init__(self, world: World, blueprint: Blueprint) -> None:
        super().__init__(ThroughServer(world, blueprint.servers), blueprint)

    async def another_session(self, world: World) -> Agent:
        """See `Agent.another_session`: the other session has the same client."""
        return await super().another_session(ThroughServer(world, self.blueprint.servers))


class ThroughServer:
    """A world whose tools are run by the one server that there is."""

    def __init__(self, world: World, servers: tuple[ServerAddress, ...]) -> None:
        self._world = world
        (self._server,) = servers

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    async def run(self, tool: str, arguments: Mapping[str, Any], *_: Any, **__: Any) -> Any:
        async with connection(self._server) as (read, write, *_), ClientSession(read, write) as session:
            await session.initialize()
            result: Any = await session.call_tool(tool, dict(arguments))
        text = result.content[0].text
        if result.is_error if hasattr(result, "is_error") else result.isError:
            raise ToolRaised(text)
        return text


def connection(server: ServerAddress) -> Any:
    if server.url:
        return streamable_http_client(server.url)
    return stdio_client(StdioServerParameters(command=server.command[0], args=list(server.command[1:])))


@pytest.fixture(autouse=True)
def built() -> list[Blueprint]:
    """The blueprints of all agents that the test built."""
    BUILT.clear()
    return BUILT


def bank(**does: Any) -> Tool:
    """The payments of the stories here, made by a server."""
    return Tool(
        name="pay",
        parameters={"amount": Parameter(type="integer")},
        approval="always",
        kind="mcp",
        server="bank",
        behaviours=(ToolBehaviour(**does),),
    )


def executions(run: RecordedRun) -> list[tuple[str, Any]]:
    """Return the executions of a run: the session, and the arguments."""
    return [(event.session, event.arguments) for event in run.events if event.kind == "tool.start"]


def latest_results(run: RecordedRun) -> list[str]:
    """Return the results in the last input of the model."""
    asked = [event for event in run.events if event.kind == "model.request"][-1]
    return [item["text"] for item in asked.items if item["kind"] == "result"]


@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_what_a_server_runs_is_recorded(story: Story, played: Played, transport: str) -> None:
    """Over either transport the body runs in the world of the agent, and every check sees it."""
    run = played(story(tools=(bank(returns="paid {amount}"),), servers={"bank": transport}), agent=Connected)

    assert ([("", {"amount": 5})], ["paid 5"]) == (executions(run), latest_results(run))
    assert [] == [
        one.check for one in judge(run.events) if one.status not in ("pass", "not-applicable", "not-observable")
    ]


def test_the_transport_is_what_the_scenario_says(story: Story, played: Played, built: list[Blueprint]) -> None:
    """An address is a URL, or for stdio a command."""
    for servers in ({}, {"bank": "stdio"}):
        played(story(tools=(bank(returns="paid"),), servers=servers), agent=Connected)
    (over_http,), (over_stdio,) = (blueprint.servers for blueprint in built)

    assert ("bank", "main", True, ()) == (over_http.name, over_http.agent, bool(over_http.url), over_http.command)
    assert ("bank", "main", "", True) == (
        over_stdio.name, over_stdio.agent, over_stdio.url, bool(over_stdio.command)
    )  # fmt: skip


def test_a_tool_that_raises_is_a_failure_at_the_client(story: Story, played: Played) -> None:
    """The execution has ended with what it raised, and the model is told."""
    run = played(story(tools=(bank(raises="the bank is closed"),)), agent=Connected)
    ends = [(event.how, event.error) for event in run.events if event.kind == "tool.end"]

    assert [("raised", ["ToolRaised", "the bank is closed"])] == ends
    assert ["Error: the bank is closed"] == latest_results(run)


def test_an_agent_that_does_not_connect_has_no_servers(story: Story, played: Played, built: list[Blueprint]) -> None:
    """Nothing is served for it."""
    played(story(tools=(bank(returns="paid"),)), agent=Disconnected)

    assert [()] == [blueprint.servers for blueprint in built]


def test_servers_end_with_their_run(story: Story, played: Played, built: list[Blueprint]) -> None:
    """Their addresses lead nowhere afterwards."""
    played(story(tools=(bank(returns="paid"),)), agent=Connected)
    ((server,),) = (blueprint.servers for blueprint in built)
    with pytest.raises(urllib.error.HTTPError) as error:
        urllib.request.urlopen(server.url, timeout=10)
    error.value.close()

    assert 404 == error.value.code


def test_a_call_runs_in_the_session_that_made_it(played: Played) -> None:
    """Two sessions share the connection of one agent object, and the server is not told whose call it is."""
    shared = parse_scenario(TWO_SESSIONS, name="tests/sessions", path="text")
    run = played(shared, agent=Connected)

    assert [("", {"amount": 5}), ("bob", {"amount": 6})] == executions(run)


TWO_SESSIONS = """
title: Two sessions share a server
tools:
  pay: {kind: mcp, server: bank, approval: always, parameters: {amount: integer}, returns: "paid {amount}"}
model:
  Pay for Ann: [{calls: [{id: c1, tool: pay, arguments: {amount: 5}}]}, {say: Ann paid.}]
  Pay for Bob: [{calls: [{id: c1, tool: pay, arguments: {amount: 6}, label: b1}]}, {say: Bob paid.}]
caller:
  - send: Pay for Ann
  - send: Pay for Bob
    session: bob
  - decide: {c1: approve}
  - decide: {b1: approve}
    session: bob
"""


async def list_annotations(server: ServerAddress) -> dict[str, Any]:
    async with connection(server) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        listed = await session.list_tools()
    return {
        tool.name: None if tool.annotations is None else tool.annotations.model_dump(by_alias=True, exclude_none=True)
        for tool in listed.tools
    }


ANNOTATED = """
title: t
tools:
  pay: {kind: mcp, server: bank, annotations: {readOnlyHint: false, destructiveHint: true}}
  look: {kind: mcp, server: bank}
model: [{say: Done.}]
"""


def test_annotations_are_served_as_they_are_said() -> None:
    """A client reads those of each tool, and none where none are said."""
    pay, look = parse_scenario(ANNOTATED, name="a/b", path="x").tools

    async def ask() -> dict[str, Any]:
        known = {(tool.agent, tool.server, tool.name): build_manner(tool) for tool in (pay, look)}
        specs = [ToolSpec(name=tool.name, kind="mcp", server="bank") for tool in (pay, look)]
        with contextlib.closing(RunMcpServers({}, known)) as servers:
            (address,) = servers.open_servers(specs, refuse)
            return await list_annotations(address)

    async def refuse(*_: Any) -> Any:
        raise NotImplementedError

    assert {"pay": {"readOnlyHint": False, "destructiveHint": True}, "look": None} == asyncio.run(ask())


def test_annotations_come_back_from_a_file() -> None:
    """A scenario with annotations is written and read again."""
    scenario = parse_scenario(ANNOTATED, name="a/b", path="x")

    assert scenario.tools == parse_scenario(format_scenario(scenario), name="a/b", path="x").tools


@pytest.mark.parametrize(
    ("tool", "said"),
    [
        ("{kind: mcp, server: bank, annotations: {readOnly: true}}", "readOnlyHint"),
        ("{kind: mcp, server: bank, annotations: {readOnlyHint: perhaps}}", "readOnlyHint"),
        ("{annotations: {readOnlyHint: true}}", "a tool of kind function has no annotations; say `kind: mcp`"),
    ],
)
def test_annotations_that_mean_nothing(tool: str, said: str) -> None:
    """Unknown words, values that are neither true nor false, and tools without a server are refused."""
    with pytest.raises(ScenarioError, match=re.escape(said)):
        parse_scenario(f"title: t\ntools: {{pay: {tool}}}\nmodel: [{{say: Done.}}]\n", name="a/b", path="x")
