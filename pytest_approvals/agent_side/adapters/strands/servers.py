"""
Tools of MCP servers that the agent connects to, with the framework's own client, which the agent starts and stops.

The client connects where its agent is made, and blocks until it has. It is told the id of a call, and no server is.
"""

from __future__ import annotations

from typing import Any

from mcp import StdioServerParameters, stdio_client
from mcp.client import streamable_http
from strands.tools.mcp import MCPClient

from ...contract import ServerAddress

PATIENCE = 600
"""Seconds that a connection may take: the harness has a limit of its own."""


def client(address: ServerAddress) -> MCPClient:
    """Gives the client of the server at *address*."""
    return MCPClient(lambda: _connection(address), startup_timeout=PATIENCE)


def _connection(address: ServerAddress) -> Any:
    if not address.url:
        program, *arguments = address.command
        return stdio_client(StdioServerParameters(command=program, args=arguments))
    # The SDK's releases call it by one of two names.
    sdk: Any = streamable_http
    connect = sdk.streamable_http_client if hasattr(sdk, "streamable_http_client") else sdk.streamablehttp_client
    return connect(address.url)
