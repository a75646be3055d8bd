"""Probes around a person's own tools: what is run is recorded, everything else of the tool stays as it is.

A person's own agents: probes around their tools, the scripted model in place of theirs.

Tools are reached from several places (agents, handoffs, agents that are tools), and only the agent objects lead to all
of them. So the probes are put into these objects, and taken out again when the last session lets go. The model needs no
place in them: `RunConfig.model` stands above the models of all agents of a run and of the runs nested in it.
"""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import inspect
import json
from collections.abc import Iterable, Iterator
from typing import Any, cast, get_type_hints

from agents import Agent, FunctionTool, Handoff, HostedMCPTool, Model, RunConfig, Tool, function_tool
from agents.function_schema import function_schema
from agents.mcp import MCPServer, MCPUtil
from agents.run import CallModelData, ModelInputData
from agents.tool_context import ToolContext
from mcp.types import CallToolResult
from pydantic_core import to_jsonable_python

from ...contract import MAIN, Approval, Attachment, Limits, Parameter, ToolSpec
from ...kit.context import current_world
from .agents import AgentGraph
from .messages import parse_arguments
from .model import ASKING_AGENT, DispatchingModel, ModelFactory
from .tools import set_context_signature


def probe_tool(tool: Tool, label: str, *, stub: bool) -> Tool:
    """
    Gives a copy of *tool* whose body is run by the world: a *stub* does what the scenario says, any other tool what it
    does by itself.

    An agent that is a tool, and a tool that the provider runs, have no body here and stay as they are.
    """
    if not isinstance(tool, FunctionTool) or getattr(tool, "_agent_instance", None) is not None:
        return tool
    body = getattr(tool, "__wrapped__", None)
    copied = copy.copy(tool)
    copied.on_invoke_tool = (
        _build_raw_invoker(tool, label, stub) if body is None else _build_invoker(tool, body, label, stub)
    )
    # Copying binds the new invoker to the tool that it belongs to, whose failure policy it follows.
    return copy.copy(copied)


def _build_invoker(tool: FunctionTool, body: Any, label: str, stub: bool) -> Any:
    """Gives the invoker of a function tool with *body*'s signature, so that the SDK validates as it did."""
    takes_context = function_schema(body, name_override=tool.name, strict_json_schema=False).takes_context
    signature = _read_body_signature(body, takes_context)

    async def probe(context: ToolContext[Any], *given: Any, **named: Any) -> Any:
        bound = signature.bind(*given, **named).arguments

        async def real() -> Any:
            return await _call_body(body, *((context, *given) if takes_context else given), **named)

        arguments = to_jsonable_python(bound, fallback=repr)
        return await current_world().run(
            tool.name, arguments, context.tool_call_id, agent=label, real=None if stub else real
        )

    set_context_signature(probe, list(signature.parameters.values()))
    return function_tool(probe, name_override=tool.name, use_docstring_info=False, strict_mode=False).on_invoke_tool


def _read_body_signature(body: Any, takes_context: bool) -> inspect.Signature:
    callee = body if inspect.isroutine(body) else type(body).__call__
    hints = get_type_hints(callee, include_extras=True)
    parameters = list(inspect.signature(body).parameters.values())[1 if takes_context else 0 :]
    typed = [one.replace(annotation=hints.get(one.name, one.annotation)) for one in parameters]
    return inspect.Signature(typed)


async def _call_body(body: Any, *given: Any, **named: Any) -> Any:
    """Runs a body as the SDK does: one that blocks in a thread."""
    if inspect.iscoroutinefunction(body):
        return await body(*given, **named)
    result = await asyncio.to_thread(body, *given, **named)
    return await result if inspect.isawaitable(result) else result


