"""A server of the MCP SDK, of either of its major releases, made from tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from .tools import OfferedTool


def server_of(name: str, tools: Sequence[OfferedTool]) -> Any:
    """Gives the SDK's server called *name*, which offers *tools*."""
    from mcp import types
    from mcp.server.lowlevel import Server

    by_name = {tool.name: tool for tool in tools}

    async def listed(*_: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[types.Tool.model_validate(_written(tool)) for tool in tools])

    async def called(asked: Any) -> types.CallToolResult:
        return types.CallToolResult.model_validate(await _result(by_name, asked.name, asked.arguments or {}))

    if not hasattr(Server, "list_tools"):
        return Server(name, on_list_tools=listed, on_call_tool=lambda _, asked: called(asked))
    earlier: Any = Server(name)
    result: Any = getattr(types, "ServerResult")  # noqa: B009 - the later release has no such name

    async def answer_list(_: Any) -> Any:
        return result(await listed())

    async def answer_call(request: Any) -> Any:
        return result(await called(request.params))

    earlier.request_handlers[types.ListToolsRequest] = answer_list
    earlier.request_handlers[types.CallToolRequest] = answer_call
    return earlier


def _written(tool: OfferedTool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}


async def _result(tools: Mapping[str, OfferedTool], name: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Runs a call; one that fails has a result that says so, which is how servers tell the model of it."""
    if name not in tools:
        return _told(f"Unknown tool: {name}", failed=True)
    try:
        value = await tools[name].run(arguments)
    except Exception as error:
        return _told(str(error), failed=True)
    return _told(value if isinstance(value, str) else json.dumps(value), failed=False)


def _told(text: str, *, failed: bool) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], "isError": failed}
