"""Attached agents: probes in their tools, the scripted model in place of their own.

An agent is data that can be changed: its model, and its list of tools, which are replaced by tools that run in the
world. Everything is restored when the last session is closed.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextvars import ContextVar
from copy import copy
from functools import partial, wraps
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.runners import Runner
from google.adk.tools import BaseTool, FunctionTool, ToolContext

from ...contract import ANY_AGENT, MAIN, Attachment, Parameter, ToolSpec, Unsupported, WaitsForAnswer
from ...kit.context import current_world
from ...kit.probes import Undo, undo_all
from ...kit.tool_schema import read_parameters, show_place
from .agents import AgentGraph, build_runner
from .model import ScriptedModel
from .requests import RequestReader

TRANSFER = "transfer_to_agent"
"""The tool that the framework gives to agents that can hand over."""

_running_call: ContextVar[str | None] = ContextVar("running call", default=None)
"""The id of the call that runs, for functions that take no `ToolContext`."""


def attach_agents(attachment: Attachment, *, resumable: bool) -> AgentGraph:
    """Build the agent graph of an attached agent, app or runner, or of its factory's."""
    subject = _resolve_subject(attachment.subject)
    root = _root_agent(subject)
    agents = list(_walk_agents(root))
    if not any(hasattr(agent, "model") for agent in agents):
        raise Unsupported("attach", "the agent has no model; hand over an `LlmAgent`, an `App` or a `Runner`")
    names = {agent.name: MAIN if agent is root else agent.name for agent in agents}
    undo: list[Undo] = []
    specs: list[ToolSpec] = []
    for agent in agents:
        tools = [_to_tool(tool) for tool in getattr(agent, "tools", ())]
        specs += [_to_spec(tool, names[agent.name]) for tool in tools if isinstance(tool, BaseTool)]
        if agent.sub_agents or agent.parent_agent is not None:
            specs.append(ToolSpec(name=TRANSFER, agent=names[agent.name], hands_over_to=ANY_AGENT))
        undo += _probe_agent(
            agent, [_probe_tool(tool, names[agent.name], attachment.stubs) for tool in tools], names[agent.name]
        )

    return AgentGraph(
        build_runner=_runner_factory(subject, root, resumable=resumable),
        reader=RequestReader(names=names, tools=tuple(specs)),
        service=subject.session_service if isinstance(subject, Runner) else None,
        options=dict(attachment.run_options),
        release=undo_all(undo),
    )


# --- finding ----------------------------------------------------------------------------------------------------------


def _resolve_subject(subject: Any) -> Any:
    if isinstance(subject, BaseAgent | Runner) or hasattr(subject, "root_agent"):
        return subject
    return subject(ScriptedModel())


def _root_agent(subject: Any) -> Any:
    if isinstance(subject, BaseAgent):
        return subject
    return subject.agent if isinstance(subject, Runner) else subject.root_agent


def _runner_factory(subject: Any, root: Any, *, resumable: bool) -> Callable[[Any], Any]:
    app = getattr(subject, "app", None) if isinstance(subject, Runner) else subject
    if isinstance(subject, BaseAgent) or app is None:
        return partial(build_runner, root, resumable=resumable)
    return lambda service: Runner(app=app, app_name=app.name, session_service=service)


def _walk_agents(agent: Any) -> Iterator[Any]:
    """Yield *agent* and all agents below it: sub-agents, and those that tools run."""
    yield agent
    for sub_agent in agent.sub_agents:
        yield from _walk_agents(sub_agent)
    for tool in getattr(agent, "tools", ()):
        inner = getattr(tool, "agent", None)
        if isinstance(inner, BaseAgent) and inner not in agent.sub_agents:
            yield from _walk_agents(inner)


def _to_tool(tool: Any) -> Any:
    """Turn a plain function into a tool, as the framework does."""
    return FunctionTool(tool) if callable(tool) and not hasattr(tool, "get_tools") else tool


def _to_spec(tool: Any, agent: str) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description or "",
        parameters=_read_declaration(tool._get_declaration()),
        # The result of the user's own policy is not known before it is called.
        approval="always" if getattr(tool, "_require_confirmation", False) is True else "never",
        agent=agent,
        runs=tool.agent.name if isinstance(getattr(tool, "agent", None), BaseAgent) else None,
        place=show_place(getattr(tool, "func", type(tool))),
    )


def _read_declaration(declaration: Any) -> dict[str, Parameter]:
    if declaration is None:
        return {}
    json_schema = declaration.parameters_json_schema
    if json_schema is None and declaration.parameters is not None:
        json_schema = declaration.parameters.model_dump(mode="json", exclude_none=True)
    return read_parameters(json_schema)


# --- probing ----------------------------------------------------------------------------------------------------------


def _probe_agent(agent: Any, tools: list[Any], name: str) -> Iterator[Undo]:
    """Put the scripted model and probed tools into *agent*."""
    for field, replacement in (("model", ScriptedModel(agent=name)), ("tools", tools)):
        if hasattr(agent, field):
            original = getattr(agent, field)
            setattr(agent, field, replacement)
            yield partial(setattr, agent, field, original)


