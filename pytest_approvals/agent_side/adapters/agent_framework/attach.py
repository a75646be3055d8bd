"""
A person's own agent: a copy of it, with probes in its tools and the scripted client in place of its own.

Whatever else the agent has (instructions, middleware, providers of context, options) is the person's. Nothing of theirs
is changed, so that nothing has to be undone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from copy import copy
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from agent_framework import FunctionTool
from pydantic_core import to_jsonable_python

from ...contract import Attachment, Parameter, ToolSpec, Unsupported
from ...kit.context import current_world
from .agents import AgentGraph
from .model import ClientFactory, ScriptedClient


def attach_agents(attachment: Attachment, client: ClientFactory = ScriptedClient) -> AgentGraph:
    """
    Makes a crew of the agent that a person hands over, or that their factory makes of the scripted client.

    Arguments:
        client: Makes the scripted client.
    """
    subject = attachment.subject
    made = not hasattr(subject, "run")
    agent = copy(subject(client()) if made else subject)
    options = dict(getattr(agent, "default_options", None) or {})
    if not hasattr(agent, "client"):
        raise Unsupported(
            "attach", f"{type(agent).__name__} has no client of its own; hand over the agent inside of it"
        )
    tools = list(options.get("tools") or ())
    if not made:
        _refuse_agents(tools)
        agent.client = _script_client(agent.client, client)
    agent.default_options = {**options, "tools": [_probe_tool(tool, attachment.stubs) for tool in tools]}
    specs = tuple(_to_spec(tool) for tool in tools if isinstance(tool, FunctionTool))
    return AgentGraph(main=agent, tools=specs, options=dict(attachment.run_options))


def _script_client(own: Any, client: ClientFactory) -> Any:
    """Gives the scripted client, with what a person told their own one about the calling of functions."""
    return client(
        function_invocation_configuration=getattr(own, "function_invocation_configuration", None),
        middleware=[*(getattr(own, "function_middleware", None) or ())],
    )


def _refuse_agents(tools: list[Any]) -> None:
    for tool in tools:
        if getattr(getattr(tool, "func", None), "__name__", "") == "_agent_wrapper":
            raise Unsupported(
                "attach", f"the tool {tool.name!r} is an agent with a model of its own; hand over a factory"
            )


def _to_spec(tool: Any) -> ToolSpec:
    described = tool.parameters()
    required = described.get("required", ())
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters={
            name: Parameter(type=_type(one), required=name in required, default=one.get("default"))
            for name, one in described.get("properties", {}).items()
        },
        approval="always" if tool.approval_mode == "always_require" else "never",
    )


def _type(schema: Mapping[str, Any]) -> str:
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    choices = [one.get("type") for one in schema.get("anyOf", ()) if one.get("type") not in (None, "null")]
    return str(choices[0]) if choices else "object"


# --- probing ----------------------------------------------------------------------------------------------------------


def _probe_tool(tool: Any, stubs: frozenset[str]) -> Any:
    """Gives a copy of a function tool whose body the world runs; other tools as they are."""
    if not isinstance(tool, FunctionTool) or tool.func is None:
        return tool
    probed: Any = copy(tool)
    probed.func = _run_in_world(tool, tool.func, stub=tool.name in stubs)
    return probed


def _run_in_world(tool: Any, body: Callable[..., Any], *, stub: bool) -> Callable[..., Awaitable[Any]]:
    shown = frozenset(tool.parameters().get("properties", {}))

    @wraps(body)
    async def run(*given: Any, **named: Any) -> Any:
        async def real() -> Any:
            if iscoroutinefunction(body):
                return await body(*given, **named)
            return await asyncio.to_thread(body, *given, **named)

        told = {name: value for name, value in named.items() if name in shown}
        arguments = to_jsonable_python(told, fallback=repr)
        return await current_world().run(tool.name, arguments, None, real=None if stub else real)

    return run
