"""Probes around a person's own tools: what is run is recorded, everything else of the tool stays as it is."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
from typing import Any, get_type_hints

from agents import FunctionTool, Tool, function_tool
from agents.function_schema import function_schema
from agents.mcp import MCPServer
from agents.tool_context import ToolContext
from mcp.types import CallToolResult
from pydantic_core import to_jsonable_python

from ...current import world
from .items import parsed
from .tools import give_signature


def probed(tool: Tool, label: str, *, stub: bool) -> Tool:
    """
    Gives a copy of *tool* whose body is run by the world: a *stub* does what the scenario says, any other tool what it
    does by itself.

    An agent that is a tool, and a tool that the provider runs, have no body here and stay as they are.
    """
    if not isinstance(tool, FunctionTool) or getattr(tool, "_agent_instance", None) is not None:
        return tool
    body = getattr(tool, "__wrapped__", None)
    copied = copy.copy(tool)
    copied.on_invoke_tool = _raw_probe(tool, label, stub) if body is None else _probe(tool, body, label, stub)
    # Copying binds the new invoker to the tool that it belongs to, whose failure policy it follows.
    return copy.copy(copied)


def _probe(tool: FunctionTool, body: Any, label: str, stub: bool) -> Any:
    """Gives the invoker of a function tool with *body*'s signature, so that the SDK validates as it did."""
    takes_context = function_schema(body, name_override=tool.name, strict_json_schema=False).takes_context
    signature = _signature(body, takes_context)

    async def probe(context: ToolContext[Any], *given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named).arguments

        async def real() -> Any:
            return await _called(body, *((context, *given) if takes_context else given), **named)

        arguments = to_jsonable_python(bound, fallback=repr)
        return await world().run(tool.name, arguments, context.tool_call_id, agent=label, real=None if stub else real)

    give_signature(probe, list(signature.parameters.values()))
    return function_tool(probe, name_override=tool.name, use_docstring_info=False, strict_mode=False).on_invoke_tool


def _signature(body: Any, takes_context: bool) -> inspect.Signature:
    callee = body if inspect.isroutine(body) else type(body).__call__
    hints = get_type_hints(callee, include_extras=True)
    parameters = list(inspect.signature(body).parameters.values())[1 if takes_context else 0 :]
    typed = [one.replace(annotation=hints.get(one.name, one.annotation)) for one in parameters]
    return inspect.Signature(typed)


async def _called(body: Any, *given: Any, **named: Any) -> Any:
    """Runs a body as the SDK does: one that blocks in a thread."""
    if inspect.iscoroutinefunction(body):
        return await body(*given, **named)
    result = await asyncio.to_thread(body, *given, **named)
    return await result if inspect.isawaitable(result) else result


def _raw_probe(tool: FunctionTool, label: str, stub: bool) -> Any:
    """Gives the invoker of a tool that was made by hand, whose body gets the model's text and validates it itself."""
    body = tool.on_invoke_tool

    async def probe(context: ToolContext[Any], given: str) -> Any:
        async def real() -> Any:
            return await body(context, given)

        arguments = parsed(given)
        return await world().run(
            tool.name,
            arguments if isinstance(arguments, dict) else {"input": arguments},
            context.tool_call_id,
            agent=label,
            real=None if stub else real,
        )

    return probe


class ProbedServer:
    """
    Stands before a person's MCP server; whatever is not a call of a tool is the server's own business.

    It may be connected later than it is probed, so it is not copied.
    """

    def __init__(self, server: MCPServer, label: str, stubs: frozenset[str]) -> None:
        self._server = server
        self._label = label
        self._stubs = stubs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def call_tool(self, tool_name: str, arguments: dict[str, Any] | None, **more: Any) -> Any:
        """Runs the tool through the world."""
        given = arguments or {}
        if tool_name in self._stubs:
            value = await world().run(tool_name, given, None, agent=self._label)
            text = value if isinstance(value, str) else json.dumps(value)
            return CallToolResult.model_validate({"content": [{"type": "text", "text": text}]})

        async def real() -> Any:
            return await self._server.call_tool(tool_name, arguments, **more)

        return await world().run(tool_name, given, None, agent=self._label, real=real)
