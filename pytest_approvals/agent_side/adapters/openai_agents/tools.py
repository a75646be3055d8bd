"""Tools built from tool specs: functions, hosted tools, and MCP servers, with their approval policies.

`function_tool` reads a signature, so each tool gets one; the SDK then treats it like any user's tool. For local MCP,
the SDK's own client of a server is connected for the time of a turn as its context manager does. The SDK's policy for a
server is asked about a tool, not about a call: it sees neither the arguments nor the call id. A server sees no call id
either.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Sequence
from inspect import Parameter as Argument
from typing import Any

from agents import FunctionTool, HostedMCPTool, RunContextWrapper, function_tool
from agents.mcp import MCPServer, MCPServerStdio, MCPServerStreamableHttp
from agents.tool_context import ToolContext

from ...contract import Approval, ServerAddress, ToolSpec, needs_approval_by_annotations
from ...kit.clients import MCP_TIMEOUT, read_annotations, split_command
from ...kit.context import current_world
from ...kit.tool_schema import HashableParameters, set_signature, to_signature_parameters

Policy = Callable[[RunContextWrapper[Any], dict[str, Any], str], Awaitable[bool]]
"""The SDK's own form of a policy: a function of the context, the arguments and the call id."""


def build_tool(spec: ToolSpec) -> FunctionTool:
    """Return the function tool that *spec* describes."""
    prototype = _PROTOTYPES.get(key := (spec.name, spec.agent, spec.description, HashableParameters(spec.parameters)))
    if prototype is None:
        # Reading a signature builds a pydantic model, which costs a hundred times what a copy costs.
        prototype = _PROTOTYPES[key] = _build_prototype(spec)
    tool = copy.copy(prototype)
    tool.needs_approval = build_policy(spec.name, spec.agent, spec.approval)
    return tool


_PROTOTYPES: dict[tuple[Any, ...], FunctionTool] = {}


def _build_prototype(spec: ToolSpec) -> FunctionTool:
    name, agent = spec.name, spec.agent

    async def body(context: ToolContext[Any], **arguments: Any) -> Any:
        return await current_world().run(name, arguments, context.tool_call_id, agent=agent)

    body.__name__ = name
    set_context_signature(body, to_signature_parameters(spec.parameters))
    return function_tool(
        body, name_override=name, description_override=spec.description, use_docstring_info=False, strict_mode=False
    )


def set_context_signature(body: Any, parameters: list[Argument]) -> None:
    """Make *body* look like a function that takes the context and *parameters*."""
    set_signature(body, Argument("context", Argument.POSITIONAL_OR_KEYWORD, annotation=ToolContext[Any]), *parameters)


def build_policy(tool: str, agent: str, approval: Approval) -> bool | Policy:
    """Return the SDK's `needs_approval` of a tool."""
    if isinstance(approval, str):
        return approval == "always"
    slow = approval.waits_for is not None

    async def needs_approval(_: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        if slow:
            return await current_world().gate_slowly(tool, arguments, call_id, agent=agent)
        return current_world().gate(tool, arguments, call_id, agent=agent)

    return needs_approval


def build_hosted_tool(server: str, specs: list[ToolSpec]) -> HostedMCPTool:
    """Return the hosted tool for the *specs* of one server.

    A provider knows only always and never; a call that is gated on a condition always needs approval.
    """
    ungated = [spec.name for spec in specs if spec.approval == "never"]
    gated = [spec.name for spec in specs if spec.approval != "never"]
    return HostedMCPTool(
        tool_config={
            "type": "mcp",
            "server_label": server,
            # Nobody connects to it: the provider is scripted, and so are the results of its servers.
            "server_url": f"https://{server}.invalid/mcp",
            "allowed_tools": [spec.name for spec in specs],
            "require_approval": {"always": {"tool_names": gated}, "never": {"tool_names": ungated}},
        }
    )


def build_mcp_client(address: ServerAddress, specs: Sequence[ToolSpec], form: str = "names") -> MCPServer:
    """Return the client of the MCP server at *address*.

    Args:
        address: The address of the server.
        specs: The tools of the server.
        form: The form of its policy, see `_build_server_policy`.
    """
    options: dict[str, Any] = {
        "name": address.name,
        "require_approval": _build_server_policy(specs, form),
        "client_session_timeout_seconds": MCP_TIMEOUT,
    }
    if address.url:
        return MCPServerStreamableHttp({"url": address.url}, **options)
    program, arguments = split_command(address)
    return MCPServerStdio({"command": program, "args": arguments}, **options)


def _build_server_policy(specs: Sequence[ToolSpec], form: str) -> Any:
    """Return the server's `require_approval`.

    Args:
        specs: The tools of the server.
        form: If all tools are gated always or never: a word for each of their `names`, `lists` of names, one `word`
            for the whole server if it is the same for all, or a `function`, which conditions and annotations need in
            any case.
    """
    words = {spec.name: spec.approval for spec in specs if isinstance(spec.approval, str) and not spec.by_annotations}
    if len(words) < len(specs) or form == "function":
        return _build_policy_function(specs)
    if form == "word" and len(set(words.values())) == 1:
        return specs[0].approval
    if form == "lists":
        return {word: {"tool_names": [name for name in words if words[name] == word]} for word in ("always", "never")}
    return words


def _build_policy_function(specs: Sequence[ToolSpec]) -> Any:
    by_name = {spec.name: spec for spec in specs}

    async def needs_approval(_: Any, agent: Any, tool: Any) -> bool:
        spec = by_name[tool.name]
        if spec.by_annotations:
            return needs_approval_by_annotations(read_annotations(tool.annotations))
        if isinstance(spec.approval, str):
            return spec.approval == "always"
        if spec.approval.waits_for is not None:
            return await current_world().gate_slowly(spec.name, None, None, agent=spec.agent)
        return current_world().gate(spec.name, None, None, agent=spec.agent)

    return needs_approval
