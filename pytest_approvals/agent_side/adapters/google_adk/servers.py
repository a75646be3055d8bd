"""
Tools of MCP servers that the agent connects to: each server a real one, in this process.

The framework's toolset takes one policy for all its tools, so that tools with different ones are in toolsets of their
own, as filters let a person make them. A server is not told the id of a call.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from mcp import StdioServerParameters, types
from mcp.server.lowlevel import Server
from mcp.shared.memory import create_client_server_memory_streams

from ...contract import AsksAgain, ToolRaised, ToolSpec, Unsupported
from ...current import world
from .tools import policy


def toolsets(specs: Iterable[ToolSpec]) -> list[Any]:
    """Gives the toolsets of one agent: for each server one for each policy."""
    groups: dict[tuple[str, str], list[ToolSpec]] = {}
    for spec in specs:
        groups.setdefault((str(spec.server), str(spec.approval)), []).append(spec)
    return [_toolset(group) for group in groups.values()]


def _toolset(specs: list[ToolSpec]) -> Any:
    nowhere = StdioConnectionParams(server_params=StdioServerParameters(command="no-such-command"))
    toolset = McpToolset(connection_params=nowhere, require_confirmation=policy(specs[0]))
    # What is exchanged is the transport alone: the framework's own session stands on these streams as on any others.
    toolset._mcp_session_manager._create_client = lambda *_, **__: _connected(specs)  # type: ignore[method-assign, unused-ignore]
    return toolset


@asynccontextmanager
async def _connected(specs: list[ToolSpec]) -> AsyncIterator[Any]:
    import anyio

    server = _server(specs)
    async with create_client_server_memory_streams() as (client, (read, write)), anyio.create_task_group() as tasks:
        tasks.start_soon(server.run, read, write, server.create_initialization_options())
        yield client
        tasks.cancel_scope.cancel()


def _server(specs: list[ToolSpec]) -> Any:
    server: Any = Server(str(specs[0].server))
    by_name = {spec.name: spec for spec in specs}

    @server.list_tools()
    async def list_tools() -> list[types.Tool]:
        return [_listed(spec) for spec in specs]

    @server.call_tool()
    async def call_tool(name: str, arguments: dict[str, Any]) -> types.CallToolResult:
        return await _run(by_name[name], arguments)

    return server


async def _run(spec: ToolSpec, arguments: dict[str, Any]) -> types.CallToolResult:
    """Runs a tool; one that raises is a result that says so, as servers do it."""
    try:
        value = await world().run(spec.name, arguments, None, agent=spec.agent)
    except ToolRaised as error:
        return _told(str(error), failed=True)
    except AsksAgain as asked:
        raise Unsupported("asks_again", "a tool of an MCP server cannot ask for a confirmation") from asked
    return _told(value if isinstance(value, str) else json.dumps(value), failed=False)


def _told(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "isError": failed})


def _listed(spec: ToolSpec) -> types.Tool:
    schema = {
        "type": "object",
        "properties": {
            name: {"type": one.type} if one.required else {"type": one.type, "default": one.default}
            for name, one in spec.parameters.items()
        },
        "required": [name for name, one in spec.parameters.items() if one.required],
    }
    return types.Tool.model_validate({"name": spec.name, "description": spec.description, "inputSchema": schema})
