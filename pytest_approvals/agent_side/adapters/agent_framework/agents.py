"""The agents that a session runs: an `Agent` of the framework for each agent of a blueprint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

from agent_framework import Agent

from ...contract import MAIN, Blueprint, Limits, ModelAddress, Parameter, ServerAddress, ToolSpec
from ...kit.tool_schema import build_fields_model
from .model import ClientFactory, ScriptedClient, provider_client_factory
from .tools import build_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph:
    """
    The agents of a session.

    Attributes:
        main: The agent that the caller talks to.
        agents: All agents by name.
        clients: The clients of MCP servers that are connected for a turn.
        options: Keyword arguments for the run calls of the main agent.
        release: Undoes what was done to a person's own agent.
    """

    main: Any
    agents: dict[str, Any] = field(default_factory=dict)
    tools: tuple[ToolSpec, ...] = ()
    clients: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)
    release: Callable[[], None] = lambda: None

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Within, the clients of the MCP servers of agents that were made here are connected."""
        async with AsyncExitStack() as stack:
            for client in self.clients:
                await stack.enter_async_context(client)
            yield


"""Makes the chat client of an agent, as `ScriptedClient` does."""

MiddlewareFactory = Callable[[Sequence[ToolSpec]], Sequence[Any]]
"""Gives the middleware around an agent with these tools."""

ExtraToolsFactory = Callable[[Sequence[ToolSpec]], Sequence[Any]]
"""Gives the tools that are no functions of an agent with these tools."""


def build_agents(
    blueprint: Blueprint,
    *,
    client: ClientFactory = ScriptedClient,
    middleware: MiddlewareFactory | None = None,
    further: ExtraToolsFactory | None = None,
    stored: bool = False,
    **options: Any,
) -> AgentGraph:
    """
    Makes the agents that *blueprint* describes.

    Arguments:
        client: Makes their clients, where the world is asked.
        middleware: Gives their middleware; None for none.
        further: Gives their tools that are no functions; None for none.
        stored: The provider keeps the conversation; else their sessions do.
        options: Further keyword arguments for the main agent.
    """
    agents: dict[str, Any] = {}
    clients = {one: _build_mcp_client(one, blueprint) for one in blueprint.servers}
    made_client = client if blueprint.model is None else provider_client_factory(blueprint.model)
    asked_with = {} if stored else _unstored_options(blueprint.model)

    def agent(name: str, **settings: Any) -> Any:
        own = [spec for spec in blueprint.tools if spec.agent == name]
        for spec in own:
            if spec.runs is not None and spec.runs not in agents:
                agents[spec.runs] = agent(spec.runs)
        answer = blueprint.answer if name == MAIN else {}
        return Agent(
            client=made_client(
                agent=name, answer=answer, function_invocation_configuration=_limit_options(blueprint.limits)
            ),
            name=name,
            tools=[
                *(build_tool(spec, agents) for spec in own if spec.kind == "function"),
                *(further(own) if further else ()),
                *(client for one, client in clients.items() if one.agent == name),
            ],
            middleware=[*middleware(own)] if middleware else None,
            default_options={**asked_with, **_format_options(answer)} or None,
            **{"context_providers": None if stored else build_histories(), **settings},
        )

    agents[MAIN] = agent(MAIN, **options)
    return AgentGraph(main=agents[MAIN], agents=agents, tools=blueprint.tools, clients=tuple(clients.values()))


def _build_mcp_client(address: ServerAddress, blueprint: Blueprint) -> Any:
    from .tools import build_mcp_client

    return build_mcp_client(address, [spec for spec in blueprint.tools if spec.agent == address.agent])


def build_histories() -> list[Any] | None:
    """Gives the history that the framework adds by itself, told to leave out what was trimmed."""
    from agent_framework import InMemoryHistoryProvider

    if "skip_excluded" not in signature(InMemoryHistoryProvider).parameters:
        return None
    return [InMemoryHistoryProvider(skip_excluded=True)]


def _limit_options(limits: Limits) -> dict[str, Any] | None:
    given = {"max_iterations": limits.model_replies, "max_function_calls": limits.tool_calls}
    return {name: limit for name, limit in given.items() if limit is not None} or None


def _unstored_options(address: ModelAddress | None) -> dict[str, Any]:
    """Gives the option that a provider is told with to keep nothing; the others keep nothing by themselves."""
    return {"store": False} if address is not None and address.protocol == "responses" else {}


def _format_options(answer: Mapping[str, Parameter]) -> dict[str, Any]:
    """Gives the option for an answer with these fields."""
    return {"response_format": build_fields_model("Answer", answer)} if answer else {}
