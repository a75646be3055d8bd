"""
Tools of MCP servers that the agent connects to, with LangChain's own client, which is a distribution of its own.

As its documentation has it, the tools are listed before the graph is made, and each call connects anew. A server is not
told the id of a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from ...contract import ServerAddress

PATIENCE = timedelta(minutes=10)
"""How long a tool may take: the harness has a limit of its own."""

Offered = Mapping[tuple[str, str], Any]
"""The framework's tools for those that servers offer, by agent and name."""


async def offered(addresses: Iterable[ServerAddress]) -> Offered:
    """Lists the tools of the servers at *addresses*."""
    found: dict[tuple[str, str], Any] = {}
    for address in addresses:
        from langchain_mcp_adapters.client import MultiServerMCPClient

        client = MultiServerMCPClient({address.name: _connection(address)})
        found |= {(address.agent, tool.name): tool for tool in await client.get_tools()}
    return found


def _connection(address: ServerAddress) -> Any:
    if address.url:
        patience = {"timeout": PATIENCE, "sse_read_timeout": PATIENCE}
        return {"transport": "streamable_http", "url": address.url, **patience}
    program, *arguments = address.command
    return {"transport": "stdio", "command": program, "args": arguments}
