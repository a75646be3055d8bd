"""Attached agents or teams: probes in their tools, the scripted model for their own.

Models and tools are public attributes of agents, teams and toolkits, and are restored when the last session is closed.
Members of a team are treated as its leader is, and so are agents that the body of a tool runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from functools import partial, wraps
from inspect import Parameter as Argument
from inspect import iscoroutine, iscoroutinefunction, signature
from typing import Any, get_type_hints

from agno.agent import Agent
from agno.team import Team
from agno.tools.function import Function, FunctionCall
from agno.workflow import Workflow
from pydantic import PydanticUserError, TypeAdapter
from pydantic_core import to_jsonable_python

from ...contract import ANY_AGENT, MAIN, Attachment, Parameter, ToolSpec, Unsupported
from ...kit.context import body_owner, run_blocking, run_in_turn, use_body
from ...kit.probes import Undo, patch_shared, undo_all
from ...kit.tool_schema import describe_arguments, read_parameters, read_type, show_place
from .agents import AgentGraph
from .messages import DELEGATE
from .model import ScriptedModel
from .tools import CALL_PARAMETER
from .workflow import DrivenWorkflow, list_executors


def attach_agents(attachment: Attachment) -> AgentGraph:
    """Build the agent graph of an attached agent or team, or of the one its factory builds."""
    subject = attachment.subject
    main = subject if hasattr(subject, "arun") else subject(ScriptedModel())
    probes = _Probes(attachment)
    if isinstance(main, Workflow):
        main = probes.probe_workflow(main)
    elif isinstance(main, (Agent, Team)):
        probes.probe(main, MAIN)
    else:
        raise Unsupported("attach", f"a {type(main).__name__} is neither an agent, a team nor a workflow")
    # Sessions replace the database themselves; this only restores it at the end.
    probes.undos.append(_replace_attribute(main, "db", main.db))
    if main.id is None:
        probes.undos.append(_replace_attribute(main, "id", MAIN))

    return AgentGraph(
        main=main,
        tools=tuple(probes.specs),
        options=dict(attachment.run_options),
        db=main.db,
        external=probes.external,
        earlier_turns=_count_earlier_runs(main),
        is_workflow=isinstance(main, DrivenWorkflow),
        release=undo_all(probes.undos),
    )


def _count_earlier_runs(main: Any) -> int:
    """Return how many earlier runs an agent adds to the context of a run, by its settings."""
    # Of a number of messages it is unknown how many runs they are.
    if not main.add_history_to_context or main.num_history_messages is not None:
        return 0
    return int(main.num_history_runs or 0)


class _Probes:
    """What is put into an attached agent or team, and into the agents that the bodies of its tools run.

    Attributes:
        specs: The tools that were found.
        external: The bodies of tools that the application executes itself, by agent and name.
        undos: The functions that take it out again.
    """

    def __init__(self, attachment: Attachment) -> None:
        self.specs: list[ToolSpec] = []
        self.external: dict[tuple[str, str], Any] = {}
        self.undos: list[Undo] = [_watch_bodies(kind) for kind in (Agent, Team)]
        self._stubs = attachment.stubs
        # The references keep the agents alive, and so their ids from being given to others.
        self._probed: dict[int, Any] = {}

    def probe_in_body(self, agent: Any) -> None:
        """Probe an agent or a team that the body of a tool runs."""
        if id(agent) not in self._probed:
            self.probe(agent, _name_member(agent))

    def probe_workflow(self, workflow: Workflow) -> DrivenWorkflow:
        """Probe the agents and teams of the steps of a workflow, the first of which has the main script."""
        names: dict[int, str] = {}
        for executor in list_executors(workflow):
            names[id(executor)] = _name_member(executor) if names else MAIN
            if executor.id is None:
                self.undos.append(_replace_attribute(executor, "id", names[id(executor)]))
            self.probe(executor, names[id(executor)])
        if not names:
            raise Unsupported("attach", "no step of the workflow runs an agent or a team")
        self.undos.append(_replace_attribute(workflow, "telemetry", False))
        return DrivenWorkflow(workflow, names)

    def probe(self, main: Any, label: str) -> None:
        """Give an agent and its members scripted models and probes around their tools."""
        for agent in _walk_agents(main):
            self._probed[id(agent)] = agent
            name = label if agent is main else _name_member(agent)
            tools, specs = _probe_tools(agent, name, self._stubs, self)
            self.specs += specs
            if getattr(agent, "members", None) and not agent.delegate_to_all_members:
                self.specs.append(_delegation_spec(name))
            # Each member would send its own telemetry.
            attributes = {"telemetry": False, "tools": tools, "tool_hooks": _await_in_hooks(agent.tool_hooks)}
            if not isinstance(agent.model, ScriptedModel) or name != MAIN:
                attributes["model"] = ScriptedModel(name)
            self.undos.append(patch_shared(agent, partial(dict, attributes)))


def _watch_bodies(kind: type[Any]) -> Undo:
    """Probe the agents or teams that are run in the bodies of tools.

    Nothing leads from an agent to those that its tools run, so the methods that all runs go through are replaced. One
    that blocks does what the other one does, because the world is asynchronous.
    """

    def build() -> dict[str, Any]:
        return {
            "arun": _probe_method(kind.arun),
            "acontinue_run": _probe_method(kind.acontinue_run),
            "run": _block_on(kind.run, "arun"),
            "continue_run": _block_on(kind.continue_run, "acontinue_run"),
        }

    return patch_shared(kind, build, place=setattr)


def _probe_method(method: Any) -> Any:
    @wraps(method)
    def run(agent: Any, *inputs: Any, **options: Any) -> Any:
        probes = body_owner()
        if isinstance(probes, _Probes):
            probes.probe_in_body(agent)
        return method(agent, *inputs, **options)

    return run


def _block_on(method: Any, asynchronous: str) -> Any:
    @wraps(method)
    def run(agent: Any, *inputs: Any, **options: Any) -> Any:
        if not isinstance(body_owner(), _Probes):
            return method(agent, *inputs, **options)
        result: Any = getattr(agent, asynchronous)(*inputs, **options)
        return run_blocking(result) if iscoroutine(result) else iter(run_blocking(_list_events(result)))

    return run


async def _list_events(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


def _walk_agents(agent: Any) -> Iterator[Any]:
    yield agent
    for member in getattr(agent, "members", None) or ():
        yield from _walk_agents(member)


def _name_member(member: Any) -> str:
    """Return the id under which a leader delegates to *member*, and under which requests name it."""
    from agno.utils.team import get_member_id

    return str(get_member_id(member))


def _delegation_spec(leader: str) -> ToolSpec:
    """Return the spec of the tool that the framework gives to the leader of a team."""
    parameters = {"member_id": Parameter(type="string"), "task": Parameter(type="string")}
    return ToolSpec(name=DELEGATE, parameters=parameters, agent=leader, runs=ANY_AGENT)


def _replace_attribute(owner: Any, name: str, value: Any) -> Undo:
    before = getattr(owner, name)
    setattr(owner, name, value)
    return lambda: setattr(owner, name, before)


# --- tools ------------------------------------------------------------------------------------------------------------


def _probe_tools(owner: Any, agent: str, stubs: frozenset[str], probes: _Probes) -> tuple[Any, list[ToolSpec]]:
    """Return the tools of an agent with probes around their bodies, and their specs.

    Those that a function gives are known when the agent runs.
    """
    if callable(owner.tools):
        return _probe_given(owner.tools, agent, stubs, probes), []
    functions = [function for entry in owner.tools or () for function in _to_functions(entry)]
    specs = [_to_spec(function, agent, owner.tool_hooks or ()) for function in functions]
    return _probe_functions(functions, agent, stubs, probes), specs


def _probe_given(give: Any, agent: str, stubs: frozenset[str], probes: _Probes) -> Any:
    """Return a function that gives the tools of the user's function, with probes around their bodies."""

    # The framework passes the arguments that the signature asks for.
    @wraps(give)
    async def give_probed(**arguments: Any) -> list[Any]:
        given = give(**arguments)
        given = await given if iscoroutine(given) else given
        functions = [function for entry in given or () for function in _to_functions(entry)]
        return _probe_functions(functions, agent, stubs, probes)

    return give_probed


