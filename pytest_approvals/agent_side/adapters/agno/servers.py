"""
Tools of MCP servers that the agent connects to: the framework's toolkit on a client session whose server is here.

A server is not told the id of a call.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agno.tools.mcp import MCPTools
from mcp import types

from ...contract import ToolRaised, ToolSpec
from ...current import world


def toolkit(server: str, specs: Sequence[ToolSpec]) -> Any:
    """Gives the toolkit for the server called *server*, whose gated tools ask."""
    gated = [spec.name for spec in specs if spec.approval != "never"]
    session: Any = Session(specs)
    return MCPTools(session=session, name=server, requires_confirmation_tools=gated)


class Session:
    """What the framework asks of a client session, answered by a server in this process."""

    def __init__(self, specs: Sequence[ToolSpec]) -> None:
        self._specs = {spec.name: spec for spec in specs}

    async def initialize(self) -> None:
        """There is nothing to agree on."""

    async def send_ping(self) -> None:
        """The server is always there."""

    async def list_tools(self, **_: Any) -> types.ListToolsResult:
        """Lists the tools of the server."""
        return types.ListToolsResult(tools=[_listed(spec) for spec in self._specs.values()])

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None, **_: Any) -> types.CallToolResult:
        """Runs the tool; one that raises is a result that says so, as servers do it."""
        spec = self._specs[name]
        try:
            value = await world().run(name, arguments or {}, None, agent=spec.agent)
        except ToolRaised as error:
            return _told(str(error), failed=True)
        return _told(value if isinstance(value, str) else json.dumps(value), failed=False)


def _listed(spec: ToolSpec) -> types.Tool:
    properties = {
        name: {"type": one.type} if one.required else {"type": one.type, "default": one.default}
        for name, one in spec.parameters.items()
    }
    required = [name for name, one in spec.parameters.items() if one.required]
    schema = {"type": "object", "properties": properties, "required": required}
    return types.Tool.model_validate({"name": spec.name, "description": spec.description, "inputSchema": schema})


def _told(text: str, *, failed: bool) -> types.CallToolResult:
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "isError": failed})
