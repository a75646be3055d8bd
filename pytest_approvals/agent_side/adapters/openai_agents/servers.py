"""Local MCP: a server in this process, which the SDK lists and calls as it does any other."""

from __future__ import annotations

import json
from typing import Any, cast

from agents.mcp import MCPServer
from mcp import types

from ...contract import ToolRaised, ToolSpec
from ...current import world


class ScenarioServer(MCPServer):
    """
    Offers the tools of one server to one agent.

    The SDK's policy for a server is asked about a tool, not about a call: it is shown neither the arguments nor the
    call id, and a body is told no call id either.
    """

    def __init__(self, name: str, specs: list[ToolSpec]) -> None:
        self._name = name
        self._specs = {spec.name: spec for spec in specs}
        words = {spec.name: spec.approval for spec in specs if isinstance(spec.approval, str)}
        super().__init__(require_approval=cast("Any", words if len(words) == len(specs) else self._asks))

    @property
    def name(self) -> str:
        """See `MCPServer.name`."""
        return self._name

    async def _asks(self, _: Any, agent: Any, tool: Any) -> bool:
        spec = self._specs[tool.name]
        if isinstance(spec.approval, str):
            return spec.approval == "always"
        if spec.approval.waits_for is not None:
            return await world().gate_slowly(spec.name, None, None, agent=spec.agent)
        return world().gate(spec.name, None, None, agent=spec.agent)

    async def list_tools(self, run_context: Any = None, agent: Any = None) -> list[types.Tool]:
        """See `MCPServer.list_tools`."""
        return [_listed(spec) for spec in self._specs.values()]

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> types.CallToolResult:
        """Runs the tool; one that raises is a result that says so, as servers do it."""
        spec = self._specs[tool_name]
        try:
            value = await world().run(tool_name, arguments or {}, None, agent=spec.agent)
        except ToolRaised as error:
            return told(str(error), failed=True)
        return told(value if isinstance(value, str) else json.dumps(value), failed=False)

    async def connect(self) -> None:
        """There is nothing to connect to."""

    async def cleanup(self) -> None:
        """There is nothing to let go of."""

    async def list_prompts(self) -> types.ListPromptsResult:
        """This server has no prompts."""
        return types.ListPromptsResult(prompts=[])

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> types.GetPromptResult:
        """This server has no prompts."""
        raise KeyError(name)


def _listed(spec: ToolSpec) -> types.Tool:
    schema = {
        "type": "object",
        "properties": {name: _schema(one.type, one.required, one.default) for name, one in spec.parameters.items()},
        "required": [name for name, one in spec.parameters.items() if one.required],
    }
    return types.Tool.model_validate({"name": spec.name, "description": spec.description, "inputSchema": schema})


def _schema(kind: str, required: bool, default: Any) -> dict[str, Any]:
    return {"type": kind} if required else {"type": kind, "default": default}


def told(text: str, *, failed: bool) -> types.CallToolResult:
    """Gives what a server answers: *text*, and whether it says that the tool failed."""
    return types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}], "isError": failed})