def _probe_tool(tool: Any, agent: str, stubs: frozenset[str]) -> Any:
    # A subclass may override how its function is run, so only plain function tools are rebuilt.
    if type(tool) is FunctionTool:
        policy = getattr(tool, "_require_confirmation", False)
        probed_function = _probe_function(tool.func, tool.name, agent, stub=tool.name in stubs)
        return _note_calls(FunctionTool(probed_function, require_confirmation=policy))
    probed = copy(tool)
    if hasattr(tool, "get_tools"):
        probed.get_tools = _probe_listing(tool.get_tools, agent, stubs)
    elif isinstance(tool, FunctionTool) and _runs_its_function(tool):
        # What the class does around its function is not the body: it may ask, ignore the answer, or run it twice.
        hidden = frozenset(getattr(tool, "_ignore_params", ()))
        probed.func = _probe_function(tool.func, tool.name, agent, stub=tool.name in stubs, hidden=hidden)
        _note_calls(probed)
    elif not hasattr(tool, "agent"):
        probed.run_async = _probe_run(tool, agent, stub=tool.name in stubs)
    return probed


def _note_calls(tool: FunctionTool) -> FunctionTool:
    """Let the function of *tool* know which call it runs."""
    original = tool.run_async

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        token = _running_call.set(tool_context.function_call_id)
        try:
            return await original(args=args, tool_context=tool_context)
        finally:
            _running_call.reset(token)

    tool.run_async = run_async
    return tool


def _runs_its_function(tool: FunctionTool) -> bool:
    """Return whether the class of *tool*, which a user has written, leaves the work to its function."""
    if inspect.isgeneratorfunction(tool.func) or inspect.isasyncgenfunction(tool.func):
        return False
    own = [part for part in type(tool).__mro__ if issubclass(part, FunctionTool) and not _is_of_framework(part)]
    methods = [method for part in own for method in vars(part).values() if inspect.isfunction(method)]
    named = {name for method in methods for name in method.__code__.co_names}
    overridden = any("run_async" in vars(part) for part in own)
    return bool(own) and (not overridden or not named.isdisjoint(("func", "run_async")))


def _is_of_framework(part: type) -> bool:
    return part.__module__.startswith("google.adk.")


def _probe_function(function: Any, name: str, agent: str, *, stub: bool, hidden: frozenset[str] = frozenset()) -> Any:
    """Return a function like *function* whose body runs in the world; the model sees no *hidden* parameters."""
    signature = inspect.signature(function)

    @wraps(function)
    async def body(*args: Any, **kwargs: Any) -> Any:
        async def real() -> Any:
            result = function(*args, **kwargs)
            return await result if inspect.isawaitable(result) else result

        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        contexts = [value for value in bound.arguments.values() if isinstance(value, ToolContext)]
        arguments = {
            key: value for key, value in bound.arguments.items() if key not in hidden and value not in contexts
        }
        call_id = contexts[0].function_call_id if contexts else _running_call.get()
        context = contexts[0] if contexts else None
        return await _run_body(name, _to_json_values(arguments), call_id, agent, None if stub else real, context)

    body.__signature__ = signature  # type: ignore[attr-defined]
    return body


def _probe_run(tool: Any, agent: str, *, stub: bool) -> Callable[..., Awaitable[Any]]:
    """Return a `run_async` that runs a tool of the user's own class in the world."""

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        async def real() -> Any:
            return await tool.run_async(args=args, tool_context=tool_context)

        call_id = tool_context.function_call_id
        body = None if stub else real
        return await _run_body(tool.name, _to_json_values(args), call_id, agent, body, tool_context)

    return run_async


async def _run_body(
    name: str,
    arguments: dict[str, Any],
    call_id: str | None,
    agent: str,
    real: Callable[[], Awaitable[Any]] | None,
    context: Any,
) -> Any:
    """Run a body in the world; if it requests a confirmation, it is entered again with the answer."""
    if real is None:
        return await current_world().run(name, arguments, call_id, agent=agent)
    results: list[Any] = []

    async def asking() -> Any:
        results.append(await real())
        if context is not None and call_id in context.actions.requested_tool_confirmations:
            raise WaitsForAnswer("the body asks")
        return results[-1]

    try:
        return await current_world().run(name, arguments, call_id, agent=agent, real=asking)
    except WaitsForAnswer:
        # What it returned stands in for its result until the answer comes.
        return results[-1]


def _probe_listing(get_tools: Callable[..., Awaitable[Any]], agent: str, stubs: frozenset[str]) -> Callable[..., Any]:
    """Return a `get_tools` that lists the probed tools of a toolset."""

    async def listed(*args: Any, **kwargs: Any) -> list[Any]:
        return [_probe_tool(tool, agent, stubs) for tool in await get_tools(*args, **kwargs)]

    return listed


def _to_json_values(arguments: dict[str, Any]) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    plain: dict[str, Any] = to_jsonable_python(arguments, fallback=repr)
    return plain
