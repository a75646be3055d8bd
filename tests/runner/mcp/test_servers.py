"""Servers of ours, asked by the SDK's own client over both transports."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from pytest_approvals.agent_side.contract.types import Parameter, ServerAddress, ToolSpec
from pytest_approvals.agent_side.kit.clients import read_annotations
from pytest_approvals.errors import UsageError
from pytest_approvals.runner.mcp.host import McpHost, get_mcp_host
from pytest_approvals.runner.mcp.servers import McpAddress, McpServers, McpTool, RunMcpServers, ServerManner

Connect = Callable[[McpAddress], AbstractAsyncContextManager[ClientSession]]


@asynccontextmanager
async def over_http(address: McpAddress) -> AsyncIterator[ClientSession]:
    async with streamable_http_client(address.url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@asynccontextmanager
async def over_stdio(address: McpAddress) -> AsyncIterator[ClientSession]:
    program = StdioServerParameters(command=address.command[0], args=list(address.command[1:]))
    async with stdio_client(program) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        yield session


@pytest.fixture(params=[over_http, over_stdio], ids=["http", "stdio"])
def connect(request: pytest.FixtureRequest) -> Connect:
    return request.param


@pytest.fixture
def servers() -> Iterator[McpServers]:
    with McpServers() as opened:
        yield opened


def paying(ran: list[Any], result: Any = "paid") -> McpTool:
    async def run(arguments: Mapping[str, Any]) -> Any:
        ran.append(dict(arguments))
        return result

    parameters = {"amount": Parameter(type="integer"), "note": Parameter(required=False, default="-")}
    return McpTool(name="pay", run=run, parameters=parameters, description="Pays.")


def failing() -> McpTool:
    async def run(arguments: Mapping[str, Any]) -> Any:
        raise ValueError("the bank is closed")

    return McpTool(name="pay", run=run)


def read_result(result: Any) -> tuple[bool, str]:
    """Return whether a result says that the tool failed, and its text, in either release of the SDK."""
    failed = result.is_error if hasattr(result, "is_error") else result.isError
    return failed, result.content[0].text


@pytest.mark.asyncio
async def test_a_server_lists_its_tools(servers: McpServers, connect: Connect) -> None:
    """A tool is listed with its description and the JSON Schema of its arguments."""
    async with connect(servers.open("bank", [paying([])])) as client:
        (tool,) = (await client.list_tools()).tools

    schema = tool.model_dump(by_alias=True)["inputSchema"]
    assert ("pay", "Pays.") == (tool.name, tool.description)
    assert {"amount": {"type": "integer"}, "note": {"type": "string", "default": "-"}} == schema["properties"]
    assert ["amount"] == schema["required"]


@pytest.mark.asyncio
async def test_a_call_runs_the_tool(servers: McpServers, connect: Connect) -> None:
    """A call runs the tool once, with its arguments, and its text is the result."""
    ran: list[Any] = []
    async with connect(servers.open("bank", [paying(ran)])) as client:
        result = await client.call_tool("pay", {"amount": 5})

    assert (False, "paid") == read_result(result)
    assert [{"amount": 5}] == ran


@pytest.mark.asyncio
async def test_a_value_is_sent_as_json(servers: McpServers, connect: Connect) -> None:
    """What is not text is JSON in the result."""
    async with connect(servers.open("bank", [paying([], {"left": [1, None]})])) as client:
        result = await client.call_tool("pay", {"amount": 5})

    assert (False, '{"left": [1, null]}') == read_result(result)


@pytest.mark.asyncio
async def test_an_object_is_structured_content_too(servers: McpServers, connect: Connect) -> None:
    """An object is sent as structured content beside its JSON; other values are only text."""
    contents = []
    for value in ({"left": 1}, [1], "paid"):
        async with connect(servers.open("bank", [paying([], value)])) as client:
            result = await client.call_tool("pay", {"amount": 5})
        contents.append(result.model_dump(by_alias=True)["structuredContent"])

    assert [{"left": 1}, None, None] == contents


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"amount": "five"}, "'five' is not of type 'integer'"),
        ({"amount": True}, "True is not of type 'integer'"),
        ({"amount": 5.5}, "5.5 is not of type 'integer'"),
        ({"amount": None}, "None is not of type 'integer'"),
        ({"amount": 5, "note": 7}, "7 is not of type 'string'"),
        ({}, "'amount' is a required property"),
    ],
)
async def test_arguments_that_do_not_fit_run_nothing(
    servers: McpServers, arguments: Mapping[str, Any], words: str
) -> None:
    """The server validates arguments, and its client is told what is wrong as a failure of the tool."""
    ran: list[Any] = []
    async with over_http(servers.open("bank", [paying(ran)])) as client:
        result = await client.call_tool("pay", dict(arguments))

    assert (True, f"Input validation error: {words}") == read_result(result)
    assert [] == ran


@pytest.mark.asyncio
async def test_arguments_that_fit_in_json_run(servers: McpServers) -> None:
    """A whole number may be written with a fraction, and a value that is not declared may be there."""
    ran: list[Any] = []
    async with over_http(servers.open("bank", [paying(ran)])) as client:
        result = await client.call_tool("pay", {"amount": 5.0, "more": 1})

    assert (False, "paid") == read_result(result)
    assert [{"amount": 5, "more": 1}] == ran


@pytest.mark.asyncio
async def test_a_tool_that_raises_has_a_result_that_says_so(servers: McpServers, connect: Connect) -> None:
    """The client is told what a tool raised, as a failure of the tool and not of the server."""
    async with connect(servers.open("bank", [failing()])) as client:
        result = await client.call_tool("pay", {})

    assert (True, "the bank is closed") == read_result(result)


@pytest.mark.asyncio
async def test_a_tool_that_is_not_there_is_named(servers: McpServers, connect: Connect) -> None:
    """A call of an unknown tool fails and names it."""
    async with connect(servers.open("bank", [paying([])])) as client:
        result = await client.call_tool("refund", {})

    assert (True, "Unknown tool: refund") == read_result(result)


@pytest.mark.asyncio
async def test_servers_are_apart(servers: McpServers, connect: Connect) -> None:
    """Two servers may offer tools of one name; a call reaches the one that was asked."""
    here: list[Any] = []
    there: list[Any] = []
    servers.open("bank", [paying(here)])
    async with connect(servers.open("bank", [paying(there)])) as client:
        await client.call_tool("pay", {"amount": 5})

    assert ([], [{"amount": 5}]) == (here, there)


@pytest.mark.asyncio
async def test_calls_run_side_by_side(servers: McpServers, connect: Connect) -> None:
    """A call that waits keeps no other one from running."""
    barrier = asyncio.Barrier(2)

    async def run(arguments: Mapping[str, Any]) -> Any:
        await barrier.wait()
        return "both"

    async with connect(servers.open("bank", [McpTool(name="meet", run=run)])) as client:
        results = await asyncio.gather(client.call_tool("meet", {}), client.call_tool("meet", {}))

    assert [(False, "both")] * 2 == [read_result(result) for result in results]


@pytest.mark.asyncio
async def test_the_end_cancels_what_still_runs(connect: Connect) -> None:
    """Closing the servers ends a call that waits, and nobody waits for it."""
    begun, cancelled = asyncio.Event(), asyncio.Event()
    own = asyncio.get_running_loop()

    async def run(arguments: Mapping[str, Any]) -> Any:
        own.call_soon_threadsafe(begun.set)
        try:
            await asyncio.Event().wait()
        finally:
            own.call_soon_threadsafe(cancelled.set)

    servers = McpServers()
    async with connect(servers.open("bank", [McpTool(name="wait", run=run)])) as client:
        call = asyncio.create_task(client.call_tool("wait", {}))
        await begun.wait()
        await asyncio.to_thread(servers.close)
        await cancelled.wait()
        call.cancel()


@pytest.mark.asyncio
async def test_an_address_of_a_closed_server_answers_404() -> None:
    """A client that comes too late gets an error."""
    import httpx

    with McpServers() as servers:
        address = servers.open("bank", [paying([])])
    async with httpx.AsyncClient(trust_env=False) as client:
        answer = await client.post(address.url, json={})

    told = {"error": {"message": "no server is here; its run may be over"}}
    assert (404, told) == (answer.status_code, answer.json())


def test_a_relay_that_finds_nobody_says_so() -> None:
    """The command ends with a message and status 1 where nothing listens."""
    with McpServers() as servers:
        *command, _ = servers.open("bank", [paying([])]).command
    ended = subprocess.run([*command, "127.0.0.1:1/s1"], capture_output=True, text=True, timeout=60)

    assert 1 == ended.returncode
    assert ended.stderr.startswith("stdio_bridge.py: no server listens at '127.0.0.1:1': ")


def test_a_relay_of_a_closed_server_ends() -> None:
    """The command ends by itself where the server that it names is over."""
    with McpServers() as servers:
        command = servers.open("bank", [paying([])]).command
    ended = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60)

    assert (0, b"") == (ended.returncode, ended.stdout)


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing but the SDK is needed, and only where a server is."""
    monkeypatch.setitem(sys.modules, "mcp.server.lowlevel", None)
    with pytest.raises(UsageError) as error:
        get_mcp_host.__wrapped__()

    assert "pip install 'pytest-approvals[mcp]'" in str(error.value)


