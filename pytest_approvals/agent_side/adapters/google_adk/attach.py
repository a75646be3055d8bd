"""Attached agents: probes in their tools, the scripted model in place of their own.

An agent is data that can be changed: its model, and its list of tools, which are replaced by tools that run in the
world. Everything is restored when the last session is closed. Nothing leads to the agents that bodies of tools run, so
the method of runners that all runs go through is replaced, and probes them when they run.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from copy import copy
from functools import partial, wraps
from typing import Any, get_args, get_origin, get_type_hints, is_typeddict

from google.adk.agents import BaseAgent
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner
from google.adk.tools import BaseTool, FunctionTool, ToolContext

from ...contract import ANY_AGENT, MAIN, Attachment, Parameter, ToolSpec, Unsupported, WaitsForAnswer
from ...kit.context import current_world
from ...kit.probes import Undo, patch_shared, undo_all
from ...kit.tool_schema import describe_arguments, read_parameters, show_place
from .agents import APP_NAME, AgentGraph, build_runner
from .messages import ResultReader
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
    if not any(hasattr(agent, "model") for agent in _walk_agents(root)):
        raise Unsupported(
            "attach", "the agent has no model; hand over an `LlmAgent`, a `Workflow`, an `App` or a `Runner`"
        )
    probes = _AgentProbes(attachment)
    try:
        specs = probes.probe_agents(root, MAIN)
    except BaseException:
        probes.release()
        raise
    return AgentGraph(
        build_runner=_runner_factory(subject, root, resumable=resumable),
        reader=RequestReader(names=probes.names, tools=tuple(specs)),
        results=probes.results,
        service=subject.session_service if isinstance(subject, Runner) else None,
        options=dict(attachment.run_options),
        release=probes.release,
        earlier_turns=0 if _edits_history(subject, root) else None,
    )


# --- finding ----------------------------------------------------------------------------------------------------------


def _resolve_subject(subject: Any) -> Any:
    if isinstance(subject, BaseAgent | Runner) or hasattr(subject, "root_agent") or _is_node(subject):
        return subject
    return subject(ScriptedModel())


def _is_node(subject: Any) -> bool:
    """Return whether *subject* is a node of a workflow, which releases before 2.0 do not have."""
    return hasattr(subject, "_iter_static_children")


def _root_agent(subject: Any) -> Any:
    if isinstance(subject, Runner):
        return subject.agent
    return subject if isinstance(subject, BaseAgent) or _is_node(subject) else subject.root_agent


def _runner_factory(subject: Any, root: Any, *, resumable: bool) -> Callable[[Any], Any]:
    app = getattr(subject, "app", None) if isinstance(subject, Runner) else subject
    if isinstance(subject, BaseAgent) or app is None:
        return partial(build_runner, root, resumable=resumable)
    if _is_node(subject):
        return lambda service: Runner(node=subject, app_name=APP_NAME, session_service=service)
    return lambda service: Runner(app=app, app_name=app.name, session_service=service)


def _walk_agents(agent: Any) -> Iterator[Any]:
    """Yield *agent* and all agents below it: sub-agents, nodes of workflows, and those that tools run."""
    yield agent
    children = list(agent._iter_static_children() if _is_node(agent) else agent.sub_agents)
    for child in children:
        yield from _walk_agents(child)
    for tool in getattr(agent, "tools", ()):
        inner = getattr(tool, "agent", None)
        if isinstance(inner, BaseAgent) and inner not in children:
            yield from _walk_agents(inner)


def _edits_history(subject: Any, root: Any) -> bool:
    """Return whether the user's own settings or code may change what a model is told of earlier turns."""
    if getattr(root, "include_contents", "default") == "none":
        return True
    if any(getattr(agent, "before_model_callback", None) for agent in _walk_agents(root)):
        return True
    # A runner keeps the app, or its plugins, for itself.
    app = subject if hasattr(subject, "root_agent") else getattr(subject, "app", None)
    manager = getattr(subject, "plugin_manager", None)
    plugins = [*(getattr(app, "plugins", None) or ()), *(getattr(manager, "plugins", None) or ())]
    hook = "before_model_callback"
    return getattr(app, "events_compaction_config", None) is not None or any(
        getattr(type(plugin), hook) is not getattr(BasePlugin, hook) for plugin in plugins
    )