def _probe_functions(
    functions: Iterable[Function], agent: str, stubs: frozenset[str], probes: _Probes
) -> list[Function]:
    tools: list[Function] = []
    for function in functions:
        probed = _probe_function(function, agent, probes, stub=function.name in stubs)
        tools.append(probed)
        if function.external_execution:
            probes.external[agent, function.name] = probed.entrypoint
    return tools


def _to_functions(entry: Any) -> Iterator[Function]:
    """Yield the functions that one entry of a list of tools stands for."""
    if isinstance(entry, Function):
        yield entry
    elif callable(entry):
        yield Function.from_callable(entry)
    elif hasattr(entry, "functions"):
        # A toolkit keeps what can be awaited apart, and the framework prefers it.
        functions = {**entry.functions, **getattr(entry, "async_functions", {})}
        yield from functions.values()
    else:
        raise Unsupported("attach", f"a tool that is a {type(entry).__name__} is run by the provider, not here")


def _probe_function(function: Function, agent: str, probes: _Probes, *, stub: bool) -> Function:
    """Return a copy of *function* whose body the world runs.

    It gets the arguments that the framework made of the call.
    """
    body = _strip_validation(function.entrypoint)
    takes_call = CALL_PARAMETER in signature(body).parameters
    declared = frozenset(_parameter_schemas(function))

    # The framework notes on a function that it validates, and would not validate the probe.
    @wraps(body, updated=())
    async def run(fc: Any = None, **kwargs: Any) -> Any:
        async def real() -> Any:
            taken = {CALL_PARAMETER: fc, **kwargs} if takes_call else kwargs
            with use_body(probes):
                if iscoroutinefunction(body):
                    return await body(**taken)
                return await asyncio.to_thread(body, **taken)

        declared_arguments = {name: value for name, value in kwargs.items() if name in declared}
        arguments = to_jsonable_python(describe_arguments(declared_arguments), fallback=repr)
        call_id = None if fc is None else fc.call_id
        return await run_in_turn(function.name, arguments, call_id, agent=agent, real=None if stub else real)

    described: Any = run
    described.__signature__ = _signature_with_call(body) if not takes_call else signature(body)
    # The framework validates no arguments of a function that has a parameter without an entry here, or with one that
    # it cannot resolve: annotations of the user's module are written in the names of that module.
    described.__annotations__ = {CALL_PARAMETER: FunctionCall, **_resolve_annotations(body)}
    probed = function.model_copy()
    probed.entrypoint = run
    probed.tool_hooks = _await_in_hooks(function.tool_hooks)
    return probed