def test_a_house_that_cannot_serve_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What goes wrong in the thread of the servers is raised where the first of them is wanted."""
    import uvicorn

    def fails(*_: Any, **__: Any) -> None:
        raise RuntimeError("no server today")

    monkeypatch.setattr(uvicorn, "Config", fails)
    with pytest.raises(RuntimeError, match="no server today"):
        McpHost()


def test_a_relay_that_is_connected_is_hung_up_on_without_a_word(caplog: pytest.LogCaptureFixture) -> None:
    """A server that is closed ends the connection, and nothing is logged about it."""
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    initialize = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client})
    with McpServers() as servers:
        place, _, key = servers.open("bank", [paying([])]).command[-1].partition("/")
        host, _, port = place.partition(":")
        connection = socket.create_connection((host, int(port)), timeout=20)
        connection.sendall(f"{key}\n{initialize}\n".encode())
        assert connection.recv(1)
    with connection:
        while connection.recv(65536):
            pass

    assert [] == caplog.records


def test_what_a_server_says_about_a_tool_may_change() -> None:
    """Servers that are opened later say it; those that are open say what they said."""

    async def list_annotations(address: ServerAddress) -> Mapping[str, Any] | None:
        async with over_http(McpAddress(url=address.url, command=())) as client:
            [tool] = (await client.list_tools()).tools
            return read_annotations(tool.annotations)

    async def play() -> list[Mapping[str, Any] | None]:
        async def execute(spec: ToolSpec, arguments: Mapping[str, Any], elicited: Any = None) -> Any:
            raise NotImplementedError

        spec, key = ToolSpec(name="wipe", kind="mcp", server="disks"), ("main", "disks", "wipe")
        with closing(RunMcpServers(manners={key: ServerManner(annotations={"readOnlyHint": True})})) as opened:
            [before] = opened.open_servers([spec], execute)
            opened.annotate(key, {"destructiveHint": True})
            [after] = opened.open_servers([spec], execute)
            return [await list_annotations(before), await list_annotations(after)]

    assert [{"readOnlyHint": True}, {"destructiveHint": True}] == asyncio.run(play())


async def pay_with(manner: ServerManner, servers: McpServers, connect: Connect, arguments: dict[str, Any]) -> Any:
    """Call a tool whose server has a manner of its own, and return what the client gets, or what it raises."""

    async def run(_: Mapping[str, Any]) -> Any:
        return {"cents": 5}

    tool = McpTool(name="pay", run=run, parameters={"amount": Parameter(type="integer")}, manner=manner)
    async with connect(servers.open("bank", [tool])) as client:
        try:
            return await client.call_tool("pay", arguments)
        except Exception as error:
            return error


@pytest.mark.parametrize(("manner", "texts"), [(ServerManner(), 1), (ServerManner(structured_only=True), 0)])
def test_an_object_is_structured_content(
    manner: ServerManner, texts: int, servers: McpServers, connect: Connect
) -> None:
    """There is JSON text beside it, unless the server sends none."""
    result = asyncio.run(pay_with(manner, servers, connect, {"amount": 5}))

    assert {"cents": 5} == result.model_dump(by_alias=True)["structuredContent"]
    assert texts == len(result.content)


def test_arguments_that_do_not_fit_may_be_an_error_of_the_protocol(servers: McpServers, connect: Connect) -> None:
    """The client raises what it is answered, with the code of JSON-RPC."""
    manner = ServerManner(misfits_are_errors=True)

    raised = asyncio.run(pay_with(manner, servers, connect, {"amount": "five"}))

    assert "Input validation error: 'five' is not of type 'integer'" == str(raised)
    assert -32602 == raised.error.code


def test_arguments_that_fit_are_no_error_of_the_protocol(servers: McpServers, connect: Connect) -> None:
    """Such a server executes other calls."""
    manner = ServerManner(misfits_are_errors=True)

    result = asyncio.run(pay_with(manner, servers, connect, {"amount": 5}))

    assert {"cents": 5} == result.model_dump(by_alias=True)["structuredContent"]
