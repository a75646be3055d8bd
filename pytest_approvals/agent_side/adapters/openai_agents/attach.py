"""A user's own agents, with probes around their tools and the scripted model in place of theirs.

Tools are reached from several places (agents, handoffs, agents that are tools), and only the agent objects lead to all
of them. So the probes are put into these objects, and taken out again with the last session. The model needs no place
in them: `RunConfig.model` overrides the models of all agents of a run and of the runs nested in it. A probe records
what is executed; everything else of a tool stays as it is.

Nothing leads to the agents that bodies of tools run, so the methods of the SDK's runner are replaced, and probe them
when they run.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from functools import partial, wraps
from typing import Any, cast, get_type_hints

from agents import Agent, FunctionTool, Handoff, HostedMCPTool, Model, RunConfig, Tool, function_tool
from agents.function_schema import function_schema
from agents.mcp import MCPServer, MCPUtil
from agents.run import AgentRunner, CallModelData, ModelInputData
from agents.tool_context import ToolContext
from mcp.types import CallToolResult
from pydantic_core import to_jsonable_python

from ...contract import MAIN, Approval, Attachment, Condition, Limits, ToolSpec
from ...kit.context import current_world
from ...kit.probes import Undo, patch_shared, undo_all
from ...kit.tool_schema import describe_arguments, parse_arguments, read_effects, read_parameters, show_place
from .agents import AgentGraph
from .model import ASKING_AGENT, DispatchingModel, ModelFactory
from .tools import set_context_signature

_IN_BODY: ContextVar[_AgentProbes | None] = ContextVar(
    "probes of the agent in the body of whose tool this is", default=None
)


def probe_tool(tool: Tool, label: str, probes: _AgentProbes) -> Tool:
    """Return a copy of *tool* whose body the world runs: a stub as the scenario says, any other tool for real.

    An agent that is a tool, and a tool that the provider runs, have no body here and stay as they are.
    """
    if not isinstance(tool, FunctionTool) or getattr(tool, "_agent_instance", None) is not None:
        return tool
    body = getattr(tool, "__wrapped__", None)
    copied = copy.copy(tool)
    copied.on_invoke_tool = (
        _build_raw_invoker(tool, label, probes) if body is None else _build_invoker(tool, body, label, probes)
    )
    # Copying again binds the new invoker to its own tool, whose failure policy it follows.
    return copy.copy(copied)


def _build_invoker(tool: FunctionTool, body: Any, label: str, probes: _AgentProbes) -> Any:
    """Return an invoker with *body*'s signature, so that the SDK validates arguments as it did."""
    takes_context = function_schema(body, name_override=tool.name, strict_json_schema=False).takes_context
    signature = _read_body_signature(body, takes_context)

    async def probe(context: ToolContext[Any], *positional: Any, **named: Any) -> Any:
        bound = signature.bind(*positional, **named).arguments

        async def real() -> Any:
            return await _call_body(body, *((context, *positional) if takes_context else positional), **named)

        arguments = to_jsonable_python(describe_arguments(bound), fallback=repr)
        return await current_world().run(
            tool.name, arguments, context.tool_call_id, agent=label, real=probes.enter(tool.name, real)
        )

    set_context_signature(probe, list(signature.parameters.values()))
    return function_tool(probe, name_override=tool.name, use_docstring_info=False, strict_mode=False).on_invoke_tool


def _read_body_signature(body: Any, takes_context: bool) -> inspect.Signature:
    # The annotations of a callable object are those of its `__call__`, which `get_type_hints` does not look for.
    callee = body if inspect.isroutine(body) else type(body).__call__
    hints = get_type_hints(callee, include_extras=True)
    parameters = list(inspect.signature(body).parameters.values())[1 if takes_context else 0 :]
    return inspect.Signature(
        [parameter.replace(annotation=hints.get(parameter.name, parameter.annotation)) for parameter in parameters]
    )


async def _call_body(body: Any, *positional: Any, **named: Any) -> Any:
    """Run a body as the SDK does: a synchronous one in a thread."""
    if inspect.iscoroutinefunction(body):
        return await body(*positional, **named)
    result = await asyncio.to_thread(body, *positional, **named)
    return await result if inspect.isawaitable(result) else result


