"""Local MCP: tools of a server in this process, which the framework calls as it does any other's."""

from __future__ import annotations

import json
from typing import Any

from mcp import types
from strands.tools.mcp import MCPAgentTool, MCPClient

from ...contract import ToolRaised, ToolSpec
from ...current import world


class ScenarioClient(MCPClient):
    """A client whose server is in this process; it is told the call id, and no server ever is."""

    def __init__(self, spec: ToolSpec) -> None:
        super().__init__(lambda: None)
        self._spec = spec

    async def call_tool_async(self, tool_use_id: str, name: str, arguments: Any = None, *_: Any, **__: Any) -> Any:
        """Runs the tool; one that raises is a result that says so, as servers do it."""
        try:
            value = await world().run(self._spec.name, arguments or {}, None, agent=self._spec.agent)
        except ToolRaised as error:
            return _result(tool_use_id, "error", str(error))
        return _result(tool_use_id, "success", value if isinstance(value, str) else json.dumps(value))


def made(spec: ToolSpec) -> MCPAgentTool:
    """Gives the tool of a server that *spec* describes."""
    schema = {
        "type": "object",
        "properties": {name: {"type": one.type} for name, one in spec.parameters.items()},
        "required": [name for name, one in spec.parameters.items() if one.required],
    }
    described = types.Tool.model_validate(
        {"name": spec.name, "description": spec.description or spec.name, "inputSchema": schema}
    )
    return MCPAgentTool(described, ScenarioClient(spec))


def _result(id: str, status: str, text: str) -> dict[str, Any]:
    return {"toolUseId": id, "status": status, "content": [{"text": text}]}
