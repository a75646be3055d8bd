"""
Tools of MCP servers that the agent connects to: the framework's own client of each, connected for the time of a turn.

Neither a server nor what asks for approval is told more than the name and the arguments of a call.
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
        "approval_mode": {
            "always_require_approval": [spec.name for spec in offered if spec.approval != "never"],
            "never_require_approval": [spec.name for spec in offered if spec.approval == "never"],
        },
        "load_prompts": False,
        "request_timeout": PATIENCE,
    }
    if address.url:
        return MCPStreamableHTTPTool(url=address.url, **more)
    program, *arguments = address.command
    return MCPStdioTool(command=program, args=arguments, **more)
