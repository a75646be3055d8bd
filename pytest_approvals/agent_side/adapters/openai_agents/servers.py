"""
Local MCP: the SDK's own client of a server, connected for the time of a turn as its context manager does.

The SDK's policy for a server is asked about a tool, not about a call: it is shown neither the arguments nor the call
id. A server is told no call id either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp

from ...contract import ServerAddress, ToolSpec
from ...current import world

PATIENCE = 600.0
"""Seconds that a tool may take: the harness has a limit of its own."""


def client(address: ServerAddress, specs: Sequence[ToolSpec], form: str = "names") -> MCPServer:
    """Gives the client of the server at *address*, whose tools *specs* describe; see `_policy` for the *form*."""
    more: dict[str, Any] = {
        "name": address.name,
        "require_approval": _policy(specs, form),
        "client_session_timeout_seconds": PATIENCE,
    }
    if address.url:
        return MCPServerStreamableHttp({"url": address.url}, **more)
    program, *arguments = address.command
    return MCPServerStdio({"command": program, "args": arguments}, **more)


def _policy(specs: Sequence[ToolSpec], form: str) -> Any:
    """
    Gives the server's `require_approval`.

    Arguments:
        form: Where all tools are gated always or never: a word for each of their `names`, `lists` of names, one `word`
            for the whole server where it is the same for all, or a `function`, which conditions need in any case.
    """
    words = {spec.name: spec.approval for spec in specs if isinstance(spec.approval, str)}
    if len(words) < len(specs) or form == "function":
        return _function(specs)
    if form == "word" and len(set(words.values())) == 1:
        return specs[0].approval
    if form == "lists":
        return {word: {"tool_names": [name for name in words if words[name] == word]} for word in ("always", "never")}
    return words


def _function(specs: Sequence[ToolSpec]) -> Any:
    by_name = {spec.name: spec for spec in specs}

    async def asks(_: Any, agent: Any, tool: Any) -> bool:
        spec = by_name[tool.name]
        if isinstance(spec.approval, str):
            return spec.approval == "always"
        if spec.approval.waits_for is not None:
            return await world().gate_slowly(spec.name, None, None, agent=spec.agent)
        return world().gate(spec.name, None, None, agent=spec.agent)

    return asks