def _build_raw_invoker(tool: FunctionTool, label: str, stub: bool) -> Any:
    """Gives the invoker of a tool that was made by hand, whose body gets the model's text and validates it itself."""
    body = tool.on_invoke_tool

    async def probe(context: ToolContext[Any], given: str) -> Any:
        async def real() -> Any:
            return await body(context, given)

        arguments = parse_arguments(given)
        return await current_world().run(
            tool.name,
            arguments if isinstance(arguments, dict) else {"input": arguments},
            context.tool_call_id,
            agent=label,
            real=None if stub else real,
        )

    return probe


class ProbedServer:
    """
    Stands before a person's MCP server; whatever is not a call of a tool is the server's own business.

    It may be connected later than it is probed, so it is not copied.
    """

    def __init__(self, server: MCPServer, label: str, stubs: frozenset[str]) -> None:
        self._server = server
        self._label = label
        self._stubs = stubs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._server, name)

    async def call_tool(self, tool_name: str, arguments: dict[str, Any] | None, **more: Any) -> Any:
        """Runs the tool through the world."""
        given = arguments or {}
        if tool_name in self._stubs:
            value = await current_world().run(tool_name, given, None, agent=self._label)
            text = value if isinstance(value, str) else json.dumps(value)
            return CallToolResult.model_validate({"content": [{"type": "text", "text": text}]})

        async def real() -> Any:
            return await self._server.call_tool(tool_name, arguments, **more)

        return await current_world().run(tool_name, given, None, agent=self._label, real=real)


def attach_agents(attachment: Attachment, limits: Limits, model: ModelFactory) -> AgentGraph:
    """Makes a crew of the agent that a person hands over, or that their factory makes; *model* makes their models."""
    replacement = DispatchingModel(model)
    subject = attachment.subject
    main = subject if isinstance(subject, Agent) else subject(replacement)
    found = dict(_walk_agents(main, MAIN))
    labels = {agent.name: label for agent, label in _labelled_agents(found)}
    tools = tuple(spec for agent, label in _labelled_agents(found) for spec in _read_specs(agent, label, found))
    probes = [_put_probe(agent, label, attachment.stubs) for agent, label in _labelled_agents(found)]
    options = dict(attachment.run_options)
    session = options.pop("session", None)
    options["run_config"] = _build_run_config(options.get("run_config"), replacement, labels)
    if limits.model_replies is not None:
        options["max_turns"] = limits.model_replies

    def release() -> None:
        for probe in probes:
            probe.release()

    agents = {label: agent for agent, label in _labelled_agents(found)} | {
        agent.name: agent for agent, _ in _labelled_agents(found)
    }
    return AgentGraph(
        main=main, agents=agents, labels=labels, tools=tools, options=options, session=session, release=release
    )


# --- finding ----------------------------------------------------------------------------------------------------------

AgentsById = dict[int, tuple[Agent[Any], str]]


def _labelled_agents(found: AgentsById) -> Iterable[tuple[Agent[Any], str]]:
    return found.values()


