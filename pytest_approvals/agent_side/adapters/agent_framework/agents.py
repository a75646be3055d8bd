"""Agent graph of a session: an `Agent` of the framework for each agent of a blueprint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from agent_framework import Agent

from ...contract import MAIN, Blueprint, Limits, ModelAddress, Parameter, ServerAddress, ToolSpec
from ...kit.probes import SharedAgents
from ...kit.tool_schema import build_fields_model
from .model import ClientFactory, ScriptedClient, provider_client_factory
from .tools import build_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph(SharedAgents):
    """Agents of a session.

    Attributes:
        main: The agent that the caller talks to.
        agents: All agents by name.
        tools: The tools of all agents.
        clients: The MCP clients that are connected for a turn.
        options: Keyword arguments for the run calls of the main agent.
        is_workflow: The main agent is a user's workflow, whose state is not in the session.
        earlier_turns: How many earlier messages an attached agent lets its model see for sure; None for all.
    """

    main: Any
    agents: dict[str, Any] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    clients: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    is_workflow: bool = False
    earlier_turns: int | None = None

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[None]:
        """Connect the MCP clients of built agents for the time of the context."""
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client)
            yield


MiddlewareFactory = Callable[[Sequence[ToolSpec]], Sequence[Any]]
"""Returns the middleware around an agent with these tools."""

ExtraToolsFactory = Callable[[Sequence[ToolSpec]], Sequence[Any]]
"""Returns the tools that are not functions, of an agent with these tools."""


def build_agents(
    blueprint: Blueprint,
    *,
    client: ClientFactory = ScriptedClient,
    middleware: MiddlewareFactory | None = None,
    extra_tools: ExtraToolsFactory | None = None,
    stored: bool = False,
    **options: Any,
) -> AgentGraph:
    """Build the agents that *blueprint* describes.

    Args:
        blueprint: What the agents are.
        client: Builds their clients if the world is asked.
        middleware: Returns their middleware; None for none.
        extra_tools: Returns their tools that are not functions; None for none.
        stored: The provider stores the conversation; else their sessions do.
        options: Further keyword arguments for the main agent.
    """
    agents: dict[str, Any] = {}
    clients = {address: _build_mcp_client(address, blueprint) for address in blueprint.servers}
    build_client = client if blueprint.model is None else provider_client_factory(blueprint.model)
    model_options = {**({} if stored else _unstored_options(blueprint.model)), **_reasoning_options(blueprint)}

    def agent(name: str, **settings: Any) -> Any:
        specs = [spec for spec in blueprint.tools if spec.agent == name]
        # `as_tool` is a method of a built agent, so an agent that a tool runs is built before the agent with that tool.
        for spec in specs:
            if spec.runs is not None and spec.runs not in agents:
                agents[spec.runs] = agent(spec.runs)
        answer = blueprint.answer if name == MAIN else {}
        return Agent(
            client=build_client(
                agent=name, answer=answer, function_invocation_configuration=_limit_options(blueprint.limits)
            ),
            name=blueprint.names.get(name, name),
            tools=[
                *(build_tool(spec, agents) for spec in specs if spec.kind == "function"),
                *(extra_tools(specs) if extra_tools else ()),
                *(client for address, client in clients.items() if address.agent == name),
            ],
            middleware=[*middleware(specs)] if middleware else None,
            default_options={**model_options, **_format_options(answer)} or None,
            # The later key wins: a flavour with histories of its own replaces the default ones.
            **{"context_providers": None if stored else build_histories(), **settings},
        )

    agents[MAIN] = agent(MAIN, **options)
    return AgentGraph(main=agents[MAIN], agents=agents, tools=blueprint.tools, clients=tuple(clients.values()))


def _build_mcp_client(address: ServerAddress, blueprint: Blueprint) -> Any:
    from .tools import build_mcp_client

    return build_mcp_client(address, [spec for spec in blueprint.tools if spec.agent == address.agent])


def build_histories() -> list[Any] | None:
    """Build the framework's default history, set to leave out trimmed messages."""
    from agent_framework import InMemoryHistoryProvider

    # Early releases cannot leave them out; with None the framework adds its default history by itself.
    if "skip_excluded" not in signature(InMemoryHistoryProvider).parameters:
        return None
    return [InMemoryHistoryProvider(skip_excluded=True)]


def _limit_options(limits: Limits) -> dict[str, Any] | None:
    options = {"max_iterations": limits.model_replies, "max_function_calls": limits.tool_calls}
    return {name: limit for name, limit in options.items() if limit is not None} or None


def _unstored_options(address: ModelAddress | None) -> dict[str, Any]:
    """Return the option with which a provider stores nothing; others store nothing anyway."""
    return {"store": False} if address is not None and address.protocol == "responses" else {}


def _reasoning_options(blueprint: Blueprint) -> dict[str, Any]:
    """Return the option with which a provider's model reasons, where the client has one."""
    protocol = blueprint.model.protocol if blueprint.model is not None and blueprint.reasoning else ""
    return {"thinking": {"type": "enabled", "budget_tokens": 1024}} if protocol == "messages" else {}


def _format_options(answer: Mapping[str, Parameter]) -> dict[str, Any]:
    """Return the option for an answer with these fields."""
    return {"response_format": build_fields_model("Answer", answer)} if answer else {}
