"""Agents of the SDK built from tool specs, each with a model of its own, and how a session runs them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from agents import (
    Agent,
    AgentOutputSchema,
    FunctionTool,
    GuardrailFunctionOutput,
    Handoff,
    InputGuardrail,
    OutputGuardrail,
    RunConfig,
    Tool,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolOutputGuardrail,
    handoff,
)

from ...contract import MAIN, Blueprint, Parameter, ToolSpec
from ...kit.probes import SharedAgents
from ...kit.tool_schema import build_fields_model
from .model import ModelFactory
from .tools import build_hosted_tool, build_mcp_client, build_policy, build_tool


def add_guardrails(agent: Agent[Any]) -> None:
    """Put guardrails that pass everything before and behind *agent*, and each of its tools that runs here."""
    agent.input_guardrails = [InputGuardrail(guardrail_function=_pass_guardrail, name="input")]
    agent.output_guardrails = [OutputGuardrail(guardrail_function=_pass_guardrail, name="output")]
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            tool.tool_input_guardrails = [ToolInputGuardrail(guardrail_function=_allow_tool, name="before")]
            tool.tool_output_guardrails = [ToolOutputGuardrail(guardrail_function=_allow_tool, name="behind")]


async def _pass_guardrail(context: Any, agent: Any, content: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


async def _allow_tool(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.allow()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph(SharedAgents):
    """The agents that sessions share, and how they are run.

    Attributes:
        main: The agent that the caller talks to.
        agents: All agents, by the name that requests show.
        labels: The harness's names of agents, by the name that requests show.
        tools: The tools of all agents.
        clients: The MCP clients that are connected for a turn.
        options: Keyword arguments for `Runner.run`.
        session: The session that a user hands over with their agent.
        earlier_turns: How many earlier messages an attached agent lets its model see for sure; None for all.
    """

    main: Agent[Any]
    agents: dict[str, Agent[Any]]
    labels: dict[str, str] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    clients: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    session: Any = None
    earlier_turns: int | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[None]:
        """Connect the MCP clients of agents that were built here, inside the block."""
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client)
            yield

    def label(self, name: str) -> str:
        """Return the harness's name of the agent that the SDK calls *name*."""
        return self.labels.get(name, name)

    def key(self, agent: Agent[Any]) -> str:
        """Return the key of *agent* in `agents`."""
        # Two agents may have one name in the SDK, so only identity tells them apart.
        return next(name for name, candidate in self.agents.items() if candidate is agent)


def build_agents(blueprint: Blueprint, model: ModelFactory) -> AgentGraph:
    """Build the agents that *blueprint* describes, each with the model that *model* makes for it.

    Options: `agent_names` gives them other names than the harness has for them, possibly one twice; `guardrails: allow`
    puts guardrails around all agents and tools; `context` is handed to each run, as the application's own context;
    `server_gate` says in which form the gate of a connected server is configured (see `build_mcp_client`). The option
    `item_ids: anew`, a provider that numbers the items of its replies anew in every conversation, is the model's.
    """
    sdk_names = {**blueprint.options.get("agent_names", {}), **blueprint.names}
    form = str(blueprint.options.get("server_gate", "names"))
    agents = {
        name: Agent[Any](name=sdk_names.get(name, name), model=model(name))
        for name in _list_agent_names(blueprint.tools)
    }
    # After all agents exist: tools and handoffs hold agents, which may hand over to each other.
    for name, agent in agents.items():
        own = [spec for spec in blueprint.tools if spec.agent == name]
        agent.tools = _build_tools(own, agents)
        agent.handoffs = [
            _build_handoff(spec, agents[spec.hands_over_to]) for spec in own if spec.hands_over_to is not None
        ]
        offered = dict(_group_by_server(own, "mcp"))
        agent.mcp_servers = [
            build_mcp_client(address, offered[address.name], form)
            for address in blueprint.servers
            if address.agent == name
        ]
    if blueprint.answer:
        # Whoever has taken the conversation over answers for the main agent.
        answer = _build_answer_schema(blueprint.answer)
        for name in _list_agents_handed_over_to(blueprint.tools):
            agents[name].output_type = answer
    if blueprint.options.get("guardrails") == "allow":
        for agent in agents.values():
            add_guardrails(agent)
    clients = tuple(client for agent in agents.values() for client in agent.mcp_servers)
    return AgentGraph(
        main=agents[MAIN],
        agents=agents,
        labels={sdk_name: name for name, sdk_name in blueprint.names.items()},
        tools=blueprint.tools,
        clients=clients,
        options=_build_options(blueprint),
    )


def _build_options(blueprint: Blueprint) -> dict[str, Any]:
    # Tracing is on by default, and sends what runs did to the provider.
    options: dict[str, Any] = {"run_config": RunConfig(tracing_disabled=True)}
    if blueprint.limits.model_replies is not None:
        options["max_turns"] = blueprint.limits.model_replies
    if "context" in blueprint.options:
        options["context"] = dict(blueprint.options["context"])
    return options


def _list_agents_handed_over_to(specs: Sequence[ToolSpec]) -> tuple[str, ...]:
    """Return the main agent, and those that have the conversation after one or more hand-overs."""
    names = [MAIN]
    for name in names:
        targets = (spec.hands_over_to for spec in specs if spec.agent == name and spec.hands_over_to is not None)
        names += [target for target in dict.fromkeys(targets) if target not in names]
    return tuple(names)


def _list_agent_names(specs: Iterable[ToolSpec]) -> list[str]:
    names = (name for spec in specs for name in (spec.agent, spec.runs, spec.hands_over_to) if name is not None)
    return list(dict.fromkeys([MAIN, *names]))


def _build_tools(own: list[ToolSpec], agents: dict[str, Agent[Any]]) -> list[Tool]:
    local = [spec for spec in own if spec.kind == "function" and spec.hands_over_to is None]
    tools: list[Tool] = [_build_local_tool(spec, agents) for spec in local]
    return tools + [build_hosted_tool(*server) for server in _group_by_server(own, "hosted_mcp")]


def _build_local_tool(spec: ToolSpec, agents: dict[str, Agent[Any]]) -> Tool:
    if spec.runs is None:
        return build_tool(spec)
    return agents[spec.runs].as_tool(
        spec.name, spec.description, needs_approval=build_policy(spec.name, spec.agent, spec.approval)
    )


def _build_handoff(spec: ToolSpec, to: Agent[Any]) -> Handoff[Any, Agent[Any]]:
    return handoff(to, tool_name_override=spec.name, tool_description_override=spec.description)


def _build_answer_schema(fields: Mapping[str, Parameter]) -> AgentOutputSchema:
    # The strict form of a schema has no objects of unknown fields.
    return AgentOutputSchema(build_fields_model("Answer", fields), strict_json_schema=False)


def _group_by_server(own: list[ToolSpec], kind: str) -> list[tuple[str, list[ToolSpec]]]:
    servers: dict[str, list[ToolSpec]] = {}
    for spec in own:
        if spec.kind == kind:
            servers.setdefault(spec.server or "server", []).append(spec)
    return list(servers.items())