def _walk_agents(
    agent: Agent[Any], label: str, seen: set[int] | None = None
) -> Iterator[tuple[int, tuple[Agent[Any], str]]]:
    """
    Gives every agent that a run of *agent* can reach, with what the harness calls it.

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
        inner = getattr(tool, "_agent_instance", None)
        if inner is not None:
            yield from _walk_agents(inner, inner.name, seen)


def _handoff_target(handoff: Any) -> Agent[Any] | None:
    reference = getattr(handoff, "_agent_ref", None)
    return reference() if reference is not None else None


def _read_specs(agent: Agent[Any], label: str, found: AgentsById) -> Iterator[ToolSpec]:
    for handoff in agent.handoffs:
        target = handoff if isinstance(handoff, Agent) else _handoff_target(handoff)
        if target is not None:
            name = Handoff.default_tool_name(target) if isinstance(handoff, Agent) else handoff.tool_name
            yield ToolSpec(name=name, agent=label, hands_over_to=found[id(target)][1])
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            inner = getattr(tool, "_agent_instance", None)
            yield ToolSpec(
                name=tool.name,
                description=tool.description,
                parameters=_to_parameters(tool.params_json_schema),
                approval=_to_approval(tool.needs_approval),
                agent=label,
                runs=None if inner is None else inner.name,
            )
        elif isinstance(tool, HostedMCPTool):
            yield from _read_hosted_specs(tool, label)
    for server in agent.mcp_servers:
        # A server that has not listed its tools yet keeps them to itself until the first run.
        for listed in server.cached_tools or ():
            yield _to_listed_spec(server, listed, agent, label)


def _to_listed_spec(server: MCPServer, listed: Any, agent: Agent[Any], label: str) -> ToolSpec:
    tool = MCPUtil.to_function_tool(listed, server, False, agent)
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=_to_parameters(tool.params_json_schema),
        approval=_to_approval(tool.needs_approval),
        kind="mcp",
        server=server.name,
        agent=label,
    )


def _to_approval(needs_approval: Any) -> Approval:
    # What a person's own policy will say is not known before it is asked.
    return "always" if needs_approval is True else "never"


def _to_parameters(schema: dict[str, Any]) -> dict[str, Parameter]:
    required = schema.get("required", [])
    return {
        name: Parameter(type=_to_type(one), required=name in required, default=one.get("default"))
        for name, one in schema.get("properties", {}).items()
    }


def _to_type(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    choices = [one.get("type") for one in schema.get("anyOf", []) if one.get("type") not in (None, "null")]
    return str(choices[0]) if choices else "object"


def _read_hosted_specs(tool: HostedMCPTool, label: str) -> Iterator[ToolSpec]:
    config: dict[str, Any] = dict(tool.tool_config)
    gate = config.get("require_approval")
    lists = gate if isinstance(gate, dict) else {}
    gated = list(lists.get("always", {}).get("tool_names", []))
    ungated = list(lists.get("never", {}).get("tool_names", []))
    allowed = config.get("allowed_tools") or []
    for name in dict.fromkeys([*gated, *ungated, *allowed]):
        free = name in ungated or gate == "never"
        yield ToolSpec(
            name=name,
            kind="hosted_mcp",
            server=config["server_label"],
            approval="never" if free else "always",
            agent=label,
        )


# --- probing ----------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(slots=True)
class _AgentProbe:
    """The probes in one agent object, and what was there before; shared by all sessions that use the object."""

    agent: Agent[Any]
    tools: list[Any]
    servers: list[Any]
    users: int = 0

    def release(self) -> None:
        self.users -= 1
        if self.users == 0:
            self.agent.tools, self.agent.mcp_servers = self.tools, self.servers
            del _PROBES[id(self.agent)]


_PROBES: dict[int, _AgentProbe] = {}


def _put_probe(agent: Agent[Any], label: str, stubs: frozenset[str]) -> _AgentProbe:
    probe = _PROBES.get(id(agent))
    if probe is None:
        probe = _PROBES[id(agent)] = _AgentProbe(agent, agent.tools, agent.mcp_servers)
        agent.tools = [probe_tool(tool, label, stub=tool.name in stubs) for tool in probe.tools]
        agent.mcp_servers = [cast("MCPServer", ProbedServer(server, label, stubs)) for server in probe.servers]
    probe.users += 1
    return probe


# --- running ----------------------------------------------------------------------------------------------------------


def _build_run_config(given: Any, model: Model, labels: dict[str, str]) -> RunConfig:
    """Gives the person's run configuration with another model, which is told by a filter who asks."""
    config = RunConfig(**given) if isinstance(given, dict) else given or RunConfig()
    own = config.call_model_input_filter

    async def note(data: CallModelData[Any]) -> ModelInputData:
        ASKING_AGENT.set(labels.get(data.agent.name, data.agent.name))
        if own is None:
            return data.model_data
        filtered = own(data)
        return filtered if isinstance(filtered, ModelInputData) else await filtered

    return dataclasses.replace(config, model=model, tracing_disabled=True, call_model_input_filter=note)
