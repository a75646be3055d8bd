"""
Tools of MCP servers that the agent connects to, with the framework's own toolkit, which it connects for each run.

A server is not told the id of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agno.tools.mcp import MCPTools
from mcp import StdioServerParameters

from ...contract import ServerAddress, ToolSpec

PATIENCE = 600
"""Seconds that a tool may take: the harness has a limit of its own."""


def toolkit(address: ServerAddress, specs: Sequence[ToolSpec]) -> Any:
    """Gives the toolkit for the server at *address*, which offers *specs*, and whose gated tools ask."""
    more: dict[str, Any] = {
        "name": address.name,
        "requires_confirmation_tools": [spec.name for spec in specs if spec.approval != "never"],
        "timeout_seconds": PATIENCE,
    }
    if address.url:
        return MCPTools(url=address.url, transport="streamable-http", **more)
    program, *arguments = address.command
    return MCPTools(server_params=StdioServerParameters(command=program, args=arguments), transport="stdio", **more)
