"""
Tools of MCP servers: those that the agent connects to, and those that the provider calls.

To the former the framework's own client of each is connected for the time of a turn. Neither a server nor what asks for
approval is told more than the name and the arguments of a call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agent_framework import MCPStdioTool, MCPStreamableHTTPTool

from ...contract import ServerAddress, ToolSpec

PATIENCE = 600
"""Seconds that a tool may take: the harness has a limit of its own."""


def client(address: ServerAddress, specs: Sequence[ToolSpec]) -> Any:
    """Gives the client of the server at *address*, where *specs* are the tools of the agent that has it."""
    offered = [spec for spec in specs if spec.kind == "mcp" and spec.server == address.name]
    more: dict[str, Any] = {
        "name": address.name,
        "approval_mode": _gates(offered),
        "load_prompts": False,
        "request_timeout": PATIENCE,
    }
    if address.url:
        return MCPStreamableHTTPTool(url=address.url, **more)
    program, *arguments = address.command
    return MCPStdioTool(command=program, args=arguments, **more)


def hosted(specs: Sequence[ToolSpec]) -> list[Any]:
    """Gives the servers that the provider calls for an agent with these tools."""
    servers: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        if spec.kind == "hosted_mcp":
            servers.setdefault(str(spec.server), []).append(spec)
    return [_hosted(name, own) for name, own in servers.items()]


def _hosted(name: str, specs: Sequence[ToolSpec]) -> Any:
    from agent_framework.openai import OpenAIChatClient

    return OpenAIChatClient.get_mcp_tool(
        name=name,
        url=f"http://{name}.invalid/mcp",
        approval_mode=_gates(specs),
        allowed_tools=[spec.name for spec in specs],
    )


def _gates(specs: Sequence[ToolSpec]) -> dict[str, list[str]]:
    return {
        "always_require_approval": [spec.name for spec in specs if spec.approval != "never"],
        "never_require_approval": [spec.name for spec in specs if spec.approval == "never"],
    }
