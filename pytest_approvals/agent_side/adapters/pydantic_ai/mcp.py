"""
Tools of MCP servers that the agent connects to, with the framework's own client.

The framework connects for the time of a run. A server is not told the id of a call.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

from pytest_approvals.agent_side.contract import ServerAddress

MCP_TIMEOUT = 600.0
"""Seconds that a tool may take: the harness has a limit of its own."""


def build_mcp_toolset(address: ServerAddress, policy: Callable[..., bool]) -> Any:
    """Gives the toolset of the server at *address*, whose calls wait for approval where *policy* says so."""
    return MCPToolset(address.url or _build_transport(address), read_timeout=MCP_TIMEOUT).approval_required(policy)


def _build_transport(address: ServerAddress) -> StdioTransport:
    command, *arguments = address.command
    return StdioTransport(command, arguments, keep_alive=False)
