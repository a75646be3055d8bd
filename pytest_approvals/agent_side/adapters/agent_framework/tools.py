"""Tools made from tool specs: functions of the framework that run in the world of the running turn.

A body is not told the id of its call; the framework tells it to function middleware only.

Tools of MCP servers: those that the agent connects to, and those that the provider calls.

To the former the framework's own client of each is connected for the time of a turn. Neither a server nor what asks for
approval is told more than the name and the arguments of a call.

The middleware that approves calls without asking a person.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import FunctionTool, ToolApprovalMiddleware
from pydantic import BaseModel

from ...contract import Condition, ServerAddress, ToolSpec
from ...kit.context import current_world
from ...kit.tool_schema import build_fields_model
from .messages import parse_arguments

ToolBody = Callable[..., Awaitable[Any]]


def build_tool(spec: ToolSpec, agents: Mapping[str, Any]) -> Any:
    """
    Gives the tool that *spec* describes.

    Arguments:
        agents: The agents that tools may run, by name.
    """
    if spec.runs is not None:
        return _build_delegate(spec, agents[spec.runs])
    return FunctionTool(
        name=spec.name,
        description=spec.description,
        approval_mode=approval_mode(spec),
        func=build_body(spec),
        input_model=build_schema(spec),
    )


def approval_mode(spec: ToolSpec) -> str:
    """Gives how the framework is told that a tool is gated; it has no condition of its own."""
    return "never_require" if spec.approval == "never" else "always_require"


def build_body(spec: ToolSpec) -> ToolBody:
    """Gives the function behind a tool."""
    defaults = {name: one.default for name, one in spec.parameters.items() if not one.required}

    async def run(**arguments: Any) -> Any:
        return await current_world().run(spec.name, {**defaults, **arguments}, None, agent=spec.agent)

    return run


def _build_delegate(spec: ToolSpec, agent: Any) -> Any:
    tool = agent.as_tool(name=spec.name, description=spec.description, arg_name="input")
    tool.approval_mode = approval_mode(spec)
    return tool


# --- schemas ----------------------------------------------------------------------------------------------------------


def build_schema(spec: ToolSpec) -> type[BaseModel]:
    """Gives the model of a tool's parameters, as the framework infers it from a function's signature."""
    return build_fields_model(f"{spec.name}_input", spec.parameters)


MCP_TIMEOUT = 600
"""Seconds that a tool may take: the harness has a limit of its own."""


def build_mcp_client(address: ServerAddress, specs: Sequence[ToolSpec]) -> Any:
    """Gives the client of the server at *address*, where *specs* are the tools of the agent that has it."""
    from agent_framework import MCPStdioTool, MCPStreamableHTTPTool

    offered = [spec for spec in specs if spec.kind == "mcp" and spec.server == address.name]
    more: dict[str, Any] = {
        "name": address.name,
        "approval_mode": _approval_modes(offered),
        "load_prompts": False,
        "request_timeout": MCP_TIMEOUT,
    }
    if address.url:
        return MCPStreamableHTTPTool(url=address.url, **more)
    program, *arguments = address.command
    return MCPStdioTool(command=program, args=arguments, **more)


def build_hosted_servers(specs: Sequence[ToolSpec]) -> list[Any]:
    """Gives the servers that the provider calls for an agent with these tools."""
    servers: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        if spec.kind == "hosted_mcp":
            servers.setdefault(str(spec.server), []).append(spec)
    return [_build_hosted_server(name, own) for name, own in servers.items()]


def _build_hosted_server(name: str, specs: Sequence[ToolSpec]) -> Any:
    from agent_framework.openai import OpenAIChatClient

    return OpenAIChatClient.get_mcp_tool(
        name=name,
        url=f"http://{name}.invalid/mcp",
        approval_mode=_approval_modes(specs),
        allowed_tools=[spec.name for spec in specs],
    )


def _approval_modes(specs: Sequence[ToolSpec]) -> dict[str, list[str]]:
    return {
        "always_require_approval": [spec.name for spec in specs if spec.approval != "never"],
        "never_require_approval": [spec.name for spec in specs if spec.approval == "never"],
    }


def build_approval_middleware(specs: Sequence[ToolSpec]) -> list[Any]:
    """Gives `ToolApprovalMiddleware` with a rule for the tools of an agent that are gated on a condition."""
    conditional = {spec.name: spec for spec in specs if isinstance(spec.approval, Condition)}
    return [ToolApprovalMiddleware(auto_approval_rules=[_approval_rule(conditional)] if conditional else None)]


def _approval_rule(conditional: dict[str, ToolSpec]) -> Callable[[Any], Awaitable[bool]]:
    async def approves(call: Any) -> bool:
        spec = conditional.get(call.name)
        if spec is None:
            return False
        gated = await current_world().gate_slowly(
            spec.name, parse_arguments(call.arguments), call.call_id, agent=spec.agent
        )
        return not gated

    return approves
