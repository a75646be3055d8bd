"""
A person's own agent: probes in its tools, and the scripted model in place of its own.

An agent is data that can be changed: its model, and its list of tools, whose places are taken by tools that run in the
world. Everything is put back when the last session lets go.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from copy import copy
from functools import partial, wraps
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.runners import Runner
from google.adk.tools import BaseTool, FunctionTool, ToolContext

from ...contract import MAIN, Attachment, Parameter, ToolSpec, Unsupported
from ...kit.context import current_world
from .agents import AgentGraph, build_runner
from .model import ScriptedModel
from .requests import RequestReader

Undo = Callable[[], None]


def attach_agents(attachment: Attachment, *, resumable: bool) -> AgentGraph:
    """Makes a crew of the agent, app or runner that a person hands over, or that their factory makes of the model."""
    given = _resolve_subject(attachment.subject)
    root = _root_agent(given)
    agents = list(_walk_agents(root))
    if not any(hasattr(agent, "model") for agent in agents):
        raise Unsupported("attach", "the agent has no model; hand over an `LlmAgent`, an `App` or a `Runner`")
    names = {agent.name: MAIN if agent is root else agent.name for agent in agents}
    undo: list[Undo] = []
    specs: list[ToolSpec] = []
    for agent in agents:
        found = [_to_tool(tool) for tool in getattr(agent, "tools", ())]
        specs += [_to_spec(tool, names[agent.name]) for tool in found if isinstance(tool, BaseTool)]
        undo += _probe_agent(
            agent, [_probe_tool(tool, names[agent.name], attachment.stubs) for tool in found], names[agent.name]
        )

    def release() -> None:
        for step in reversed(undo):
            step()

    return AgentGraph(
        runner=_runner_factory(given, root, resumable=resumable),
        reading=RequestReader(names=names, tools=tuple(specs)),
        service=given.session_service if isinstance(given, Runner) else None,
        options=dict(attachment.run_options),
        release=release,
    )


# --- finding ----------------------------------------------------------------------------------------------------------


def _resolve_subject(subject: Any) -> Any:
    if isinstance(subject, BaseAgent | Runner) or hasattr(subject, "root_agent"):
        return subject
    return subject(ScriptedModel())


def _root_agent(given: Any) -> Any:
    if isinstance(given, BaseAgent):
        return given
    return given.agent if isinstance(given, Runner) else given.root_agent


def _runner_factory(given: Any, root: Any, *, resumable: bool) -> Callable[[Any], Any]:
    app = getattr(given, "app", None) if isinstance(given, Runner) else given
    if isinstance(given, BaseAgent) or app is None:
        return partial(build_runner, root, resumable=resumable)
    return lambda service: Runner(app=app, app_name=app.name, session_service=service)


def _walk_agents(agent: Any) -> Iterator[Any]:
    """Gives *agent* and all below it: its sub-agents, and those that its tools run."""
    yield agent
    for below in agent.sub_agents:
        yield from _walk_agents(below)
    for tool in getattr(agent, "tools", ()):
        inner = getattr(tool, "agent", None)
        if isinstance(inner, BaseAgent) and inner not in agent.sub_agents:
            yield from _walk_agents(inner)


def _to_tool(tool: Any) -> Any:
    """Makes a tool of a plain function, as the framework does."""
    return FunctionTool(tool) if callable(tool) and not hasattr(tool, "get_tools") else tool


def _to_spec(tool: Any, agent: str) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description or "",
        parameters=_read_parameters(tool._get_declaration()),
        # What a person's own policy will say is not known before it is asked.
        approval="always" if getattr(tool, "_require_confirmation", False) is True else "never",
        agent=agent,
    )


def _read_parameters(declaration: Any) -> dict[str, Parameter]:
    if declaration is None:
        return {}
    described = declaration.parameters_json_schema
    if described is None and declaration.parameters is not None:
        described = declaration.parameters.model_dump(mode="json", exclude_none=True)
    required = (described or {}).get("required", ())
    return {
        name: Parameter(type=_parameter_type(one), required=name in required, default=one.get("default"))
        for name, one in (described or {}).get("properties", {}).items()
    }


def _parameter_type(schema: dict[str, Any]) -> str:
    return str(schema.get("type", "object")).lower()


# --- probing ----------------------------------------------------------------------------------------------------------


def _probe_agent(agent: Any, tools: list[Any], name: str) -> Iterator[Undo]:
    """Puts the scripted model and probed tools into *agent*."""
    for field, new in (("model", ScriptedModel(agent=name)), ("tools", tools)):
        if hasattr(agent, field):
            old = getattr(agent, field)
            setattr(agent, field, new)
            yield partial(setattr, agent, field, old)


def _probe_tool(tool: Any, agent: str, stubs: frozenset[str]) -> Any:
    if type(tool) is FunctionTool:
        policy = getattr(tool, "_require_confirmation", False)
        return FunctionTool(
            _probe_function(tool.func, tool.name, agent, stub=tool.name in stubs), require_confirmation=policy
        )
    probed = copy(tool)
    if hasattr(tool, "get_tools"):
        probed.get_tools = _probe_listing(tool.get_tools, agent, stubs)
    elif not hasattr(tool, "agent"):
        probed.run_async = _probe_run(tool, agent, stub=tool.name in stubs)
    return probed


def _probe_function(function: Any, name: str, agent: str, *, stub: bool) -> Any:
    """Gives a function like *function*, whose body runs in the world."""
    takes = inspect.signature(function)

    @wraps(function)
    async def body(*given: Any, **named: Any) -> Any:
        async def real() -> Any:
            done = function(*given, **named)
            return await done if inspect.isawaitable(done) else done

        bound = takes.bind(*given, **named)
        bound.apply_defaults()
        contexts = [value for value in bound.arguments.values() if isinstance(value, ToolContext)]
        shown = {one: value for one, value in bound.arguments.items() if value not in contexts}
        call_id = contexts[0].function_call_id if contexts else None
        return await current_world().run(
            name, _to_json_values(shown), call_id, agent=agent, real=None if stub else real
        )

    body.__signature__ = takes  # type: ignore[attr-defined]
    return body


def _probe_run(tool: Any, agent: str, *, stub: bool) -> Callable[..., Awaitable[Any]]:
    """Gives what runs a tool of a class of its own in the world."""

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        async def real() -> Any:
            return await tool.run_async(args=args, tool_context=tool_context)

        call_id = tool_context.function_call_id
        return await current_world().run(
            tool.name, _to_json_values(args), call_id, agent=agent, real=None if stub else real
        )

    return run_async


def _probe_listing(get_tools: Callable[..., Awaitable[Any]], agent: str, stubs: frozenset[str]) -> Callable[..., Any]:
    """Gives what lists the tools of a toolset, each probed."""

    async def listed(*given: Any, **named: Any) -> list[Any]:
        return [_probe_tool(tool, agent, stubs) for tool in await get_tools(*given, **named)]

    return listed


def _to_json_values(arguments: dict[str, Any]) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    plain: dict[str, Any] = to_jsonable_python(arguments, fallback=repr)
    return plain
