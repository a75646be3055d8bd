"""Servers of ours that ask the caller in the middle of a call, in both forms of the protocol."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from pytest_approvals.agent_side.contract import ElicitationAnswer, Elicits
from pytest_approvals.runner.mcp.servers import McpAddress, McpServers, McpTool

FORM = {"type": "object", "properties": {"account": {"type": "string"}}, "required": ["account"]}


@pytest.fixture
def servers() -> Iterator[McpServers]:
    with McpServers() as opened:
        yield opened


class Asking:
    """A tool that asks, and notes what it is answered."""

    def __init__(self, url: str | None = None) -> None:
        self.answers: list[tuple[str, Any, str | None, int]] = []
        self._url = url

    async def run(self, arguments: Mapping[str, Any]) -> Any:
        question = Elicits("Which account?", None if self._url else FORM, self._url)
        question.number = 7
        raise question

    async def resume(self, arguments: Mapping[str, Any], answer: ElicitationAnswer) -> Any:
        self.answers.append((answer.action, answer.content, answer.error, answer.execution))
        return "paid"

    def open(self, servers: McpServers) -> McpAddress:
        return servers.open("bank", [McpTool(name="pay", run=self.run, resume=self.resume)])


async def call(address: McpAddress, answer: ElicitResult | None, *, modern: bool) -> tuple[str, list[Any]]:
    """Call the tool with the SDK's client, which answers so; return the result, and what the client was asked."""
    asked: list[Any] = []

    async def callback(context: Any, params: Any) -> Any:
        asked.append(params)
        return answer

    options: dict[str, Any] = {} if answer is None else {"elicitation_callback": callback}
    if modern:
        mcp_client = pytest.importorskip("mcp.client.client")
        async with mcp_client.Client(address.url, **options) as client:
            result = await client.call_tool("pay", {})
    else:
        async with (
            streamable_http_client(address.url) as (read, write, *_),
            ClientSession(read, write, **options) as session,
        ):
            await session.initialize()
            result = await session.call_tool("pay", {})
    return result.content[0].text, asked


@pytest.mark.parametrize("modern", [False, True], ids=["2025-11-25", "2026-07-28"])
class TestServerThatAsks:
    @pytest.mark.asyncio
    async def test_a_form_is_answered(self, servers: McpServers, modern: bool) -> None:
        """The client is sent the question with its schema, and the execution goes on with the answer."""
        tool = Asking()

        result, asked = await call(
            tool.open(servers), ElicitResult(action="accept", content={"account": "savings"}), modern=modern
        )

        assert [("accept", {"account": "savings"}, None, 7)] == tool.answers
        assert ("paid", "Which account?", FORM) == (result, asked[0].message, asked[0].requested_schema)

    @pytest.mark.parametrize("action", ["decline", "cancel"])
    @pytest.mark.asyncio
    async def test_a_no_reaches_the_tool(self, servers: McpServers, action: Any, modern: bool) -> None:
        """To decline and to cancel are two answers."""
        tool = Asking()

        await call(tool.open(servers), ElicitResult(action=action), modern=modern)

        assert [(action, None, None, 7)] == tool.answers

    @pytest.mark.asyncio
    async def test_an_address_is_opened(self, servers: McpServers, modern: bool) -> None:
        """In place of a form there is an address."""
        tool = Asking("https://bank.invalid/confirm")

        _, asked = await call(tool.open(servers), ElicitResult(action="accept"), modern=modern)

        assert ("url", "https://bank.invalid/confirm") == (asked[0].mode, asked[0].url)
        assert [("accept", None, None, 7)] == tool.answers


@pytest.mark.asyncio
async def test_a_client_that_cannot_ask_refuses(servers: McpServers) -> None:
    """The execution goes on with the reason."""
    tool = Asking()

    await call(tool.open(servers), None, modern=False)

    assert [("refuse", None, "Elicitation not supported", 7)] == tool.answers
