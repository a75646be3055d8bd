"""Attached agents: a copy with probes in its tools and the scripted client for its own.

All else that the agent has (instructions, middleware, context providers, options) is the user's. Nothing of the user's
own agent is changed, so there is nothing to restore.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any

from agent_framework import FunctionTool
from pydantic_core import to_jsonable_python

from ...contract import Attachment, ToolSpec, Unsupported
from ...kit.context import current_world
from ...kit.tool_schema import read_parameters
from .agents import AgentGraph
from .model import ClientFactory, ScriptedClient


def attach_agents(attachment: Attachment, client: ClientFactory = ScriptedClient) -> AgentGraph:
    """Build the agent graph of an attached agent, or of the one its factory builds.

    Args:
        attachment: The agent or the factory.
        client: Builds the scripted client.
    """
    subject = attachment.subject
    is_factory = not hasattr(subject, "run")
    # A shallow copy is enough: below, the client and the options are replaced, not changed.
    agent = copy(subject(client()) if is_factory else subject)
    options = dict(getattr(agent, "default_options", None) or {})
    if not hasattr(agent, "client"):
        raise Unsupported(
            "attach", f"{type(agent).__name__} has no client of its own; hand over the agent inside of it"
        )
    tools = list(options.get("tools") or ())
    if not is_factory:
        _refuse_agents(tools)
        agent.client = _script_client(agent.client, client)
    agent.default_options = {**options, "tools": [_probe_tool(tool, attachment.stubs) for tool in tools]}
    specs = tuple(_to_spec(tool) for tool in tools if isinstance(tool, FunctionTool))
    return AgentGraph(main=agent, tools=specs, options=dict(attachment.run_options))


def _script_client(user_client: Any, client: ClientFactory) -> Any:
    """Build the scripted client with the user's settings for function calling."""
    return client(
        function_invocation_configuration=getattr(user_client, "function_invocation_configuration", None),
        middleware=[*(getattr(user_client, "function_middleware", None) or ())],
    )


def _refuse_agents(tools: list[Any]) -> None:
    for tool in tools:
        # `as_tool` returns a plain `FunctionTool`; only the name of the function in it tells that it runs an agent.
        if getattr(getattr(tool, "func", None), "__name__", "") == "_agent_wrapper":
            raise Unsupported(
                "attach", f"the tool {tool.name!r} is an agent with a model of its own; hand over a factory"
            )


def _to_spec(tool: Any) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=read_parameters(tool.parameters()),
        approval="always" if tool.approval_mode == "always_require" else "never",
    )


# --- probing ----------------------------------------------------------------------------------------------------------


def _probe_tool(tool: Any, stubs: frozenset[str]) -> Any:
    """Return a copy of a function tool whose body the world runs; other tools unchanged."""
    # A tool without a function is only declared: the caller of the agent runs it.
    if not isinstance(tool, FunctionTool) or tool.func is None:
        return tool
    probed: Any = copy(tool)
    probed.func = _run_in_world(tool, tool.func, stub=tool.name in stubs)
    return probed


def _run_in_world(tool: Any, body: Callable[..., Any], *, stub: bool) -> Callable[..., Awaitable[Any]]:
    declared = frozenset(tool.parameters().get("properties", {}))

    @wraps(body)
    async def run(*args: Any, **kwargs: Any) -> Any:
        async def real() -> Any:
            if iscoroutinefunction(body):
                return await body(*args, **kwargs)
            # As the framework does with a blocking function, which it cannot see behind this coroutine.
            return await asyncio.to_thread(body, *args, **kwargs)

        # The framework may add its context, which the model did not choose.
        declared_arguments = {name: value for name, value in kwargs.items() if name in declared}
        arguments = to_jsonable_python(declared_arguments, fallback=repr)
        return await current_world().run(tool.name, arguments, None, real=None if stub else real)

    return run
