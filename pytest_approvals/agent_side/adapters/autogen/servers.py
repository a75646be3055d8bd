"""
Tools of MCP servers that the agent connects to: each server a real one, on a port of this machine.

A server is not told the id of a call.
"""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import uvicorn
from autogen_ext.tools.mcp import McpWorkbench, StreamableHttpServerParams
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.applications import Starlette
from starlette.routing import Mount

from ...contract import ToolSpec, World


class _Quiet(uvicorn.Server):
    """A server that leaves the signals of the process alone."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class ScenarioServer:
    """The tools of one server, and the framework's workbench that connects to it."""

    def __init__(self, name: str, specs: Sequence[ToolSpec], world: World) -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._serving: asyncio.Task[None] | None = None
        self._http = _Quiet(uvicorn.Config(_app(name, specs, world), log_level="critical", lifespan="on"))
        port = self._socket.getsockname()[1]
        self.workbench = McpWorkbench(StreamableHttpServerParams(url=f"http://127.0.0.1:{port}/mcp/"))

    async def start(self) -> None:
        """Serves, and lets the workbench connect."""
        if self._serving is None:
            self._serving = asyncio.create_task(self._http.serve(sockets=[self._socket]))
            await self.workbench.start()

    async def stop(self) -> None:
        """Lets the workbench go, and serves no more."""
        if self._serving is not None:
            await self.workbench.stop()
            self._http.should_exit = True
            self._http.force_exit = True
            await self._serving
        self._socket.close()


def _app(name: str, specs: Sequence[ToolSpec], world: World) -> Starlette:
    manager = StreamableHTTPSessionManager(app=_server(name, specs, world), json_response=True)

    @asynccontextmanager
    async def alive(_: Any) -> AsyncIterator[None]:
        async with manager.run():
            yield

    return Starlette(routes=[Mount("/mcp", app=manager.handle_request)], lifespan=alive)


def _server(name: str, specs: Sequence[ToolSpec], world: World) -> Any:
    server: Any = Server(name)
    known = {spec.name: spec for spec in specs}

    @server.list_tools()
    async def listed() -> list[types.Tool]:
        return [_listed(spec) for spec in specs]

    @server.call_tool()
    async def called(tool: str, arguments: dict[str, Any]) -> list[types.TextContent]:
        value = await world.run(tool, arguments, None, agent=known[tool].agent)
        return [types.TextContent(type="text", text=value if isinstance(value, str) else json.dumps(value))]

    return server


def _listed(spec: ToolSpec) -> types.Tool:
    fields = {
        name: {"type": one.type} if one.required else {"type": one.type, "default": one.default}
        for name, one in spec.parameters.items()
    }
    required = [name for name, one in spec.parameters.items() if one.required]
    schema = {"type": "object", "properties": fields, "required": required}
    return types.Tool.model_validate({"name": spec.name, "description": spec.description, "inputSchema": schema})