def _can_transfer(agent: Any) -> bool:
    """Return whether the framework gives *agent* its tool to hand over; agents of a sequence take turns without it."""
    return hasattr(agent, "model") and (bool(agent.sub_agents) or hasattr(agent.parent_agent, "model"))


def _to_tool(tool: Any) -> Any:
    """Turn a plain function into a tool, as the framework does."""
    return FunctionTool(tool) if callable(tool) and not hasattr(tool, "get_tools") else tool


def _to_spec(tool: Any, agent: str, *, guarded: bool) -> ToolSpec:
    return ToolSpec(
        name=tool.name,
        description=tool.description or "",
        parameters=_read_declaration(tool._get_declaration()),
        # The result of the user's own policy is not known before it is called.
        approval="always" if getattr(tool, "_require_confirmation", False) is True else "never",
        agent=agent,
        runs=tool.agent.name if isinstance(getattr(tool, "agent", None), BaseAgent) else None,
        place=show_place(getattr(tool, "func", type(tool))),
        guarded=guarded,
    )


def _read_declaration(declaration: Any) -> dict[str, Parameter]:
    if declaration is None:
        return {}
    json_schema = declaration.parameters_json_schema
    if json_schema is None and declaration.parameters is not None:
        json_schema = declaration.parameters.model_dump(mode="json", exclude_none=True)
    return read_parameters(json_schema)


# --- probing ----------------------------------------------------------------------------------------------------------

_IN_BODY: ContextVar[_AgentProbes | None] = ContextVar(
    "probes of the agent in the body of whose tool this is", default=None
)


class _AgentProbes:
    """Probes in the agents of one attachment.

    Attributes:
        names: An agent's name in the scenario, by its name in the framework.
        results: Reads what the bodies of their tools returned.
        stubs: The tools that do not run.
    """

    def __init__(self, attachment: Attachment) -> None:
        self.names: dict[str, str] = {}
        self.results = ResultReader()
        self.stubs = attachment.stubs
        # The values keep the agents alive, and so their ids from being given to others.
        self._probed: dict[int, Any] = {}
        self._undos: list[Undo] = [
            patch_shared(Runner, lambda: {"run_async": _wrap_run(Runner.run_async)}, place=setattr)
        ]

    def probe_agents(self, root: Any, name: str) -> list[ToolSpec]:
        """Put probes into *root*, which the harness calls *name*, and all agents below it; return their tools."""
        specs: list[ToolSpec] = []
        for agent in list(_walk_agents(root)):
            if id(agent) in self._probed:
                continue
            self._probed[id(agent)] = agent
            label = self.names[agent.name] = name if agent is root else agent.name
            tools = [_to_tool(tool) for tool in getattr(agent, "tools", ())]
            is_guarded = any(getattr(agent, name, None) for name in ("before_tool_callback", "after_tool_callback"))
            specs += [_to_spec(tool, label, guarded=is_guarded) for tool in tools if isinstance(tool, BaseTool)]
            if _can_transfer(agent):
                specs.append(ToolSpec(name=TRANSFER, agent=label, hands_over_to=ANY_AGENT))
            self.results.own.update({tool.name: _returns_mapping(tool) for tool in tools if _has_body(tool)})
            model = ScriptedModel(agent=label, results=self.results)
            self._undos += _replace_fields(agent, model=model, tools=[_probe_tool(tool, label, self) for tool in tools])
        return specs

    def release(self) -> None:
        """Take all probes out."""
        undo_all(self._undos)()
        self._undos = []


def _wrap_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def run_async(runner: Runner, **options: Any) -> Any:
        probes = _IN_BODY.get()
        if probes is not None and isinstance(runner.agent, BaseAgent):
            probes.probe_agents(runner.agent, runner.agent.name)
        return original(runner, **options)

    return run_async


def _replace_fields(agent: Any, **fields: Any) -> Iterator[Undo]:
    for field, replacement in fields.items():
        if hasattr(agent, field):
            original = getattr(agent, field)
            setattr(agent, field, replacement)
            yield partial(setattr, agent, field, original)


