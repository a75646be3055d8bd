"""
Local MCP: the SDK's own client of a server, connected for the time of a turn as its context manager does.

The SDK's policy for a server is asked about a tool, not about a call: it is shown neither the arguments nor the call
id. A server is told no call id either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp

from ...contract import ServerAddress, ToolSpec
from ...current import world

PATIENCE = 600.0
"""Seconds that a tool may take: the harness has a limit of its own."""


def client(address: ServerAddress, specs: Sequence[ToolSpec]) -> MCPServer:
    """Gives the client of the server at *address*, whose tools *specs* describe."""
    more: dict[str, Any] = {
        "name": address.name,
        "require_approval": _policy(specs),
        "client_session_timeout_seconds": PATIENCE,
    }
    if address.url:
        return MCPServerStreamableHttp({"url": address.url}, **more)
    program, *arguments = address.command
    return MCPServerStdio({"command": program, "args": arguments}, **more)


def _policy(specs: Sequence[ToolSpec]) -> Any:
    words = {spec.name: spec.approval for spec in specs if isinstance(spec.approval, str)}
    if len(words) == len(specs):
        return words
    by_name = {spec.name: spec for spec in specs}

    async def asks(_: Any, agent: Any, tool: Any) -> bool:
        spec = by_name[tool.name]
        if isinstance(spec.approval, str):
            return spec.approval == "always"
        if spec.approval.waits_for is not None:
            return await world().gate_slowly(spec.name, None, None, agent=spec.agent)
        return world().gate(spec.name, None, None, agent=spec.agent)

    return asks
