"""What every HTTP endpoint of the harness makes of requests that are none, too large, or half."""

from __future__ import annotations

import http.client
import json
import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from typing import NamedTuple

import pytest

from pytest_approvals.agent_side.contract.types import Reply
from pytest_approvals.conversations.recording.capture import Recorder
from pytest_approvals.conversations.recording.proxy import RecordingProxy
from pytest_approvals.model_server.server import ScriptedModelServer
from pytest_approvals.protocols.http.server import MAX_BODY_SIZE, MAX_HEAD_SIZE
from pytest_approvals.runner.event_loops import BackgroundLoop
from pytest_approvals.runner.mcp.servers import McpServers, McpTool
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.scenario.load import parse_scenario

CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "go"}]})
INITIALIZE = json.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
    }
)
SCENARIO = f"title: Hello\ntools: {{look: {{}}}}\nmodel: [{', '.join(['{say: hello}'] * 9)}]\n"


class Place(NamedTuple):
    """An endpoint, a request that it accepts, and the status for a head without an end."""

    host: str
    port: int
    path: str
    body: str
    head_too_long: int = 431

    def connect(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=30)

    def ask(self, target: str = "") -> int:
        """Ask what is accepted; return the status."""
        with self.connect() as one:
            one.sendall(self.request(target))
            return status_of(one)

    def request(self, target: str = "") -> bytes:
        lines = [
            f"POST {target or self.path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "Content-Type: application/json",
            "Accept: application/json, text/event-stream",
            f"Content-Length: {len(self.body)}",
            "Connection: close",
        ]
        return ("\r\n".join([*lines, "", ""]) + self.body).encode()


def status_of(connection: socket.socket) -> int:
    response = http.client.HTTPResponse(connection)
    response.begin()
    response.read()
    return response.status


def serve(name: str, stack: ExitStack, tmp_path) -> Place:
    if name == "mcp":
        servers = stack.enter_context(McpServers())

        async def run(arguments):
            return "paid"

        host, _, path = servers.open("bank", [McpTool(name="pay", run=run)]).url.removeprefix("http://").partition("/")
        # What uvicorn answers.
        return Place("127.0.0.1", int(host.partition(":")[2]), f"/{path}", INITIALIZE, head_too_long=400)
    if name == "endpoint":
        loop = BackgroundLoop()
        stack.callback(loop.close)
        endpoint = ModelEndpoint("chat")
        stack.callback(endpoint.close)

        async def answer(items, request):
            return Reply(say="hello")

        async def open_address():
            return endpoint.open_address(answer)

        host, _, path = loop.run(open_address()).url.removeprefix("http://").partition("/")
        return Place("127.0.0.1", int(host.partition(":")[2]), f"/{path}/chat/completions", CHAT)
    server = stack.enter_context(ScriptedModelServer().running())
    server.begin(parse_scenario(SCENARIO, name="a/hello", path="x"), name="hello")
    place = server.addresses[0]
    if name == "server":
        return Place(place.host, place.port, "/hello/v1/chat/completions", CHAT)
    recorder = Recorder(tmp_path / "recorded.approval.yaml", [])
    proxy = stack.enter_context(RecordingProxy(server.url("hello"), recorder).running())
    return Place("127.0.0.1", int(proxy.url.split(":")[2].partition("/")[0]), "/hello/v1/chat/completions", CHAT)


@pytest.fixture(params=["server", "endpoint", "proxy", "mcp"])
def place(request: pytest.FixtureRequest, tmp_path) -> Iterator[Place]:
    with ExitStack() as stack:
        yield serve(request.param, stack, tmp_path)


def test_request_is_answered(place):
    """What the others are compared with."""
    assert 200 == place.ask()


@pytest.mark.parametrize("base", ["http://127.0.0.1:1", "HTTP://model.invalid"])
def test_address_in_full(place, base):
    """A client that takes the endpoint for a proxy writes the whole address, of which the path counts."""
    assert 200 == place.ask(base + place.path)


@pytest.mark.parametrize("begun", [b"X-Long: ", b"X-Many: 0123456789\r\n" * 3000 + b"X-Long: "], ids=["one", "many"])
def test_head_that_does_not_end(place, begun):
    """It is refused before it fills the memory, and the connection ends."""
    with place.connect() as one:
        one.sendall(f"POST {place.path} HTTP/1.1\r\nHost: x\r\n".encode() + begun)
        try:
            for _ in range(64):
                one.sendall(b"a" * (MAX_HEAD_SIZE // 16))
            status = status_of(one)
        # Whoever sends on after the answer may lose it.
        except ConnectionError:
            status = place.head_too_long
    assert (place.head_too_long, 200) == (status, place.ask())


@pytest.mark.parametrize("announced", [True, False], ids=["length", "chunks"])
def test_body_of_50_mb(place, announced):
    """It is refused, and others are answered."""
    head = place.request().partition(b"Content-Length")[0]
    with place.connect() as one:
        if announced:
            one.sendall(head + b"Content-Length: %d\r\n\r\n" % (50 * 1024 * 1024))
            status = status_of(one)
        else:
            one.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
            chunk = b"100000\r\n" + b" " * 0x100000 + b"\r\n"
            try:
                for _ in range(MAX_BODY_SIZE // 0x100000 + 1):
                    one.sendall(chunk)
                status = status_of(one)
            except ConnectionError:
                status = 413
    assert (413, 200) == (status, place.ask())


@pytest.mark.parametrize("cut", [5, 40, -1], ids=["line", "head", "body"])
def test_half_a_request(place, cut):
    """A client that disconnects in the middle of a request leaves nothing behind."""
    for _ in range(20):
        with place.connect() as one:
            one.sendall(place.request()[:cut])
    assert 200 == place.ask()


def test_what_is_not_http(place):
    """It is answered with status 400, and the connection ends."""
    with place.connect() as one:
        one.sendall(b"hello\r\n\r\n")
        assert 400 == status_of(one)
    assert 200 == place.ask()


def test_many_idle_connections(place):
    """Two thousand clients that say nothing keep nobody waiting."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 8000)), hard))
    try:
        with ExitStack() as stack:
            for _ in range(2000):
                stack.enter_context(place.connect())
            assert 200 == place.ask()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
