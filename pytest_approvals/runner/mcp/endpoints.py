"""MCP servers that the agents of one run connect to.

Every agent object has servers of its own, at addresses that its blueprint names; what they execute is executed in its
worlds. They run in this process, whatever process and language the agent is in, so an adapter only connects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import ServerAddress, ToolSpec
from pytest_approvals.runner.mcp.servers import McpServers, McpTool

ExecuteCall = Callable[[ToolSpec, Mapping[str, Any]], Coroutine[Any, Any, Any]]
"""Executes a call of a tool in the world of its caller."""


class RunMcpServers:
    """Servers of the tools of kind `mcp` of one run.

    Calls are executed in the event loop in which it is made.

    Args:
        transports: The transport of each server, by name; `http` unless it is `stdio`.
    """

    def __init__(self, transports: Mapping[str, str] | None = None) -> None:
        self._servers = McpServers()
        self._transports = transports or {}
        self._loop = asyncio.get_running_loop()

    def open_servers(self, specs: Iterable[ToolSpec], execute: ExecuteCall) -> tuple[ServerAddress, ...]:
        """Serve the tools of an agent object, and return the address of each of its servers.

        Raises:
            UsageError: The MCP SDK is not installed.
        """
        by_server: dict[tuple[str, str], list[ToolSpec]] = {}
        for spec in specs:
            if spec.kind == "mcp":
                by_server.setdefault((spec.agent, spec.server or "server"), []).append(spec)
        return tuple(self._open_server(agent, name, several, execute) for (agent, name), several in by_server.items())

    def close(self) -> None:
        """End all servers."""
        self._servers.close()

    def _open_server(self, agent: str, name: str, specs: Iterable[ToolSpec], execute: ExecuteCall) -> ServerAddress:
        opened = self._servers.open(name, [self._build_tool(spec, execute) for spec in specs])
        if self._transports.get(name) == "stdio":
            return ServerAddress(name=name, agent=agent, command=opened.command)
        return ServerAddress(name=name, agent=agent, url=opened.url)

    def _build_tool(self, spec: ToolSpec, execute: ExecuteCall) -> McpTool:
        async def execute_in_run(arguments: Mapping[str, Any]) -> Any:
            # Servers have a thread of their own, but worlds belong to the event loop of their run.
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(execute(spec, arguments), self._loop))

        return McpTool(name=spec.name, run=execute_in_run, parameters=spec.parameters, description=spec.description)
