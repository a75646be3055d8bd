"""Attached agents: a copy with probes in its tools and the scripted client for its own.

Agents that are tools of it (`as_tool`), or that the body of a tool runs, are copied and probed likewise, each with the
scripted client of its name.
All else that the agent has (instructions, middleware, context providers, options) is the user's. Nothing of the user's
own agent is changed, so there is nothing to restore.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from copy import copy
from functools import partial, update_wrapper, wraps
from inspect import Parameter, getclosurevars, iscoroutinefunction, signature
from types import CellType, FunctionType
from typing import Any

from agent_framework import (
    Agent,
    AgentExecutor,
    FunctionMiddleware,
    FunctionTool,
    HistoryProvider,
    Workflow,
    WorkflowAgent,
)
from pydantic_core import to_jsonable_python

from ...contract import MAIN, Attachment, ToolSpec, Unsupported
from ...kit.context import body_owner, run_in_turn, use_body
from ...kit.probes import Undo, patch_shared, undo_all
from ...kit.tool_schema import describe_arguments, read_parameters, show_place
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
    agent = subject(client()) if is_factory else subject
    if isinstance(agent, Workflow):
        agent = agent.as_agent(name=MAIN)
    if isinstance(agent, WorkflowAgent):
        return _attach_workflow(agent, attachment, client)
    if not hasattr(agent, "client"):
        raise Unsupported(
            "attach", f"{type(agent).__name__} has no client of its own; hand over the agent inside of it"
        )
    probes = _Probes(attachment.stubs, client)
    main = probes.copy(agent, MAIN)
    if is_factory:
        # Its client is a scripted one already, with the settings that the factory may have given it.
        main.client = agent.client
    return AgentGraph(
        main=main,
        tools=tuple(probes.specs),
        options=dict(attachment.run_options),
        earlier_turns=0 if _edits_history(agent) else None,
        release=_watch_bodies(),
    )


def _edits_history(agent: Any) -> bool:
    """Return whether the user's own settings or code may change what the model is told of earlier turns."""
    providers = getattr(agent, "context_providers", None) or ()
    middleware = [one for one in getattr(agent, "middleware", None) or () if not _is_around_functions(one)]
    return getattr(agent, "compaction_strategy", None) is not None or any(
        not type(one).__module__.startswith("agent_framework.") and not isinstance(one, HistoryProvider)
        for one in (*providers, *middleware)
    )


def _is_around_functions(middleware: Any) -> bool:
    """Return whether a middleware sees calls of functions only."""
    kind = getattr(middleware, "_middleware_type", None)
    return isinstance(middleware, FunctionMiddleware) or getattr(kind, "value", kind) == "function"


def _attach_workflow(main: WorkflowAgent, attachment: Attachment, client: ClientFactory) -> AgentGraph:
    """Build the agent graph of a workflow: the agents of its executors are replaced by probed copies until the end.

    The one that the workflow starts with is the main agent; the others have their names.
    """
    probes = _Probes(attachment.stubs, client)
    undos: list[Undo] = [_watch_bodies()]
    start = main.workflow.get_start_executor()
    executors = [start, *(one for one in main.workflow.executors.values() if one is not start)]
    running = [one for one in executors if isinstance(one, AgentExecutor) and hasattr(one.agent, "client")]
    for executor in running:
        agent = executor.agent
        label = MAIN if executor is running[0] else str(agent.name or executor.id)
        undos.append(patch_shared(executor, partial(_build_agent_attribute, probes, agent, label)))
    if not running:
        raise Unsupported("attach", "no executor of the workflow is an agent with a client")
    return AgentGraph(
        main=main,
        tools=tuple(probes.specs),
        options=dict(attachment.run_options),
        is_workflow=True,
        release=undo_all(undos),
    )


def _build_agent_attribute(probes: _Probes, agent: Any, label: str) -> dict[str, Any]:
    return {"_agent": probes.copy(agent, label)}


