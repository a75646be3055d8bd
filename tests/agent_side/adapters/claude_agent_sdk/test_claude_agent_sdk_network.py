"""The CLI reaches the model and its tools; its requests to other machines are refused and reported."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pytest

from pytest_approvals.agent_side.adapters.claude_agent_sdk import InlineSession, agents
from pytest_approvals.agent_side.adapters.claude_agent_sdk.model import SIDE_MODEL, ModelProxy
from pytest_approvals.agent_side.contract import Blueprint
from pytest_approvals.agent_side.process.network_guard import BlockedHost, NetworkGuard, guard_network
from pytest_approvals.runner.model_endpoint import ModelEndpoint
from pytest_approvals.testing import AdapterSession, FakeWorld, call, reply, tool

TOOLS = (tool("pay", "always", amount="integer"),)


@pytest.fixture
def session() -> Iterator[Callable[..., AdapterSession]]:
    """Begin a session whose model calls a gated tool, then says "Done."."""
    begun: list[AdapterSession] = []
    with closing(ModelEndpoint("messages")) as served:

        def begin() -> AdapterSession:
            world = FakeWorld([reply(None, call("pay", amount=5)), reply("Done.")], TOOLS)
            begun.append(AdapterSession(InlineSession, Blueprint(tools=TOOLS), world, served))
            return begun[-1]

        yield begin
        for one in begun:
            one.end()


def find_proxy(session: AdapterSession) -> ModelProxy:
    agent: Any = session.agent
    proxy: ModelProxy = agent._proxy
    return proxy


def test_the_cli_asks_for_no_other_machine(session: Callable[..., AdapterSession]) -> None:
    """A whole turn makes no request to another machine, and none that the script does not know."""
    story = session()
    story.paused("Pay 5.")

    assert ([], []) == (find_proxy(story).refused, find_proxy(story).side_requests)


def test_a_cli_that_is_not_quiet_is_noticed(
    session: Callable[..., AdapterSession], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the variables that keep it quiet it asks for its provider, which nobody reaches."""
    monkeypatch.setattr(agents, "QUIET", {"IS_SANDBOX": "1"})
    blocked: list[BlockedHost] = []
    with guard_network(NetworkGuard((), blocked.append)):
        story = session()
        story.paused("Pay 5.")

    assert "api.anthropic.com" in find_proxy(story).refused
    assert "api.anthropic.com" in [one.host for one in blocked]


def ask(*requests: str) -> tuple[ModelProxy, list[str], list[BlockedHost]]:
    """Send requests to a proxy; return it, the first lines of its answers, and what the guard reports."""
    blocked: list[BlockedHost] = []

    async def send() -> tuple[ModelProxy, list[str]]:
        proxy = ModelProxy(lambda: "http://127.0.0.1:1", {})
        await proxy.start()
        firsts = []
        for request in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
            writer.write(request.replace("\n", "\r\n").encode())
            firsts.append((await reader.readline()).decode().strip())
            writer.close()
        await proxy.close()
        return proxy, firsts

    with guard_network(NetworkGuard((), blocked.append)):
        proxy, firsts = asyncio.run(send())
    return proxy, firsts, blocked


@pytest.mark.parametrize("first", ["CONNECT example.org:443 HTTP/1.1", "GET http://example.org:443/ HTTP/1.1"])
def test_a_request_for_another_machine_is_refused(first: str) -> None:
    """The guard reports it, as it reports what this process asks for."""
    proxy, firsts, blocked = ask(f"{first}\n\n")

    assert (["HTTP/1.1 502 Bad Gateway"], ["example.org"]) == (firsts, proxy.refused)
    assert [BlockedHost("example.org", 443)] == blocked


def test_side_requests_take_no_reply_of_the_script() -> None:
    """Titles and counts of tokens are answered here; nobody listens at the address of the model."""
    body = f'{{"model": "{SIDE_MODEL}", "messages": []}}'
    posts = [
        f"POST /v1/messages{path} HTTP/1.1\nContent-Length: {len(body)}\n\n{body}" for path in ("", "/count_tokens")
    ]
    proxy, firsts, _ = ask(*posts)

    assert ["HTTP/1.1 200 OK", "HTTP/1.1 200 OK"] == firsts
    assert [SIDE_MODEL, "count_tokens"] == proxy.side_requests
