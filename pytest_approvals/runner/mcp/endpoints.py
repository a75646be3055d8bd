"""
The MCP servers that the agents of one run connect to.

Every agent object has servers of its own, at addresses that its blueprint names; what they run is run in its worlds.
They stand in this process, whatever process and language the agent is in, so an adapter only connects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.types import ServerAddress, ToolSpec
from pytest_approvals.runner.mcp.servers import McpServers, McpTool

if TYPE_CHECKING:
    from pytest_approvals.runner.world import RecordingWorld

ExecuteCall = Callable[[ToolSpec, Mapping[str, Any]], Coroutine[Any, Any, Any]]
"""Runs a call of a tool in the world of whoever made it."""


class RunMcpServers:
    """Serves tools of the kind `mcp` for as long as a run takes; calls run in the event loop that it is made in."""

    def __init__(self, transports: Mapping[str, str] | None = None) -> None:
        self._servers = McpServers()
        self._transports = transports or {}
        self._loop = asyncio.get_running_loop()

    def addresses(self, specs: Iterable[ToolSpec], run: ExecuteCall) -> tuple[ServerAddress, ...]:
        """
        Serves the tools of an agent object, and says where each of its servers is.

        Errors:
            UsageError: The MCP SDK is not installed.
        """
        by_server: dict[tuple[str, str], list[ToolSpec]] = {}
        for spec in specs:
            if spec.kind == "mcp":
                by_server.setdefault((spec.agent, spec.server or "server"), []).append(spec)
        return tuple(self._address(agent, name, several, run) for (agent, name), several in by_server.items())

    def close(self) -> None:
        """Ends all servers."""
        self._servers.close()

    def _address(self, agent: str, name: str, specs: Iterable[ToolSpec], run: ExecuteCall) -> ServerAddress:
        opened = self._servers.open(name, [self._offered(spec, run) for spec in specs])
        if self._transports.get(name) == "stdio":
            return ServerAddress(name=name, agent=agent, command=opened.command)
        return ServerAddress(name=name, agent=agent, url=opened.url)

    def _offered(self, spec: ToolSpec, run: ExecuteCall) -> McpTool:
        async def crossing(arguments: Mapping[str, Any]) -> Any:
            return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(run(spec, arguments), self._loop))

        return McpTool(name=spec.name, run=crossing, parameters=spec.parameters, description=spec.description)


def create_world_dispatcher(world: RecordingWorld) -> ExecuteCall:
    """
    Gives what runs the calls of an agent object's servers.

    A server is told neither the id of a call nor who made it: where several sessions share the agent object, it is the
    one whose turn runs and whose model made such a call.
    """
    return partial(_dispatch_call, world.sharing)


async def _dispatch_call(sharing: Sequence[RecordingWorld], spec: ToolSpec, arguments: Mapping[str, Any]) -> Any:
    made = (one for one in sharing if one.in_turn and any(one.progress.candidates(spec.name, arguments, None)))
    return await next(made, sharing[0]).run(spec.name, arguments, None, agent=spec.agent)
