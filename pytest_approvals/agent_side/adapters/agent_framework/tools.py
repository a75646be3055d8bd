"""
Tools made from tool specs: functions of the framework that run in the world of the running turn.

A body is not told the id of its call; the framework tells it to function middleware only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_framework import FunctionTool
from pydantic import BaseModel

from ...contract import ToolSpec
from ...current import world
from ...declared import fields_model

Body = Callable[..., Awaitable[Any]]


def made(spec: ToolSpec, agents: Mapping[str, Any]) -> Any:
    """
    Gives the tool that *spec* describes.

    Arguments:
        agents: The agents that tools may run, by name.
    """
    if spec.runs is not None:
        return _delegate(spec, agents[spec.runs])
    return FunctionTool(
        name=spec.name,
        description=spec.description,
        approval_mode=approval_mode(spec),
        func=body(spec),
        input_model=schema(spec),
    )


def approval_mode(spec: ToolSpec) -> str:
    """Gives how the framework is told that a tool is gated; it has no condition of its own."""
    return "never_require" if spec.approval == "never" else "always_require"


def body(spec: ToolSpec) -> Body:
    """Gives the function behind a tool."""
    defaults = {name: one.default for name, one in spec.parameters.items() if not one.required}

    async def run(**arguments: Any) -> Any:
        return await world().run(spec.name, {**defaults, **arguments}, None, agent=spec.agent)

    return run


def _delegate(spec: ToolSpec, agent: Any) -> Any:
    tool = agent.as_tool(name=spec.name, description=spec.description, arg_name="input")
    tool.approval_mode = approval_mode(spec)
    return tool


# --- schemas ----------------------------------------------------------------------------------------------------------


def schema(spec: ToolSpec) -> type[BaseModel]:
    """Gives the model of a tool's parameters, as the framework infers it from a function's signature."""
    return fields_model(f"{spec.name}_input", spec.parameters)
