"""
Tools made from tool specs.

`function_tool` reads a signature, so each tool gets one; what the SDK does with it is what it does for anybody's.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable
from inspect import Parameter as Argument
from typing import Any

from agents import FunctionTool, HostedMCPTool, RunContextWrapper, function_tool
from agents.tool_context import ToolContext

from ...contract import Approval, ToolSpec
from ...current import world
from ...declared import Fields, arguments, signed

Policy = Callable[[RunContextWrapper[Any], dict[str, Any], str], Awaitable[bool]]
"""The SDK's own form of a policy: it is given the context, the arguments and the call id."""


def made(spec: ToolSpec) -> FunctionTool:
    """Gives the function tool that *spec* describes."""
    prototype = _PROTOTYPES.get(key := (spec.name, spec.agent, spec.description, Fields(spec.parameters)))
    if prototype is None:
        # A signature costs a pydantic model, a hundred times what a copy costs.
        prototype = _PROTOTYPES[key] = _prototype(spec)
    tool = copy.copy(prototype)
    tool.needs_approval = policy(spec.name, spec.agent, spec.approval)
    return tool


_PROTOTYPES: dict[tuple[Any, ...], FunctionTool] = {}


def _prototype(spec: ToolSpec) -> FunctionTool:
    name, agent = spec.name, spec.agent

    async def body(context: ToolContext[Any], **arguments: Any) -> Any:
        return await world().run(name, arguments, context.tool_call_id, agent=agent)

    body.__name__ = name
    give_signature(body, arguments(spec.parameters))
    return function_tool(
        body, name_override=name, description_override=spec.description, use_docstring_info=False, strict_mode=False
    )


def give_signature(body: Any, parameters: list[Argument]) -> None:
    """Makes *body* look like a function that takes the context and *parameters*."""
    signed(body, Argument("context", Argument.POSITIONAL_OR_KEYWORD, annotation=ToolContext[Any]), *parameters)


def policy(tool: str, agent: str, approval: Approval) -> bool | Policy:
    """Gives what the SDK takes as `needs_approval`."""
    if isinstance(approval, str):
        return approval == "always"
    slow = approval.waits_for is not None

    async def needs_approval(_: RunContextWrapper[Any], arguments: dict[str, Any], call_id: str) -> bool:
        if slow:
            return await world().gate_slowly(tool, arguments, call_id, agent=agent)
        return world().gate(tool, arguments, call_id, agent=agent)

    return needs_approval


def hosted(server: str, specs: list[ToolSpec]) -> HostedMCPTool:
    """
    Gives the hosted tool for the *specs* of one server.

    A provider knows always and never; a call that is gated on a condition is asked about always.
    """
    ungated = [spec.name for spec in specs if spec.approval == "never"]
    gated = [spec.name for spec in specs if spec.approval != "never"]
    return HostedMCPTool(
        tool_config={
            "type": "mcp",
            "server_label": server,
            "server_url": f"https://{server}.invalid/mcp",
            "allowed_tools": [spec.name for spec in specs],
            "require_approval": {"always": {"tool_names": gated}, "never": {"tool_names": ungated}},
        }
    )