def _has_body(tool: Any) -> bool:
    return isinstance(tool, BaseTool) and not isinstance(getattr(tool, "agent", None), BaseAgent)


def _returns_mapping(tool: Any) -> bool:
    """Return whether a tool's function says that it returns a dictionary."""
    function = getattr(tool, "func", None)
    try:
        returned = get_type_hints(function).get("return")
    except (TypeError, NameError):
        returned = getattr(function, "__annotations__", {}).get("return")
    if isinstance(returned, str):
        return returned.startswith(("dict", "Dict", "Mapping"))
    return any(
        is_typeddict(kind) or (isinstance(kind, type) and issubclass(kind, Mapping))
        for kind in (get_origin(one) or one for one in (returned, *get_args(returned)))
    )


def _probe_tool(tool: Any, agent: str, probes: _AgentProbes) -> Any:
    # A subclass may override how its function is run, so only plain function tools are rebuilt.
    if type(tool) is FunctionTool:
        policy = getattr(tool, "_require_confirmation", False)
        probed_function = _probe_function(tool.func, tool.name, agent, probes)
        return _note_calls(FunctionTool(probed_function, require_confirmation=policy))
    probed = copy(tool)
    if hasattr(tool, "get_tools"):
        probed.get_tools = _probe_listing(tool.get_tools, agent, probes)
    elif isinstance(tool, FunctionTool) and _runs_its_function(tool):
        # What the class does around its function is not the body: it may ask, ignore the answer, or run it twice.
        hidden = frozenset(getattr(tool, "_ignore_params", ()))
        probed.func = _probe_function(tool.func, tool.name, agent, probes, hidden)
        _note_calls(probed)
    elif not hasattr(tool, "agent"):
        probed.run_async = _probe_run(tool, agent, probes)
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


def _probe_function(
    function: Any, name: str, agent: str, probes: _AgentProbes, hidden: frozenset[str] = frozenset()
) -> Any:
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
        return await _run_body(name, _to_json_values(arguments), call_id, agent, real, context, probes)

    body.__signature__ = signature  # type: ignore[attr-defined]
    return body


def _probe_run(tool: Any, agent: str, probes: _AgentProbes) -> Callable[..., Awaitable[Any]]:
    """Return a `run_async` that runs a tool of the user's own class in the world."""

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        async def real() -> Any:
            return await tool.run_async(args=args, tool_context=tool_context)

        call_id = tool_context.function_call_id
        return await _run_body(tool.name, _to_json_values(args), call_id, agent, real, tool_context, probes)

    return run_async


async def _run_body(
    name: str,
    arguments: dict[str, Any],
    call_id: str | None,
    agent: str,
    real: Callable[[], Awaitable[Any]],
    context: Any,
    probes: _AgentProbes,
) -> Any:
    """Run a body in the world; if it requests a confirmation, it is entered again with the answer."""
    if name in probes.stubs:
        return await current_world().run(name, arguments, call_id, agent=agent)
    results: list[Any] = []

    async def asking() -> Any:
        token = _IN_BODY.set(probes)
        try:
            results.append(await real())
        finally:
            _IN_BODY.reset(token)
        if context is not None and call_id in context.actions.requested_tool_confirmations:
            raise WaitsForAnswer("the body asks")
        return probes.results.unwrap(name, results[-1])

    with suppress(WaitsForAnswer):
        await current_world().run(name, arguments, call_id, agent=agent, real=asking)
    # If it waits, what it returned stands in for its result until the answer comes.
    return results[-1]


def _probe_listing(get_tools: Callable[..., Awaitable[Any]], agent: str, probes: _AgentProbes) -> Callable[..., Any]:
    """Return a `get_tools` that lists the probed tools of a toolset."""

    async def listed(*args: Any, **kwargs: Any) -> list[Any]:
        tools = await get_tools(*args, **kwargs)
        probes.results.own.update({tool.name: _returns_mapping(tool) for tool in tools})
        return [_probe_tool(tool, agent, probes) for tool in tools]

    return listed


def _to_json_values(arguments: dict[str, Any]) -> dict[str, Any]:
    from pydantic_core import to_jsonable_python

    plain: dict[str, Any] = to_jsonable_python(describe_arguments(arguments), fallback=repr)
    return plain
