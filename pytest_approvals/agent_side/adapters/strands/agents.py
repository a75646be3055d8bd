"""Agent graph of a blueprint: what all sessions share, and the builder of each agent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from strands import Agent

from ...contract import MAIN, Blueprint, ToolSpec, World
from ...kit.probes import SharedAgents
from ...kit.tool_schema import build_fields_model
from .gates import ApprovalHook, build_handler, build_human_in_the_loop, build_middleware
from .messages import ANSWER
from .metadata import CAN_GIVE_UP
from .model import ScriptedModel, build_provider_model
from .tools import build_mcp_client, build_tool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """How an agent's tools are gated.

    Attributes:
        options: Returns keyword arguments for the agent.
        around: Returns a handler of the stage in which tools run; None if the gate needs none.
        asking: The bodies of gated tools ask.
    """

    options: Callable[[Sequence[ToolSpec]], dict[str, Any]] = lambda specs: {}
    around: Callable[[Sequence[ToolSpec]], Any] | None = None
    asking: bool = False


def _sequential_options(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    from strands.tools.executors import SequentialToolExecutor

    return {"hooks": [ApprovalHook(specs)], "tool_executor": SequentialToolExecutor()}


def _hook_for_others_options(specs: Sequence[ToolSpec]) -> dict[str, Any]:
    return {"hooks": [ApprovalHook([spec for spec in specs if not _can_ask(spec)])]}


def _can_ask(spec: ToolSpec) -> bool:
    """Return whether the tool has a body that can ask; an agent or a server's tool has none."""
    return spec.runs is None and spec.kind == "function"


GATES: dict[str, Gate] = {
    "hook": Gate(options=lambda specs: {"hooks": [ApprovalHook(specs)]}),
    "sequential": Gate(options=_sequential_options),
    "tool": Gate(options=_hook_for_others_options, asking=True),
    "middleware": Gate(around=build_middleware),
    "handler": Gate(options=lambda specs: {"interventions": [build_handler(specs)]}),
    "intervention": Gate(options=lambda specs: {"interventions": [build_human_in_the_loop(specs)]}),
}
"""The gates by the names of their flavours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentGraph(SharedAgents):
    """What the sessions on one agent share.

    Attributes:
        build_main: Builds the agent of one session, with a session manager or None.
        tools: The tools of all agents.
        options: Keyword arguments for the agent's run calls.
        earlier_turns: How many earlier messages an attached agent lets its model see for sure; None for all.
    """

    build_main: Callable[[Any], Any]
    tools: tuple[ToolSpec, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    earlier_turns: int | None = None


def build_agents(blueprint: Blueprint, gate: Gate, world: World) -> AgentGraph:
    """Build what sessions of *blueprint* share: models, tools, gates and delegates."""
    builder = _AgentBuilder(blueprint, gate, world)
    # Once for all sessions, which so share the tools and the connections to MCP servers.
    options = builder.build_options(MAIN)
    if blueprint.answer:
        options["structured_output_model"] = build_fields_model(ANSWER, blueprint.answer)

    def build_main(manager: Any) -> Any:
        # A session manager finds the messages by the agent's id.
        return builder.build(MAIN, {**options, "session_manager": manager, "agent_id": MAIN})

    return AgentGraph(
        build_main=build_main, tools=blueprint.tools, options=_limit_options(blueprint), release=builder.disconnect
    )


class _AgentBuilder:
    """Builder of agents, each with the tools that are agents themselves."""

    def __init__(self, blueprint: Blueprint, gate: Gate, world: World) -> None:
        self._world = world
        self._specs = blueprint.tools
        self._servers = blueprint.servers
        self._address = blueprint.model
        self._reasons = blueprint.reasoning
        self._clients: list[Any] = []
        self._gate = gate
        self._new_names = blueprint.names

    def build_options(self, name: str) -> dict[str, Any]:
        """Return the keyword arguments of the agent called *name*."""
        specs = [spec for spec in self._specs if spec.agent == name]
        tools = [*(self._build_tool(spec) for spec in specs if spec.kind != "mcp"), *self._build_clients(name)]
        common = {"tools": tools, "name": self._new_names.get(name, name)}
        return {**common, **self._model_options(name), **self._gate.options(specs)}

    def build(self, name: str, options: Mapping[str, Any]) -> Any:
        """Build an agent."""
        # The default handler prints every reply to stdout.
        agent = Agent(callback_handler=None, **options)
        if self._gate.around is not None:
            from strands.middleware import ExecuteToolStage

            specs = [spec for spec in self._specs if spec.agent == name]
            agent.add_middleware(ExecuteToolStage, self._gate.around(specs))
        return agent

    def _model_options(self, name: str) -> dict[str, Any]:
        if self._address is None:
            return {"model": ScriptedModel(name)}
        # The script has one reply for each request, so requests must not be repeated.
        retry = {"retry_strategy": None} if CAN_GIVE_UP else {}
        return {"model": build_provider_model(name, self._address, reasoning=self._reasons), **retry}

    def _build_clients(self, name: str) -> list[Any]:
        addresses = [address for address in self._servers if address.agent == name]
        if not addresses:
            return []
        clients = [build_mcp_client(address, self._world) for address in addresses]
        self._clients += clients
        return clients

    def disconnect(self) -> None:
        """End the connections to MCP servers."""
        for client in self._clients:
            # `stop` takes what `__exit__` does: here, that nothing was raised.
            client.stop(None, None, None)

    def _build_tool(self, spec: ToolSpec) -> Any:
        if spec.runs is not None:
            inner = self.build(spec.runs, self.build_options(spec.runs))
            return inner.as_tool(name=spec.name, description=spec.description or spec.name)
        return build_tool(spec, asking=self._gate.asking)


def _limit_options(blueprint: Blueprint) -> dict[str, Any]:
    replies = blueprint.limits.model_replies
    return {} if replies is None else {"limits": {"turns": replies}}