def _build_raw_invoker(tool: FunctionTool, label: str, probes: _AgentProbes) -> Any:
    """Return an invoker of a tool that was made by hand, whose body gets the model's text and validates it itself."""
    body = tool.on_invoke_tool

    async def probe(context: ToolContext[Any], text: str) -> Any:
        async def real() -> Any:
            return await body(context, text)

        arguments = parse_arguments(text)
        return await current_world().run(
            tool.name,
            arguments if isinstance(arguments, dict) else {"input": arguments},
            context.tool_call_id,
            agent=label,
            real=probes.enter(tool.name, real),
        )

    return probe


class ProbedServer:
    """Probe in front of a user's MCP server; everything but calls of tools goes to the server itself.

    It may be connected later than it is probed, so it is not copied.
    """

    def __init__(self, server: MCPServer, label: str, stubs: frozenset[str]) -> None:
        self._server = server
        self._label = label
        self._stubs = stubs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def call_tool(self, tool_name: str, arguments: dict[str, Any] | None, **more: Any) -> Any:
        """Run the tool through the world."""
        stated = arguments or {}
        if tool_name in self._stubs:
            value = await current_world().run(tool_name, stated, None, agent=self._label)
            text = value if isinstance(value, str) else json.dumps(value)
            return CallToolResult.model_validate({"content": [{"type": "text", "text": text}]})

        async def real() -> Any:
            return await self._server.call_tool(tool_name, arguments, **more)

        return await current_world().run(tool_name, stated, None, agent=self._label, real=real)


def attach_agents(attachment: Attachment, limits: Limits, model: ModelFactory) -> AgentGraph:
    """Return the agents that a user hands over, or that their factory makes; *model* makes their models."""
    probes = _AgentProbes(attachment, DispatchingModel(model))
    subject = attachment.subject
    try:
        main = subject if isinstance(subject, Agent) else subject(probes.model)
        labelled = dict(_walk_agents(main, MAIN))
        # Before the probes hide the functions.
        stubbed = _list_hosted_stubs(attachment.stubs, [agent for agent, _ in labelled.values()])
        tools = tuple(
            spec for agent, label in labelled.values() for spec in _read_specs(agent, label, labelled, stubbed)
        )
        probes.probe_agents(main, MAIN)
    except BaseException:
        probes.release()
        raise
    options = dict(attachment.run_options)
    # `CallerState` adds it to each run, and must know of it: a run with a session takes the new message alone.
    session = options.pop("session", None)
    edits = _edits_history(options.get("run_config"), [agent for agent, _ in labelled.values()])
    options["run_config"] = probes.build_run_config(options.get("run_config"))
    if limits.model_replies is not None:
        options["max_turns"] = limits.model_replies

    agents = {label: agent for agent, label in labelled.values()} | {
        agent.name: agent for agent, _ in labelled.values()
    }
    return AgentGraph(
        main=main,
        agents=agents,
        labels=probes.labels,
        tools=tools,
        options=options,
        session=session,
        earlier_turns=0 if edits else None,
        release=probes.release,
    )


_EDITING = ("call_model_input_filter", "session_input_callback", "session_settings", "handoff_input_filter")
"""Settings of a run that change what the model is told."""


def _edits_history(config: Any, agents: Iterable[Agent[Any]]) -> bool:
    """Return whether the user's own settings or code may change what the model is told of earlier turns."""
    chosen = config.get if isinstance(config, dict) else partial(getattr, config)
    return any(chosen(name, None) is not None for name in _EDITING) or any(
        getattr(handoff, "input_filter", None) is not None for agent in agents for handoff in agent.handoffs
    )


# --- agents and tools -------------------------------------------------------------------------------------------------

AgentsById = dict[int, tuple[Agent[Any], str]]


def _walk_agents(
    agent: Agent[Any], label: str, seen: set[int] | None = None
) -> Iterator[tuple[int, tuple[Agent[Any], str]]]:
    """Yield every agent that a run of *agent* can reach, with the harness's name of it.

    Only the agent that the caller talks to first has another name than its own.
    """
    seen = set() if seen is None else seen
    if id(agent) in seen:
        return
    seen.add(id(agent))
    yield id(agent), (agent, label)
    for handoff in agent.handoffs:
        target = handoff if isinstance(handoff, Agent) else _handoff_target(handoff)
        if target is not None:
            yield from _walk_agents(target, target.name, seen)
    for tool in agent.tools:
        # An internal field of the SDK, and the only way from the tool to its agent.
        inner = getattr(tool, "_agent_instance", None)
        if inner is not None:
            yield from _walk_agents(inner, inner.name, seen)