class _Probes:
    """Copies of agents with probed tools.

    Attributes:
        specs: The tools that were found.
    """

    def __init__(self, stubs: frozenset[str], client: ClientFactory) -> None:
        self.specs: list[ToolSpec] = []
        self._stubs = stubs
        self._client = client
        self._copies: dict[int, tuple[Any, Any]] = {}

    def copy_in_body(self, agent: Any) -> Any:
        """Return the copy of an agent that the body of a tool runs; a copy itself is returned as it is."""
        if any(agent is copied for _, copied in self._copies.values()):
            return agent
        return self.copy(agent, str(agent.name or "agent"))

    def copy(self, agent: Any, name: str) -> Any:
        """Return a copy of an agent with probed tools, made once, and add the specs of these to `specs`."""
        if id(agent) in self._copies:
            return self._copies[id(agent)][1]
        # A shallow copy is enough: the client and the options are replaced, not changed.
        probed = copy(agent)
        self._copies[id(agent)] = agent, probed
        probed.client = _script_client(agent.client, self._client, name)
        options = dict(getattr(agent, "default_options", None) or {})
        # Which of them are around functions is sorted out in a run.
        is_guarded = bool(getattr(agent, "middleware", None) or getattr(agent.client, "function_middleware", None))
        tools: list[Any] = []
        for tool in options.get("tools") or ():
            inner = _find_inner_agent(tool)
            label = None if inner is None else str(inner.name or tool.name)
            if isinstance(tool, FunctionTool):
                self.specs.append(_to_spec(tool, name, label, guarded=is_guarded))
            if label is not None:
                tool = _replace_inner_agent(tool, self.copy(inner, label))
            tools.append(self._probe_tool(tool, name))
        probed.default_options = {**options, "tools": tools}
        return probed

    def _probe_tool(self, tool: Any, agent: str) -> Any:
        """Return a copy of a function tool whose body the world runs; other tools unchanged."""
        # A tool without a function is only declared: the caller of the agent runs it.
        if not isinstance(tool, FunctionTool) or tool.func is None:
            return tool
        probed: Any = copy(tool)
        probed.func = _run_in_world(tool, tool.func, agent, self, stub=tool.name in self._stubs)
        return probed


def _watch_bodies() -> Undo:
    """Run copies of the agents that are run in the bodies of tools; see `_Probes.copy_in_body`."""
    original = Agent.run

    @wraps(original)
    def run(agent: Any, *messages: Any, **options: Any) -> Any:
        probes = body_owner()
        return original(probes.copy_in_body(agent) if isinstance(probes, _Probes) else agent, *messages, **options)

    return patch_shared(Agent, lambda: {"run": run}, place=setattr)


def _script_client(user_client: Any, client: ClientFactory, agent: str) -> Any:
    """Build the scripted client of an agent with the user's settings for function calling."""
    return client(
        agent=agent,
        function_invocation_configuration=getattr(user_client, "function_invocation_configuration", None),
        middleware=[*(getattr(user_client, "function_middleware", None) or ())],
    )


def _find_inner_agent(tool: Any) -> Any:
    """Return the agent that a tool of `as_tool` runs; None for other tools."""
    # `as_tool` returns a plain `FunctionTool`; only the function in it leads to the agent.
    func: Any = getattr(tool, "func", None)
    if getattr(func, "__name__", "") != "_agent_wrapper":
        return None
    inner = getclosurevars(func).nonlocals.get("self")
    if not hasattr(inner, "client"):
        raise Unsupported("attach", f"the tool {tool.name!r} is a {type(inner).__name__}, whose model is not known")
    return inner


def _replace_inner_agent(tool: Any, agent: Any) -> Any:
    """Return a copy of a tool of `as_tool` that runs another agent."""
    func = tool.func
    cells = dict(zip(func.__code__.co_freevars, func.__closure__, strict=True))
    closure = tuple({**cells, "self": CellType(agent)}.values())
    replaced: Any = copy(tool)
    replaced.func = FunctionType(func.__code__, func.__globals__, func.__name__, func.__defaults__, closure)
    update_wrapper(replaced.func, func)
    del replaced.func.__wrapped__
    replaced.func.__kwdefaults__ = func.__kwdefaults__
    return replaced


def _to_spec(tool: Any, agent: str, runs: str | None, *, guarded: bool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=read_parameters(tool.parameters()),
        approval="always" if tool.approval_mode == "always_require" else "never",
        agent=agent,
        runs=runs,
        guarded=guarded,
        place=show_place(tool.func),
    )


# --- probing ----------------------------------------------------------------------------------------------------------


def _run_in_world(
    tool: Any, body: Callable[..., Any], agent: str, probes: _Probes, *, stub: bool
) -> Callable[..., Awaitable[Any]]:
    declared = frozenset(tool.parameters().get("properties", {}))
    parameters = signature(body).parameters.values()
    own_defaults = {
        parameter.name: parameter.default for parameter in parameters if parameter.default is not Parameter.empty
    }

    @wraps(body)
    async def run(*args: Any, **kwargs: Any) -> Any:
        async def real() -> Any:
            with use_body(probes):
                if iscoroutinefunction(body):
                    return await body(*args, **kwargs)
                # As the framework does with a blocking function, which it cannot see behind this coroutine.
                return await asyncio.to_thread(body, *args, **kwargs)

        # The framework may add its context, which the model did not choose; defaults are the body's own.
        defaults = {name: value for name, value in own_defaults.items() if name not in kwargs}
        declared_arguments = {name: value for name, value in {**kwargs, **defaults}.items() if name in declared}
        arguments = to_jsonable_python(describe_arguments(declared_arguments), fallback=repr)
        return await run_in_turn(tool.name, arguments, None, agent=agent, real=None if stub else real)

    return run
