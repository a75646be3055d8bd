"""The MCP server of a person's test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult

from pytest_approvals import asks_again, elicits, raises, returns, tool
from pytest_approvals.errors import UsageError
from pytest_approvals.plugin.servers import ToolServer

Serve = Callable[..., ToolServer]

PAY = tool("pay", returns("paid {amount}"), raises("the bank is closed"), parameters={"amount": "integer"})


async def said(streams: Any, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """What the server answers to these calls."""
    async with streams as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        results = [await session.call_tool(name, arguments) for name, arguments in calls]
    return [result.content[0].text for result in results]


@pytest.mark.asyncio
async def test_a_tool_does_what_the_test_says(mcp_server: Serve) -> None:
    """Successive executions do what the behaviours say, the last one for ever; all of them are noted."""
    bank = mcp_server("bank", PAY)
    answers = await said(
        streamable_http_client(bank.url), ("pay", {"amount": 5}), ("pay", {"amount": 6}), ("pay", {"amount": 7})
    )

    assert ["paid 5", "the bank is closed", "the bank is closed"] == answers
    assert [("pay", {"amount": 5}), ("pay", {"amount": 6}), ("pay", {"amount": 7})] == bank.ran


@pytest.mark.asyncio
async def test_the_program_is_the_same_server(mcp_server: Serve) -> None:
    """Over stdio, what runs is noted, too."""
    bank = mcp_server("bank", PAY)
    program = StdioServerParameters(command=bank.command[0], args=list(bank.command[1:]))

    assert ["paid 5"] == await said(stdio_client(program), ("pay", {"amount": 5}))
    assert [("pay", {"amount": 5})] == bank.ran


@pytest.mark.asyncio
async def test_annotations_are_served(mcp_server: Serve) -> None:
    """A client reads what the test says about a tool."""
    bank = mcp_server("bank", tool("look", annotations={"readOnlyHint": True}))
    async with streamable_http_client(bank.url) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        (look,) = (await session.list_tools()).tools

    assert look.annotations is not None
    assert {"readOnlyHint": True} == look.annotations.model_dump(by_alias=True, exclude_none=True)


def test_a_tool_that_asks_again_is_refused(mcp_server: Serve) -> None:
    """A server cannot ask in the middle of a tool."""
    with pytest.raises(UsageError) as error:
        mcp_server("bank", tool("pay", asks_again("Really?"), returns("paid")))

    assert (
        "the tool 'pay' of the server 'bank' waits or asks again, and a server of a test only returns or raises"
        == str(error.value)
    )


@pytest.mark.asyncio
async def test_a_tool_asks_the_caller_of_the_client(mcp_server: Serve) -> None:
    """What is asked in the middle of a call, and how it is answered, is what the test says and notes."""
    asks = elicits("From where shall {amount} be paid?", form={"account": "string"})
    pay = tool(
        "pay", returns("paid {amount} from {account}", elicits=asks), parameters={"amount": "integer"}, kind="mcp"
    )
    bank = mcp_server("bank", pay)

    async def answer(_: Any, params: Any) -> ElicitResult:
        return ElicitResult(action="accept", content={"account": f"the answer to {params.message}"})

    async with (
        streamable_http_client(bank.url) as (read, write, *_),
        ClientSession(read, write, elicitation_callback=answer) as session,
    ):
        await session.initialize()
        result = await session.call_tool("pay", {"amount": 5})

    assert "paid 5 from the answer to From where shall 5 be paid?" == getattr(result.content[0], "text", "")
    assert [("pay", "accept", {"account": "the answer to From where shall 5 be paid?"})] == bank.elicited
