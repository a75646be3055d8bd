"""Guardrails that let everything through: an application's own checks, which stand around agents and their tools.

The agents that a session runs: made from tool specs, with a scripted model each.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable, Mapping
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
from ...kit.tool_schema import build_fields_model
from .model import ModelFactory
from .tools import build_hosted_tool, build_mcp_client, build_policy, build_tool


def add_guardrails(agent: Agent[Any]) -> None:
    """Puts a guardrail before and behind *agent*, and before and behind each of its tools that runs here."""
    agent.input_guardrails = [InputGuardrail(guardrail_function=_pass_guardrail, name="input")]
    agent.output_guardrails = [OutputGuardrail(guardrail_function=_pass_guardrail, name="output")]
    for tool in agent.tools:
        if isinstance(tool, FunctionTool):
            tool.tool_input_guardrails = [ToolInputGuardrail(guardrail_function=_allow_tool, name="before")]
            tool.tool_output_guardrails = [ToolOutputGuardrail(guardrail_function=_allow_tool, name="behind")]


async def _pass_guardrail(context: Any, agent: Any, seen: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered=False)


async def _allow_tool(data: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.allow()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph:
    """
    The agents of a session, and how they are run.

    Attributes:
        main: The agent that the caller talks to.
        agents: All agents, by the name that requests show.
        labels: What the harness calls an agent, by the name that requests show.
        clients: The clients of MCP servers that are connected for a turn.
        options: Keyword arguments for `Runner.run`.
        session: The session that a person hands over with their agent.
        release: Undoes what was done to a person's own agents.
        sessions: The driven sessions that use the crew, by identity.
    """

    main: Agent[Any]
    agents: dict[str, Agent[Any]]
    labels: dict[str, str] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    clients: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    session: Any = None
    release: Callable[[], None] = lambda: None
    sessions: set[int] = field(default_factory=set)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Within, the clients of the MCP servers of agents that were made here are connected."""
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client)
            yield

    def label(self, name: str) -> str:
        """Gives what the harness calls the agent that the SDK calls *name*."""
        return self.labels.get(name, name)

    def key(self, agent: Agent[Any]) -> str:
        """Gives the name by which *agent* stands in `agents`."""
        return next(name for name, one in self.agents.items() if one is agent)

    def let_go(self, session: object) -> None:
        """Takes *session* from those that use the crew, and releases the agents when it was the last one."""
        if id(session) in self.sessions:
            self.sessions.discard(id(session))
            if not self.sessions:
                self.release()


def build_agents(blueprint: Blueprint, model: ModelFactory) -> AgentGraph:
    """
    Makes the agents that *blueprint* describes, each with what *model* makes for it.

    Its option `agent_names` gives them other names than the harness has for them, be it the same one twice; with
    `item_ids: anew` the provider numbers the items of its replies anew in every conversation; `guardrails: allow` puts
    guardrails around all agents and tools; `context` is handed to each run, as the application's own context;
    `server_gate` says in which form the gate of a connected server is configured.
    """
    called = blueprint.options.get("agent_names", {})
    form = str(blueprint.options.get("server_gate", "names"))
    agents = {
        name: Agent[Any](name=called.get(name, name), model=model(name)) for name in _list_agent_names(blueprint.tools)
    }
    for name, agent in agents.items():
        own = [spec for spec in blueprint.tools if spec.agent == name]
        agent.tools = _build_tools(own, agents)
        agent.handoffs = [
            _build_handoff(spec, agents[spec.hands_over_to]) for spec in own if spec.hands_over_to is not None
        ]
        offered = dict(_group_by_server(own, "mcp"))
        agent.mcp_servers = [
            build_mcp_client(one, offered[one.name], form) for one in blueprint.servers if one.agent == name
        ]
    if blueprint.answer:
        agents[MAIN].output_type = _build_answer_schema(blueprint.answer)
    if blueprint.options.get("guardrails") == "allow":
        for agent in agents.values():
            add_guardrails(agent)
    clients = tuple(client for agent in agents.values() for client in agent.mcp_servers)
    return AgentGraph(
        main=agents[MAIN], agents=agents, tools=blueprint.tools, clients=clients, options=_build_options(blueprint)
    )


def _build_options(blueprint: Blueprint) -> dict[str, Any]:
    options: dict[str, Any] = {"run_config": RunConfig(tracing_disabled=True)}
    if blueprint.limits.model_replies is not None:
        options["max_turns"] = blueprint.limits.model_replies
    if "context" in blueprint.options:
        options["context"] = dict(blueprint.options["context"])
    return options


def _list_agent_names(specs: Iterable[ToolSpec]) -> list[str]:
    named = (name for spec in specs for name in (spec.agent, spec.runs, spec.hands_over_to) if name is not None)
    return list(dict.fromkeys([MAIN, *named]))


def _build_tools(own: list[ToolSpec], agents: dict[str, Agent[Any]]) -> list[Tool]:
    local = [spec for spec in own if spec.kind == "function" and spec.hands_over_to is None]
    tools: list[Tool] = [_build_local_tool(spec, agents) for spec in local]
    return tools + [build_hosted_tool(*one) for one in _group_by_server(own, "hosted_mcp")]


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
