"""Agent graph of a session: an `AssistantAgent` for each agent of a blueprint.

The flavour decides how calls are gated. Agents that hand the conversation over form a `Swarm`, which ends with the
answer of the active agent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from operator import or_
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import Handoff
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import Swarm
from autogen_core.model_context import BufferedChatCompletionContext

from ...contract import MAIN, Blueprint, ServerAddress, ToolSpec
from ...contract.agent import World
from ...kit.tool_schema import build_fields_model
from .gates import WORKBENCH, GatedServer, GatedTool, GatedWorkbench, rounds_option
from .model import ExpectCalls, build_model, is_json
from .progress import RunProgress
from .requests import ApprovalFunction, Approvals, ToolApprovalRequestEvent, ToolApprovalResultEvent
from .tools import Delegate, FindEarlierRequest, McpConnection, ScenarioTool, build_approval_function

GateFactory = Callable[[Sequence[Any], Approvals, RunProgress], Any]
"""Builds the gated workbench of an agent's tools."""

UNTRIMMED_SIZE = 1_000_000
"""Number of messages that a conversation keeps."""

DEFAULT_ROUNDS = 20
"""How often an agent continues after its tools ran; by default the framework does so once."""


def build_gated_workbench(tools: Sequence[Any], approvals: Approvals, progress: RunProgress) -> Any:
    """Gate the workbench."""
    return GatedWorkbench(tools, approvals, progress)


def build_gated_tools(tools: Sequence[Any], approvals: Approvals, progress: RunProgress) -> Any:
    """Gate each tool."""
    return WORKBENCH([GatedTool(tool, approvals, progress) for tool in tools])


