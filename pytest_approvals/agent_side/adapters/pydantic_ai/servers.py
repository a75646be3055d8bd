"""
Tools of MCP servers that the agent connects to: each server a real one, in this process.

The framework connects to a server for the time of a run, so that the server's tasks know the world of that run. A
server is not told the id of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from pydantic_ai.mcp import MCPToolset

from pytest_approvals.agent_side.contract import AsksAgain, ToolRaised, ToolSpec, Unsupported

from .model import RUNNING
from .schemas import shaped


def toolset(name: str, specs: Sequence[ToolSpec], policy: Callable[..., bool]) -> Any:
    """Gives the toolset of the server called *name*, whose calls wait for approval where *policy* says so."""
    server = MCPServer(name)
    for spec in specs:
        server.add_tool(_body(spec), name=spec.name, description=spec.description)
    return MCPToolset(server).approval_required(policy)


def _body(spec: ToolSpec) -> Callable[..., Any]:
    async def body(**arguments: Any) -> Any:
        try:
            return await RUNNING.get().run(spec.name, arguments, None, agent=spec.agent)
        except ToolRaised as raised:
            raise ToolError(str(raised)) from raised
        except AsksAgain as asked:
            raise Unsupported("asks_again", "a tool of an MCP server cannot ask for approval") from asked

    return shaped(body, spec)
