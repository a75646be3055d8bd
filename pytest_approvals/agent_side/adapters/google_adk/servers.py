"""
Tools of MCP servers that the agent connects to, with the framework's own toolset.

The toolset takes one policy for all its tools, so that tools with different ones are in toolsets of their own, as
filters let a person make them. The framework keeps its connections until its runner is closed. A server is not told the
id of a call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from mcp import StdioServerParameters

from ...contract import ServerAddress, ToolSpec
from .tools import policy

PATIENCE = 600.0
"""Seconds that a connection or a tool may take: the harness has a limit of its own."""

# By default the framework looks for credentials of its cloud before it connects to any server, first on the network.
os.environ.setdefault("GOOGLE_API_USE_CLIENT_CERTIFICATE", "false")


def toolsets(addresses: Iterable[ServerAddress], specs: Iterable[ToolSpec]) -> list[Any]:
    """Gives the toolsets of one agent with the tools *specs*: for each of its servers one for each policy."""
    offered = list(specs)
    return [
        _toolset(address, group)
        for address in addresses
        for group in _by_policy(spec for spec in offered if spec.server == address.name)
    ]


def _by_policy(specs: Iterable[ToolSpec]) -> Iterable[list[ToolSpec]]:
    groups: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        groups.setdefault(str(spec.approval), []).append(spec)
    return groups.values()


def _toolset(address: ServerAddress, specs: list[ToolSpec]) -> Any:
    return McpToolset(
        connection_params=_connection(address),
        tool_filter=[spec.name for spec in specs],
        require_confirmation=policy(specs[0]),
    )


def _connection(address: ServerAddress) -> Any:
    if address.url:
        return StreamableHTTPConnectionParams(url=address.url, timeout=PATIENCE, sse_read_timeout=PATIENCE)
    program, *arguments = address.command
    return StdioConnectionParams(server_params=StdioServerParameters(command=program, args=arguments), timeout=PATIENCE)