def _handoff_target(handoff: Any) -> Agent[Any] | None:
    # Internal and weak; only handoffs that the SDK's `handoff()` made have it.
    reference = getattr(handoff, "_agent_ref", None)
    return reference() if reference is not None else None


def _read_specs(agent: Agent[Any], label: str, labelled: AgentsById, stubbed: Sequence[str]) -> Iterator[ToolSpec]:
    for handoff in agent.handoffs:
        target = handoff if isinstance(handoff, Agent) else _handoff_target(handoff)
        if target is not None:
            name, schema = (
                (Handoff.default_tool_name(target), {})
                if isinstance(handoff, Agent)
                else (handoff.tool_name, handoff.input_json_schema)
            )
            yield ToolSpec(
                name=name,
                parameters=read_parameters(schema),
                agent=label,
                hands_over_to=labelled[id(target)][1],
            )
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            inner = getattr(tool, "_agent_instance", None)
            yield ToolSpec(
                name=tool.name,
                description=tool.description,
                parameters=read_parameters(tool.params_json_schema),
                approval=_to_approval(tool.needs_approval),
                agent=label,
                runs=None if inner is None else inner.name,
                place=show_place(_find_function(tool)),
                # An extractor tells something of what the inner agent has answered.
                guarded=bool(
                    tool.tool_input_guardrails
                    or tool.tool_output_guardrails
                    or _read_closure(tool, "custom_output_extractor") is not None
                ),
            )
        elif isinstance(tool, HostedMCPTool):
            yield from _read_hosted_specs(tool, label, stubbed)
    for server in agent.mcp_servers:
        # A server that has not listed its tools yet does so in the first run.
        for listed in server.cached_tools or ():
            yield _to_listed_spec(server, listed, agent, label)


def _find_function(tool: FunctionTool) -> Any:
    """Return the function that `function_tool` has made a tool of; only closures of the SDK hold it."""
    invoker: Any = tool.on_invoke_tool
    return _read_closure(tool, "the_func") or getattr(invoker, "_invoke_tool_impl", invoker)


def _read_closure(tool: FunctionTool, name: str) -> Any:
    """Return what the SDK's invoker of a tool calls *name*; None if it has nothing of that name."""
    invoker: Any = tool.on_invoke_tool
    invoke = getattr(invoker, "_invoke_tool_impl", invoker)
    names = getattr(getattr(invoke, "__code__", None), "co_freevars", ())
    return invoke.__closure__[names.index(name)].cell_contents if name in names else None


def _to_listed_spec(server: MCPServer, listed: Any, agent: Agent[Any], label: str) -> ToolSpec:
    tool = MCPUtil.to_function_tool(listed, server, False, agent)
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=read_parameters(tool.params_json_schema),
        approval=_to_approval(tool.needs_approval),
        kind="mcp",
        server=server.name,
        agent=label,
        effects=read_effects(listed.annotations),
    )


def _to_approval(needs_approval: Any) -> Approval:
    # The result of a user's own policy is not known before it is asked.
    return "always" if needs_approval is True else "never"


def _list_hosted_stubs(stubs: Iterable[str], agents: Sequence[Agent[Any]]) -> list[str]:
    """Return the stubs of tools that only a hosted server can have; none if a server may list them later on."""
    known: set[str] = set()
    for agent in agents:
        if any(server.cached_tools is None for server in agent.mcp_servers):
            return []
        known |= {tool.name for tool in agent.tools}
        known |= {listed.name for server in agent.mcp_servers for listed in server.cached_tools or ()}
        hosted = (tool for tool in agent.tools if isinstance(tool, HostedMCPTool))
        known |= {name for tool in hosted for name in _list_hosted_names(tool.tool_config)}
    return sorted(set(stubs) - known)