def _await_in_hooks(hooks: Sequence[Any] | None) -> list[Any] | None:
    """Return hooks that can be around a probe, which is asynchronous where the user's function need not be."""
    return (
        None if hooks is None else [hook if iscoroutinefunction(hook) else _run_hook_in_thread(hook) for hook in hooks]
    )


def _run_hook_in_thread(hook: Any) -> Any:
    def let_block(value: Any) -> Any:
        if not callable(value):
            return value

        @wraps(value)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = value(*args, **kwargs)
            return run_blocking(result) if iscoroutine(result) else result

        return call

    @wraps(hook)
    async def run(**arguments: Any) -> Any:
        # What a hook gets under one of these names is the function, or the next hook.
        names = ("function", "func", "function_call")
        blocking = {name: let_block(value) if name in names else value for name, value in arguments.items()}
        return await asyncio.to_thread(hook, **blocking)

    return run


def _strip_validation(entrypoint: Any) -> Any:
    """Return the user's function without the framework's validation, which goes around the probe instead."""
    # A user's decorator has the attributes of what it wraps, but not its module.
    while getattr(entrypoint, "__globals__", {}).get("__name__", "").startswith("pydantic."):
        entrypoint = entrypoint.raw_function
    return entrypoint


def _resolve_annotations(body: Any) -> dict[str, Any]:
    """Return the types of the parameters of *body*, as written where one of them cannot be resolved."""
    try:
        return get_type_hints(body, include_extras=True)
    except Exception:
        return dict(getattr(body, "__annotations__", {}))


def _signature_with_call(body: Any) -> Any:
    """Return the signature of *body* with the parameter for the framework's call."""
    own_signature = signature(body)
    call = Argument(CALL_PARAMETER, Argument.KEYWORD_ONLY, default=None, annotation=FunctionCall)
    parameters = [
        parameter for parameter in own_signature.parameters.values() if parameter.kind is not Argument.VAR_KEYWORD
    ]
    var_keyword = [
        parameter for parameter in own_signature.parameters.values() if parameter.kind is Argument.VAR_KEYWORD
    ]
    return own_signature.replace(parameters=[*parameters, call, *var_keyword])


def _parameter_schemas(function: Function) -> dict[str, Any]:
    json_schema = function.to_dict().get("parameters") or {}
    if not json_schema.get("properties"):
        copy = function.model_copy()
        copy.process_entrypoint()
        json_schema = copy.parameters
    properties: dict[str, Any] = json_schema.get("properties", {})
    return {name: part for name, part in properties.items() if name != CALL_PARAMETER}


def _to_spec(function: Function, agent: str, hooks: Sequence[Any]) -> ToolSpec:
    arguments = signature(function.entrypoint).parameters if function.entrypoint is not None else {}
    annotations = _resolve_annotations(_strip_validation(function.entrypoint))
    return ToolSpec(
        name=function.name,
        description=function.description or "",
        parameters={
            name: _to_parameter(part, arguments.get(name), annotations.get(name))
            for name, part in _parameter_schemas(function).items()
        },
        approval="always" if function.requires_confirmation else "never",
        agent=agent,
        # The framework answers a question to the person with what was filled in, and runs no body.
        guarded=bool(hooks or function.tool_hooks or _asks_person(function)),
        place=show_place(function.entrypoint),
    )


def _asks_person(function: Function) -> bool:
    return getattr(_strip_validation(function.entrypoint), "__module__", "").startswith("agno.tools.user_")


def _to_parameter(json_schema: dict[str, Any], argument: Any, annotation: Any) -> Parameter:
    default = None if argument is None or argument.default is Argument.empty else argument.default
    required = argument is None or argument.default is Argument.empty
    return Parameter(
        type=read_type(json_schema),
        required=required,
        default=default,
        constraints=_read_constraints(annotation) if annotation is not None else None,
    )


def _read_constraints(annotation: Any) -> Mapping[str, Any] | None:
    """Return what the framework validates, which is more than the model sees: limits of numbers are not shown to it."""
    try:
        described = TypeAdapter(annotation).json_schema()
    # A type that only the framework itself fills in has no schema.
    except (PydanticUserError, NameError):
        return None
    definitions = described.pop("$defs", {})
    return read_parameters({"properties": {"value": described}, "$defs": definitions})["value"].constraints
