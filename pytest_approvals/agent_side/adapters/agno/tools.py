"""Tools made from tool specs, as functions with the decorator `tool`, and MCP toolkits.

The framework connects its own toolkit for an MCP server for each run. A server does not receive the id of a call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter as Argument
from typing import Any

from agno.tools import tool
from agno.tools.function import FunctionCall

from ...contract import ServerAddress, ToolSpec
from ...kit.clients import MCP_TIMEOUT, split_command
from ...kit.context import current_world
from ...kit.tool_schema import set_signature, to_signature_parameters

CALL_PARAMETER = "fc"
"""Parameter through which the framework passes its call to a body."""


def build_tool(spec: ToolSpec, **marks: Any) -> Any:
    """Build the tool that *spec* describes.

    Args:
        spec: The tool.
        marks: More arguments for the decorator.
    """

    async def body(fc: Any, **arguments: Any) -> Any:
        return await current_world().run(spec.name, arguments, fc.call_id, agent=spec.agent)

    if spec.approval != "never":
        marks["requires_confirmation"] = True
    return tool(name=spec.name, description=spec.description or spec.name, **marks)(with_signature(body, spec))


def build_tools(
    specs: Sequence[ToolSpec], servers: Iterable[ServerAddress], marks: Mapping[str, Any] | None = None
) -> list[Any]:
    """Build the tools of one agent: functions, and a toolkit for each server.

    Args:
        specs: The tools.
        servers: The addresses of its MCP servers.
        marks: More arguments for the decorator of gated functions.
    """
    functions = [spec for spec in specs if spec.kind != "mcp"]
    tools = [build_tool(spec, **((marks or {}) if spec.approval != "never" else {})) for spec in functions]
    toolkits = [build_toolkit(address, [spec for spec in specs if spec.server == address.name]) for address in servers]
    return [*tools, *toolkits]


def with_signature(body: Callable[..., Any], spec: ToolSpec) -> Callable[..., Any]:
    """Give *body* the signature that a user would write for the tool."""
    # Errors about arguments, which the model is told, have the qualified name.
    body.__name__ = body.__qualname__ = spec.name
    call = Argument(CALL_PARAMETER, Argument.KEYWORD_ONLY, annotation=FunctionCall)
    return set_signature(body, call, *to_signature_parameters(spec.parameters))


def build_toolkit(address: ServerAddress, specs: Sequence[ToolSpec]) -> Any:
    """Build the toolkit for the server at *address*, whose gated tools among *specs* ask."""
    from agno.tools.mcp import MCPTools
    from mcp import StdioServerParameters

    more: dict[str, Any] = {
        "name": address.name,
        "requires_confirmation_tools": [spec.name for spec in specs if spec.approval != "never"],
        "timeout_seconds": MCP_TIMEOUT,
    }
    if address.url:
        return MCPTools(url=address.url, transport="streamable-http", **more)
    program, arguments = split_command(address)
    return MCPTools(server_params=StdioServerParameters(command=program, args=arguments), transport="stdio", **more)