def _list_hosted_names(config: Any) -> list[str]:
    """Return the names of tools that the settings of a hosted server say."""
    gate, allowed = config.get("require_approval"), config.get("allowed_tools") or []
    lists = [part.get("tool_names", []) for part in gate.values()] if isinstance(gate, dict) else []
    named = allowed.get("tool_names", []) if isinstance(allowed, dict) else allowed
    return list(dict.fromkeys([*(name for part in lists for name in part), *named]))


def _read_hosted_specs(tool: HostedMCPTool, label: str, stubbed: Sequence[str]) -> Iterator[ToolSpec]:
    """Yield the tools of a hosted server: those that its settings name, or else those of which a stub knows."""
    config: dict[str, Any] = dict(tool.tool_config)
    gate = config.get("require_approval")
    lists = gate if isinstance(gate, dict) else {}
    ungated = list(lists.get("never", {}).get("tool_names", []))
    for name in _list_hosted_names(config) or stubbed:
        free = name in ungated or gate == "never"
        # The application's own callback answers within the run.
        asked: Approval = Condition() if tool.on_approval_request is not None else "always"
        yield ToolSpec(
            name=name,
            kind="hosted_mcp",
            server=config["server_label"],
            approval="never" if free else asked,
            agent=label,
        )


# --- probing ----------------------------------------------------------------------------------------------------------


class _AgentProbes:
    """Probes in the agents of one attachment.

    Attributes:
        model: The model of all of them.
        labels: The harness's names of agents, by the name that requests show.
    """

    def __init__(self, attachment: Attachment, model: Model) -> None:
        self.model = model
        self.labels: dict[str, str] = {}
        self._stubs = attachment.stubs
        self._probed: set[int] = set()
        methods = {name: _wrap_run(getattr(AgentRunner, name)) for name in ("run", "run_streamed")}
        self._undos: list[Undo] = [patch_shared(AgentRunner, lambda: methods, place=setattr)]

    def probe_agents(self, agent: Agent[Any], label: str) -> None:
        """Put probes into *agent*, which the harness calls *label*, and all agents that a run of it can reach."""
        labelled = dict(_walk_agents(agent, label))
        self.labels.update({each.name: own for each, own in labelled.values() if id(each) not in self._probed})
        for each, own in labelled.values():
            if id(each) not in self._probed:
                self._probed.add(id(each))
                self._undos.append(self._probe_agent(each, own))

    def _probe_agent(self, agent: Agent[Any], label: str) -> Undo:
        """Put probes into one agent object, which all sessions that use the object share."""

        def build() -> dict[str, Any]:
            servers = [cast("MCPServer", ProbedServer(server, label, self._stubs)) for server in agent.mcp_servers]
            return {"tools": [probe_tool(tool, label, self) for tool in agent.tools], "mcp_servers": servers}

        return patch_shared(agent, build)

    def enter(self, tool: str, body: Callable[[], Awaitable[Any]]) -> Callable[[], Awaitable[Any]] | None:
        """Return the body of a tool, which tells the agents that it runs of the probes; None for a stub."""

        async def entered() -> Any:
            token = _IN_BODY.set(self)
            try:
                return await body()
            finally:
                _IN_BODY.reset(token)

        return None if tool in self._stubs else entered

    def build_run_config(self, own_config: Any) -> RunConfig:
        """Return the user's run configuration with another model, and a filter that notes which agent asks."""
        config = RunConfig(**own_config) if isinstance(own_config, dict) else own_config or RunConfig()
        own_filter = config.call_model_input_filter

        async def note(data: CallModelData[Any]) -> ModelInputData:
            ASKING_AGENT.set(self.labels.get(data.agent.name, data.agent.name))
            if own_filter is None:
                return data.model_data
            filtered = own_filter(data)
            return filtered if isinstance(filtered, ModelInputData) else await filtered

        return dataclasses.replace(config, model=self.model, tracing_disabled=True, call_model_input_filter=note)

    def release(self) -> None:
        """Take all probes out."""
        undo_all(self._undos)()
        self._undos = []


def _wrap_run(original: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(original)
    def run(runner: AgentRunner, starting_agent: Any, *args: Any, **options: Any) -> Any:
        probes = _IN_BODY.get()
        if probes is not None:
            probes.probe_agents(starting_agent, starting_agent.name)
            options["run_config"] = probes.build_run_config(options.get("run_config"))
        return original(runner, starting_agent, *args, **options)

    return run
