"""The MCP server of a person's test, for an agent that connects to servers itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pytest_approvals.errors import UsageError
from pytest_approvals.harness.signals import Signals
from pytest_approvals.harness.tools import behave, behaviour_of
from pytest_approvals.mcp_servers.serving import McpServers
from pytest_approvals.mcp_servers.tools import OfferedTool
from pytest_approvals.scenario.parts import Tool


class ToolServer:
    """
    A real MCP server on this machine, whose tools do what the test says.

    Arguments:
        tools: Made by `pytest_approvals.tool`; successive executions of one do what its behaviours say, the last one
            for ever. Whether calls are gated is the agent's business.

    Attributes:
        url: For clients of streamable HTTP.
        command: For clients of stdio: the program to start, and its arguments.
        ran: Every execution, in order: the tool and its arguments.
    """

    def __init__(self, servers: McpServers, name: str, *tools: Tool) -> None:
        self.ran: list[tuple[str, dict[str, Any]]] = []
        address = servers.open(name, [self._offered(name, one) for one in tools])
        self.url = address.url
        self.command = address.command

    def _offered(self, server: str, tool: Tool) -> OfferedTool:
        if any(one.waits_for is not None or one.asks_again is not None for one in tool.behaviours):
            what = "waits or asks again, and a server of a test only returns or raises"
            raise UsageError(f"the tool {tool.name!r} of the server {server!r} {what}")

        async def run(arguments: Mapping[str, Any]) -> Any:
            before = sum(name == tool.visible_name for name, _ in self.ran)
            self.ran.append((tool.visible_name, dict(arguments)))
            return await behave(behaviour_of(tool, None, before), arguments, Signals())

        return OfferedTool(name=tool.visible_name, run=run, parameters=tool.parameters, description=tool.description)