@dataclass(slots=True, kw_only=True)
class AgentGraph:
    """Agents of a session.

    An agent is built with or without streaming; both keep one conversation.

    Attributes:
        world: The world of the session.
        blueprint: What the agents are.
        ask: Asks the user.
        find_earlier_request: Finds what the user was asked before.
        gate: Builds what gates the tools.
        progress: Tracks what the agents work on.
        is_team: The caller talks to a team.
        options: Keyword arguments for the framework's run calls.
        continues: An agent continues by itself after its tools ran.
    """

    world: World
    blueprint: Blueprint
    ask: ApprovalFunction
    find_earlier_request: FindEarlierRequest
    gate: GateFactory
    progress: RunProgress
    is_team: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    continues: bool = bool(rounds_option(1))
    _contexts: dict[str, Any] = field(default_factory=dict)
    _workbenches: dict[tuple[str, bool], list[Any]] = field(default_factory=dict)
    _connections: dict[ServerAddress, McpConnection] = field(default_factory=dict)
    _teams: dict[bool, Any] = field(default_factory=dict)
    _agents: dict[tuple[str, bool], Any] = field(default_factory=dict)

    def get_context(self, name: str) -> Any:
        """Return the conversation of an agent."""
        if name not in self._contexts:
            self._contexts[name] = BufferedChatCompletionContext(UNTRIMMED_SIZE)
        return self._contexts[name]

    def trim(self, name: str, keep: int) -> None:
        """Limit a conversation to its last *keep* messages, with the framework's own buffer."""
        # The size is set in the constructor only; messages fall out of the context one by one.
        self.get_context(name)._buffer_size = keep

    def _call_receiver(self, name: str) -> ExpectCalls:
        """Return what receives an agent's calls; those that hand over reach no tool."""
        handing = {spec.name for spec in self.blueprint.tools if spec.agent == name and spec.hands_over_to is not None}
        return lambda calls: self.progress.expect(call for call in calls if call[1] not in handing)

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools of all agents."""
        return self.blueprint.tools

    def earlier_turns(self) -> int | None:
        """Return None: the model is told of all earlier messages."""
        return None

    async def calls_reaching_tools(self, calls: Sequence[Any], workbenches: Sequence[Any]) -> list[tuple[str, str]]:
        """Return those of *calls* that reach a tool."""
        return await calls_reaching_tools(calls, workbenches)

    @property
    def speakers(self) -> list[str]:
        """The agents that the conversation can be handed over to, the first one first."""
        names = [MAIN]
        for name in names:
            new = (spec.hands_over_to for spec in self.blueprint.tools if spec.agent == name)
            names += [candidate for candidate in dict.fromkeys(new) if candidate is not None and candidate not in names]
        return names

    def get_main(self, *, stream: bool) -> Any:
        """Return what the caller talks to: an agent, or a team."""
        if not self.is_team:
            return self.get_agent(MAIN, stream=stream)
        if stream not in self._teams:
            self._teams[stream] = build_swarm([self.get_agent(name, stream=stream) for name in self.speakers])
        return self._teams[stream]

    def get_agent(self, name: str, *, stream: bool) -> Any:
        """Return an agent, with those that its tools run."""
        if (name, stream) not in self._agents:
            self._agents[name, stream] = self._build_agent(name, stream)
        return self._agents[name, stream]

    def get_workbenches(self, name: str, *, stream: bool) -> list[Any]:
        """Return the workbenches of an agent."""
        if (name, stream) not in self._workbenches:
            own = [spec for spec in self.blueprint.tools if spec.agent == name]
            tools = [
                self._build_tool(spec, stream) for spec in own if spec.kind == "function" and not spec.hands_over_to
            ]
            approvals = self.build_approvals(name, own)
            self._workbenches[name, stream] = [
                self.gate(tools, approvals, self.progress),
                *(GatedServer(connection, approvals, self.progress) for connection in self._connections_of(name)),
            ]
        return self._workbenches[name, stream]

    def _connections_of(self, name: str) -> list[McpConnection]:
        """Return the connections of an agent to its MCP servers."""
        return [self._get_connection(address) for address in self.blueprint.servers if address.agent == name]

    def _get_connection(self, address: ServerAddress) -> McpConnection:
        if address not in self._connections:
            self._connections[address] = McpConnection(address)
        return self._connections[address]

    async def close(self) -> None:
        """Close the connections to MCP servers."""
        for connection in self._connections.values():
            await connection.stop()

    def ungated_tools(self, specs: Sequence[ToolSpec]) -> list[Any]:
        """Return ungated tools."""
        return [GatedTool(self._build_tool(spec, False), Approvals(agent=spec.agent), self.progress) for spec in specs]

    def build_approvals(self, name: str, specs: Sequence[ToolSpec]) -> Approvals:
        """Return the approval functions of an agent."""
        asking = {
            spec.name: build_approval_function(spec, self.world, self.ask, self.find_earlier_request) for spec in specs
        }
        return Approvals(
            agent=self._framework_name(name),
            tools=asking,
            context=self.get_context(name).get_messages,
        )

    def _framework_name(self, name: str) -> str:
        """Return the framework's name of an agent."""
        named: str = self.blueprint.options.get("agent_names", {}).get(name, name)
        return named

    def _present_name(self, name: str) -> str:
        """Return the framework's name of an agent that may have been renamed; requests keep the one from before."""
        return self.blueprint.names.get(name, self._framework_name(name))

    def _build_tool(self, spec: ToolSpec, stream: bool) -> Any:
        if spec.runs is not None:
            return Delegate(self.get_agent(spec.runs, stream=stream), spec)
        return ScenarioTool(spec, self.world, self.ask, strict=bool(self.blueprint.answer))

    def _build_agent(self, name: str, stream: bool) -> AssistantAgent:
        options = self.blueprint.options
        most = self.blueprint.limits.model_replies or options.get("max_tool_iterations", DEFAULT_ROUNDS)
        answer = self.blueprint.answer
        return AssistantAgent(
            self._present_name(name),
            build_model(self.world, name, self.blueprint.model, self._call_receiver(name)),
            workbench=self.get_workbenches(name, stream=stream),
            model_context=self.get_context(name),
            # The default is a message of the framework, which would be in every model input.
            system_message=None,
            model_client_stream=stream,
            reflect_on_tool_use=bool(options.get("reflect_on_tool_use", False)),
            handoffs=[
                Handoff(target=self._present_name(spec.hands_over_to), name=spec.name, description=spec.description)
                for spec in self.blueprint.tools
                if spec.agent == name and spec.hands_over_to is not None
            ],
            output_content_type=build_fields_model("Answer", answer) if answer and name == MAIN else None,
            **rounds_option(most),
        )


async def calls_reaching_tools(calls: Sequence[Any], workbenches: Sequence[Any]) -> list[tuple[str, str]]:
    """Return the calls that reach a tool in *workbenches*, an id and a tool each."""
    known = {tool["name"] for workbench in workbenches for tool in await workbench.list_tools()}
    return [(call.id, call.name) for call in calls if call.name in known and is_json(call.arguments)]


def build_swarm(agents: Sequence[Any]) -> Swarm:
    """Build the team of *agents*; the first one begins."""
    answered = reduce(or_, [TextMessageTermination(source=agent.name) for agent in agents])
    return Swarm(
        list(agents),
        termination_condition=answered,
        custom_message_types=[ToolApprovalRequestEvent, ToolApprovalResultEvent],
    )
