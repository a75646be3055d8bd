"""
A person's own agent or team: probes in its tools, and the scripted model in place of its own.

All of it is public: models and tools are attributes of agents, teams and toolkits, and are put back when the last
session lets go. Members of a team are treated as its leader is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import Parameter as Given
from inspect import iscoroutinefunction, signature
from typing import Any

from agno.tools.function import Function

from ...contract import MAIN, Attachment, Parameter, ToolSpec, Unsupported
from ...kit.context import current_world
from .agents import AgentGraph
from .model import ScriptedModel
from .tools import CALL_PARAMETER

Undo = Callable[[], None]


def attach_agents(attachment: Attachment) -> AgentGraph:
    """Makes a crew of the agent or team that a person hands over, or that their factory makes of the scripted model."""
    subject = attachment.subject
    main = subject if hasattr(subject, "arun") else subject(ScriptedModel())
    undone: list[Undo] = [_replace_attribute(main, "db", main.db), _replace_attribute(main, "telemetry", False)]
    specs: list[ToolSpec] = []
    for one in _walk_agents(main):
        name = MAIN if one is main else str(one.id or one.name)
        if not isinstance(one.model, ScriptedModel) or one is not main:
            undone.append(_replace_attribute(one, "model", ScriptedModel(name)))
        tools, found = _probe_tools(one, name, attachment.stubs)
        undone.append(_replace_attribute(one, "tools", tools))
        specs += found
    if main.id is None:
        undone.append(_replace_attribute(main, "id", MAIN))

    def release() -> None:
        for undo in reversed(undone):
            undo()

    return AgentGraph(main=main, tools=tuple(specs), options=dict(attachment.run_options), db=main.db, release=release)


def _walk_agents(one: Any) -> Iterator[Any]:
    yield one
    for member in getattr(one, "members", None) or ():
        yield from _walk_agents(member)


def _replace_attribute(owner: Any, name: str, value: Any) -> Undo:
    before = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before)


# --- tools ------------------------------------------------------------------------------------------------------------


def _probe_tools(one: Any, agent: str, stubs: frozenset[str]) -> tuple[list[Any], list[ToolSpec]]:
    """Gives the tools of an agent with probes around their bodies, and what they are."""
    if callable(one.tools):
        raise Unsupported("attach", "tools that a function gives are not known before the run; hand over a list")
    tools: list[Any] = []
    specs: list[ToolSpec] = []
    for function in (found for given in one.tools or () for found in _to_functions(given)):
        specs.append(_to_spec(function, agent))
        tools.append(_probe_function(function, agent, stub=function.name in stubs))
    return tools, specs


def _to_functions(given: Any) -> Iterator[Function]:
    """Gives the functions that one entry of a list of tools stands for."""
    if isinstance(given, Function):
        yield given
    elif callable(given):
        yield Function.from_callable(given)
    elif hasattr(given, "functions"):
        # A toolkit keeps what can be awaited apart, and the framework prefers it.
        named = {**given.functions, **getattr(given, "async_functions", {})}
        yield from named.values()
    else:
        raise Unsupported("attach", f"a tool that is a {type(given).__name__} is run by the provider, not here")


def _probe_function(function: Function, agent: str, *, stub: bool) -> Function:
    """Gives a copy of *function* whose body the world runs, with the arguments that the framework made of the call."""
    body: Any = function.entrypoint
    told = CALL_PARAMETER in signature(body).parameters

    @wraps(body)
    async def run(fc: Any = None, **named: Any) -> Any:
        async def real() -> Any:
            given = {CALL_PARAMETER: fc, **named} if told else named
            if iscoroutinefunction(body):
                return await body(**given)
            return await asyncio.to_thread(body, **given)

        shown = {name: value for name, value in named.items() if name in _parameter_schemas(function)}
        call_id = None if fc is None else fc.call_id
        return await current_world().run(function.name, shown, call_id, agent=agent, real=None if stub else real)

    described: Any = run
    described.__signature__ = _signature_with_call(body) if not told else signature(body)
    described.__annotations__ = dict(getattr(body, "__annotations__", {}))
    probed = function.model_copy()
    probed.entrypoint = run
    return probed


def _signature_with_call(body: Any) -> Any:
    """Gives the signature of *body* and the parameter in which the framework hands over the call."""
    own = signature(body)
    call = Given(CALL_PARAMETER, Given.KEYWORD_ONLY, default=None, annotation=Any)
    named = [one for one in own.parameters.values() if one.kind is not Given.VAR_KEYWORD]
    rest = [one for one in own.parameters.values() if one.kind is Given.VAR_KEYWORD]
    return own.replace(parameters=[*named, call, *rest])


def _parameter_schemas(function: Function) -> dict[str, Any]:
    described = function.to_dict().get("parameters") or {}
    if not described.get("properties"):
        shape = function.model_copy()
        shape.process_entrypoint()
        described = shape.parameters
    properties: dict[str, Any] = described.get("properties", {})
    return {name: one for name, one in properties.items() if name != CALL_PARAMETER}


def _to_spec(function: Function, agent: str) -> ToolSpec:
    own = signature(function.entrypoint).parameters if function.entrypoint is not None else {}
    return ToolSpec(
        name=function.name,
        description=function.description or "",
        parameters={name: _to_parameter(one, own.get(name)) for name, one in _parameter_schemas(function).items()},
        approval="always" if function.requires_confirmation else "never",
        agent=agent,
    )


def _to_parameter(described: dict[str, Any], own: Any) -> Parameter:
    default = None if own is None or own.default is Given.empty else own.default
    required = own is None or own.default is Given.empty
    return Parameter(type=str(described.get("type", "object")), required=required, default=default)
