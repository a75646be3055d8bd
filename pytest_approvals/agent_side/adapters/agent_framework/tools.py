"""Tools made from tool specs, tools of MCP servers, and the approval middleware.

The bodies of functions run in the world of the running turn. A body does not receive the id of its call, only function
middleware does.

The framework's own client of an MCP server is connected for the time of a turn; other servers are called by the
provider. Neither a server nor its approval policy receives more than the name and the arguments of a call.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from agent_framework import FunctionTool
from pydantic import BaseModel

from ...contract import Condition, ServerAddress, ToolSpec
from ...kit.clients import MCP_TIMEOUT, split_command
from ...kit.context import current_world
from ...kit.tool_schema import build_fields_model
from .messages import read_arguments

ToolBody = Callable[..., Awaitable[Any]]


def build_tool(spec: ToolSpec, agents: Mapping[str, Any]) -> Any:
    """Build the tool that *spec* describes.

    Args:
        spec: The tool.
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
    """Return the framework's approval mode of a tool; it has no conditions."""
    return "never_require" if spec.approval == "never" else "always_require"


def build_body(spec: ToolSpec) -> ToolBody:
    """Build the function behind a tool."""
    defaults = {name: parameter.default for name, parameter in spec.parameters.items() if not parameter.required}

    async def run(**arguments: Any) -> Any:
        return await current_world().run(spec.name, {**defaults, **arguments}, None, agent=spec.agent)

    return run


def _build_delegate(spec: ToolSpec, agent: Any) -> Any:
    tool = agent.as_tool(name=spec.name, description=spec.description, arg_name="input")
    tool.approval_mode = approval_mode(spec)
    return tool


# --- schemas ----------------------------------------------------------------------------------------------------------


def build_schema(spec: ToolSpec) -> type[BaseModel]:
    """Build the model of a tool's parameters, as the framework infers it from a signature."""
    return build_fields_model(f"{spec.name}_input", spec.parameters)


def build_mcp_client(address: ServerAddress, specs: Sequence[ToolSpec]) -> Any:
    """Build the client of the server at *address*; *specs* are the tools of its agent."""
    from agent_framework import MCPStdioTool, MCPStreamableHTTPTool

    mcp_specs = [spec for spec in specs if spec.kind == "mcp" and spec.server == address.name]
    options: dict[str, Any] = {
        "name": address.name,
        "approval_mode": _approval_modes(mcp_specs),
        "load_prompts": False,
        "request_timeout": MCP_TIMEOUT,
    }
    if address.url:
        return MCPStreamableHTTPTool(url=address.url, **options)
    program, arguments = split_command(address)
    return MCPStdioTool(command=program, args=arguments, **options)


def build_hosted_servers(specs: Sequence[ToolSpec]) -> list[Any]:
    """Return the servers that the provider calls for an agent with these tools."""
    servers: dict[str, list[ToolSpec]] = {}
    for spec in specs:
        if spec.kind == "hosted_mcp":
            servers.setdefault(str(spec.server), []).append(spec)
    return [_build_hosted_server(name, server_specs) for name, server_specs in servers.items()]


def _build_hosted_server(name: str, specs: Sequence[ToolSpec]) -> Any:
    from agent_framework.openai import OpenAIChatClient

    return OpenAIChatClient.get_mcp_tool(
        name=name,
        # Nobody connects to it: the provider is scripted, and so are the results of its servers.
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
    """Build `ToolApprovalMiddleware` with a rule for an agent's conditionally gated tools."""
    # Early releases do not have it, and the other flavours play there without it.
    from agent_framework import ToolApprovalMiddleware

    conditional = {spec.name: spec for spec in specs if isinstance(spec.approval, Condition)}
    return [ToolApprovalMiddleware(auto_approval_rules=[_approval_rule(conditional)] if conditional else None)]


def _approval_rule(conditional: dict[str, ToolSpec]) -> Callable[[Any], Awaitable[bool]]:
    async def approves(call: Any) -> bool:
        spec = conditional.get(call.name)
        if spec is None:
            return False
        gated = await current_world().gate_slowly(
            spec.name, read_arguments(call.arguments), call.call_id, agent=spec.agent
        )
        return not gated

    return approves
