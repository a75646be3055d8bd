"""
Tools of MCP servers that the agent connects to, with the framework's own workbench.

A server is not told the id of a call.
"""

from __future__ import annotations

from typing import Any

from autogen_ext.tools.mcp import McpWorkbench, StdioServerParams, StreamableHttpServerParams

from ...contract import ServerAddress

PATIENCE = 600.0
"""Seconds that a connection or a tool may take: the harness has a limit of its own."""


class Connection:
    """The framework's workbench for one server, and whether it is connected."""

    def __init__(self, address: ServerAddress) -> None:
        self.workbench = McpWorkbench(_parameters(address))
        self._connected = False

    async def start(self) -> None:
        """Lets the workbench connect, once."""
        if not self._connected:
            self._connected = True
            await self.workbench.start()

    async def stop(self) -> None:
        """Lets the workbench go."""
        if self._connected:
            self._connected = False
            await self.workbench.stop()


def _parameters(address: ServerAddress) -> Any:
    if address.url:
        return StreamableHttpServerParams(url=address.url, timeout=PATIENCE, sse_read_timeout=PATIENCE)
    program, *arguments = address.command
    return StdioServerParams(command=program, args=arguments, read_timeout_seconds=PATIENCE)
