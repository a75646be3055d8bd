"""Agents of the framework, built from a blueprint or taken from a user, and their run calls."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

from pydantic_ai import (
    Agent,
    DeferredToolRequests,
    DeferredToolResults,
    UsageLimits,
)
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.messages import ModelMessage

from ...contract import MAIN, Blueprint, Limits, ToolSpec
from .attach import AgentProbes, resolve_agent
from .messages import list_renamed_tools
from .model import build_provider_model, build_scripted_model
from .tools import build_answer_type, build_mcp_toolsets, build_toolsets

CapabilityFactory = Callable[[str], Sequence[Any]]
"""Returns the framework's capabilities of an agent, by its name."""


class AgentGraph:
    """An agent object, which several sessions may share, and its run calls.

    Args:
        blueprint: What the agent is built from.
        raised: The bodies of gated tools ask, not their definitions.
        build_capabilities: Returns the framework's capabilities that a built agent has in addition to its tools.
        in_workflow: It is run in workflows, in which a stream has a handler, and servers have an id.

    Attributes:
        agent: The framework's agent object.
        options: Further arguments of its run calls.
    """

    def __init__(
        self,
        blueprint: Blueprint,
        *,
        raised: bool = False,
        build_capabilities: CapabilityFactory,
        in_workflow: bool = False,
    ) -> None:
        self.options: dict[str, Any] = _build_usage_limits(blueprint.limits)
        self._tools = blueprint.tools
        self._has_handler = in_workflow or not hasattr(AbstractAgent, "run_stream_events")
        self._probes: AgentProbes | None = None
        if blueprint.attachment is None:
            self.agent: AbstractAgent[Any, Any] = build_agents(
                blueprint, raised=raised, build_capabilities=build_capabilities, in_workflow=in_workflow
            )
            return
        self.agent = resolve_agent(blueprint.attachment.subject)
        self._probes = AgentProbes(self.agent, blueprint.attachment)
        self.options |= blueprint.attachment.run_options
        self._tools = self._probes.specs()

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of the agent, as the framework has them."""
        return self._tools

    def earlier_turns(self) -> int | None:
        """Return how many earlier messages a user's agent lets its model see for sure; None for all."""
        return 0 if self._probes is not None and self._probes.edits_history() else None

    async def run(
        self,
        text: str | None,
        messages: Sequence[ModelMessage],
        results: DeferredToolResults | None,
        *,
        shown: Callable[[Any], None] | None = None,
    ) -> Any:
        """Run the agent until it pauses or finishes, and return the framework's result.

        Args:
            text: The message of the user, if there is one.
            messages: The history.
            results: The answers to the calls that wait.
            shown: Called with every event of the stream; without it the run is not streamed.
        """
        options = {**self.options, "message_history": messages, "deferred_tool_results": results}
        with self.use_probes():
            if shown is None:
                return await self.agent.run(text, **options)
            if self._has_handler:
                return await _run_with_handler(self.agent, text, options, shown)
            return await _run_streamed(self.agent, text, options, shown)

    def use_probes(self) -> AbstractContextManager[None]:
        """Let a user's agent run with the scripted model and through the probes inside the block."""
        return self._probes.use() if self._probes else nullcontext()


async def _run_streamed(
    agent: AbstractAgent[Any, Any], text: str | None, options: dict[str, Any], shown: Callable[[Any], None]
) -> Any:
    """Consume a stream to its end and return the result that its last event carries."""
    events: Any = agent.run_stream_events(text, **options)
    result = None
    # Only later releases return a context manager.
    async with events if hasattr(events, "__aenter__") else nullcontext(events) as stream:
        async for event in stream:
            shown(event)
            result = getattr(event, "result", result) if event.event_kind == "agent_run_result" else result
    return result


async def _run_with_handler(
    agent: AbstractAgent[Any, Any], text: str | None, options: dict[str, Any], shown: Callable[[Any], None]
) -> Any:
    """Run the agent with an event handler: early releases and workflows have no stream of all events."""

    async def handler(_: Any, events: AsyncIterable[Any]) -> None:
        async for event in events:
            shown(event)

    result = await agent.run(text, event_stream_handler=handler, **options)
    shown(SimpleNamespace(event_kind="agent_run_result", result=result))
    return result


def _build_usage_limits(limits: Limits) -> dict[str, Any]:
    limits_by_name = {"request_limit": limits.model_replies, "tool_calls_limit": limits.tool_calls}
    set_here: dict[str, Any] = {name: limit for name, limit in limits_by_name.items() if limit is not None}
    return {"usage_limits": UsageLimits(**set_here)} if set_here else {}


def build_agents(
    blueprint: Blueprint, *, raised: bool, build_capabilities: CapabilityFactory, in_workflow: bool
) -> Agent[None, Any]:
    """Return the main agent, which knows the others through its tools.

    Args:
        blueprint: The tools, answer fields and addresses of all agents.
        raised: The bodies of gated tools ask, not their definitions.
        build_capabilities: Returns the framework's capabilities of an agent.
        in_workflow: Their servers have an id.
    """
    specs, answer, model = blueprint.tools, blueprint.answer, blueprint.model
    agents: dict[str, Agent[None, Any]] = {}
    # A dict in place of a set keeps the order, and each name once.
    for name in {
        MAIN: None,
        **{spec.agent: None for spec in specs},
        **{spec.runs: None for spec in specs if spec.runs},
    }:
        own = [spec for spec in specs if spec.agent == name]
        capabilities = build_capabilities(name)
        # Early releases have no such parameter.
        extra: dict[str, Any] = {"capabilities": list(capabilities)} if capabilities else {}
        agents[name] = Agent(
            build_provider_model(name, model, reasoning=blueprint.reasoning)
            if model is not None
            else build_scripted_model(name, list_renamed_tools(own)),
            name=blueprint.names.get(name, name),
            output_type=[build_answer_type(answer) if answer and name == MAIN else str, DeferredToolRequests],
            # `agents` is not complete yet: a tool looks its agent up when it is called.
            toolsets=[
                *build_toolsets(own, agents, raised=raised),
                *build_mcp_toolsets(
                    own, [address for address in blueprint.servers if address.agent == name], with_ids=in_workflow
                ),
            ],
            **extra,
        )
    return agents[MAIN]
