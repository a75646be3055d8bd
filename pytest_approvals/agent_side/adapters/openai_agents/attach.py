"""
A person's own agents: probes around their tools, the scripted model in place of theirs.

Tools are reached from several places (agents, handoffs, agents that are tools), and only the agent objects lead to all
of them. So the probes are put into these objects, and taken out again when the last session lets go. The model needs no
place in them: `RunConfig.model` stands above the models of all agents of a run and of the runs nested in it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Any, cast

from agents import Agent, FunctionTool, Handoff, HostedMCPTool, Model, RunConfig
from agents.mcp import MCPServer, MCPUtil
from agents.run import CallModelData, ModelInputData

from ...contract import MAIN, Approval, Attachment, Limits, Parameter, ToolSpec
from .clients import ASKING, ModelOf, ModelOfAll
from .crew import Crew
from .probes import ProbedServer, probed


def attached_crew(attachment: Attachment, limits: Limits, model: ModelOf) -> Crew:
    """Makes a crew of the agent that a person hands over, or that their factory makes; *model* makes their models."""
    replacement = ModelOfAll(model)
    subject = attachment.subject
    main = subject if isinstance(subject, Agent) else subject(replacement)
    found = dict(_reached(main, MAIN))
    labels = {agent.name: label for agent, label in _pairs(found)}
    tools = tuple(spec for agent, label in _pairs(found) for spec in _specs(agent, label, found))
    probes = [_probe(agent, label, attachment.stubs) for agent, label in _pairs(found)]
    options = dict(attachment.run_options)
    session = options.pop("session", None)
    options["run_config"] = _run_config(options.get("run_config"), replacement, labels)
    if limits.model_replies is not None:
        options["max_turns"] = limits.model_replies

    def release() -> None:
        for probe in probes:
            probe.release()

    agents = {label: agent for agent, label in _pairs(found)} | {agent.name: agent for agent, _ in _pairs(found)}
    return Crew(main=main, agents=agents, labels=labels, tools=tools, options=options, session=session, release=release)


# --- finding ----------------------------------------------------------------------------------------------------------

Found = dict[int, tuple[Agent[Any], str]]


def _pairs(found: Found) -> Iterable[tuple[Agent[Any], str]]:
    return found.values()


def _reached(
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
        target = handoff if isinstance(handoff, Agent) else _target(handoff)
        if target is not None:
            yield from _reached(target, target.name, seen)
    for tool in agent.tools:
        inner = getattr(tool, "_agent_instance", None)
        if inner is not None:
            yield from _reached(inner, inner.name, seen)


def _target(handoff: Any) -> Agent[Any] | None:
    reference = getattr(handoff, "_agent_ref", None)
    return reference() if reference is not None else None


def _specs(agent: Agent[Any], label: str, found: Found) -> Iterator[ToolSpec]:
    for handoff in agent.handoffs:
        target = handoff if isinstance(handoff, Agent) else _target(handoff)
        if target is not None:
            name = Handoff.default_tool_name(target) if isinstance(handoff, Agent) else handoff.tool_name
            yield ToolSpec(name=name, agent=label, hands_over_to=found[id(target)][1])
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            inner = getattr(tool, "_agent_instance", None)
            yield ToolSpec(
                name=tool.name,
                description=tool.description,
                parameters=_parameters(tool.params_json_schema),
                approval=_marked(tool.needs_approval),
                agent=label,
                runs=None if inner is None else inner.name,
            )
        elif isinstance(tool, HostedMCPTool):
            yield from _hosted_specs(tool, label)
    for server in agent.mcp_servers:
        # A server that has not listed its tools yet keeps them to itself until the first run.
        for listed in server.cached_tools or ():
            yield _listed_spec(server, listed, agent, label)


def _listed_spec(server: MCPServer, listed: Any, agent: Agent[Any], label: str) -> ToolSpec:
    tool = MCPUtil.to_function_tool(listed, server, False, agent)
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=_parameters(tool.params_json_schema),
        approval=_marked(tool.needs_approval),
        kind="mcp",
        server=server.name,
        agent=label,
    )


def _marked(needs_approval: Any) -> Approval:
    # What a person's own policy will say is not known before it is asked.
    return "always" if needs_approval is True else "never"


def _parameters(schema: dict[str, Any]) -> dict[str, Parameter]:
    required = schema.get("required", [])
    return {
        name: Parameter(type=_type(one), required=name in required, default=one.get("default"))
        for name, one in schema.get("properties", {}).items()
    }


def _type(schema: dict[str, Any]) -> str:
    if isinstance(schema.get("type"), str):
        return str(schema["type"])
    choices = [one.get("type") for one in schema.get("anyOf", []) if one.get("type") not in (None, "null")]
    return str(choices[0]) if choices else "object"


def _hosted_specs(tool: HostedMCPTool, label: str) -> Iterator[ToolSpec]:
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
class _Probe:
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


_PROBES: dict[int, _Probe] = {}


def _probe(agent: Agent[Any], label: str, stubs: frozenset[str]) -> _Probe:
    probe = _PROBES.get(id(agent))
    if probe is None:
        probe = _PROBES[id(agent)] = _Probe(agent, agent.tools, agent.mcp_servers)
        agent.tools = [probed(tool, label, stub=tool.name in stubs) for tool in probe.tools]
        agent.mcp_servers = [cast("MCPServer", ProbedServer(server, label, stubs)) for server in probe.servers]
    probe.users += 1
    return probe


# --- running ----------------------------------------------------------------------------------------------------------


def _run_config(given: Any, model: Model, labels: dict[str, str]) -> RunConfig:
    """Gives the person's run configuration with another model, which is told by a filter who asks."""
    config = RunConfig(**given) if isinstance(given, dict) else given or RunConfig()
    own = config.call_model_input_filter

    async def note(data: CallModelData[Any]) -> ModelInputData:
        ASKING.set(labels.get(data.agent.name, data.agent.name))
        if own is None:
            return data.model_data
        filtered = own(data)
        return filtered if isinstance(filtered, ModelInputData) else await filtered

    return dataclasses.replace(config, model=model, tracing_disabled=True, call_model_input_filter=note)
