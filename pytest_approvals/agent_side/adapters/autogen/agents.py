"""The agents of a session: an `AssistantAgent` for each agent of a blueprint, gated in the flavour's way.

Agents that hand the conversation over: a `Swarm`, which ends with the answer of whoever has it.
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
"""Makes the workbench of an agent's tools."""

UNTRIMMED_SIZE = 1_000_000
"""How many messages a conversation keeps."""

DEFAULT_ROUNDS = 20
"""How often an agent goes on after its tools ran, which the framework does once where it is not told."""


def build_gated_workbench(tools: Sequence[Any], approvals: Approvals, work: RunProgress) -> Any:
    """Stands around the workbench."""
    return GatedWorkbench(tools, approvals, work)


def build_gated_tools(tools: Sequence[Any], approvals: Approvals, work: RunProgress) -> Any:
    """Stands around each tool."""
    return WORKBENCH([GatedTool(tool, approvals, work) for tool in tools])


@dataclass(slots=True, kw_only=True)
class AgentGraph:
    """
    The agents of a session.

    An agent is made with or without streaming; both keep one conversation.

    Attributes:
        ask: Asks a person.
        asked: Says what a person was asked before.
        gate: What stands in front of the tools.
        work: Is told what the agents work on.
        teamed: The caller talks to a team.
        options: Keyword arguments for the framework's run calls.
        goes_on: An agent goes on by itself after its tools ran.
    """

    world: World
    blueprint: Blueprint
    ask: ApprovalFunction
    asked: FindEarlierRequest
    gate: GateFactory
    work: RunProgress
    teamed: bool = False
    options: dict[str, Any] = field(default_factory=dict)
    goes_on: bool = bool(rounds_option(1))
    _contexts: dict[str, Any] = field(default_factory=dict)
    _benches: dict[tuple[str, bool], list[Any]] = field(default_factory=dict)
    _connections: dict[ServerAddress, McpConnection] = field(default_factory=dict)
    _teams: dict[bool, Any] = field(default_factory=dict)
    _agents: dict[tuple[str, bool], Any] = field(default_factory=dict)

    def context(self, name: str) -> Any:
        """Gives the conversation of an agent."""
        if name not in self._contexts:
            self._contexts[name] = BufferedChatCompletionContext(UNTRIMMED_SIZE)
        return self._contexts[name]

    def trim(self, name: str, keep: int) -> None:
        """Lets the framework's buffered context keep the last *keep* messages of a conversation."""
        # The size is given where the context is made, and messages fall out of it one by one.
        self.context(name)._buffer_size = keep

    def _expected(self, name: str) -> ExpectCalls:
        """Gives what is told the calls of an agent's model: those that hand over reach no tool."""
        handing = {spec.name for spec in self.blueprint.tools if spec.agent == name and spec.hands_over_to is not None}
        return lambda calls: self.work.expect(call for call in calls if call[1] not in handing)

    def tools(self) -> tuple[ToolSpec, ...]:
        """Gives the tools of all agents."""
        return self.blueprint.tools

    async def reaching(self, calls: Sequence[Any], benches: Sequence[Any]) -> list[tuple[str, str]]:
        """Gives those of *calls* that a tool will be given."""
        return await calls_reaching_tools(calls, benches)

    @property
    def speakers(self) -> list[str]:
        """The agents that the conversation can be handed over to, the one that begins first."""
        names = [MAIN]
        for name in names:
            new = (spec.hands_over_to for spec in self.blueprint.tools if spec.agent == name)
            names += [one for one in dict.fromkeys(new) if one is not None and one not in names]
        return names

    def main(self, *, stream: bool) -> Any:
        """Gives what the caller talks to: an agent, or a team of those that hand the conversation over."""
        if not self.teamed:
            return self.agent(MAIN, stream=stream)
        if stream not in self._teams:
            self._teams[stream] = build_swarm([self.agent(name, stream=stream) for name in self.speakers])
        return self._teams[stream]

    def agent(self, name: str, *, stream: bool) -> Any:
        """Gives an agent, with those that its tools run."""
        if (name, stream) not in self._agents:
            self._agents[name, stream] = self._made(name, stream)
        return self._agents[name, stream]

    def benches(self, name: str, *, stream: bool) -> list[Any]:
        """Gives the workbenches of an agent."""
        if (name, stream) not in self._benches:
            own = [spec for spec in self.blueprint.tools if spec.agent == name]
            tools = [self._tool(spec, stream) for spec in own if spec.kind == "function" and not spec.hands_over_to]
            approvals = self.approvals(name, own)
            self._benches[name, stream] = [
                self.gate(tools, approvals, self.work),
                *(GatedServer(one, approvals, self.work) for one in self._connected(name)),
            ]
        return self._benches[name, stream]

    def _connected(self, name: str) -> list[McpConnection]:
        """Gives the connections of an agent to its servers."""
        return [self._connection(one) for one in self.blueprint.servers if one.agent == name]

    def _connection(self, address: ServerAddress) -> McpConnection:
        if address not in self._connections:
            self._connections[address] = McpConnection(address)
        return self._connections[address]

    async def close(self) -> None:
        """Lets go of what the agents connect to."""
        for connection in self._connections.values():
            await connection.stop()

    def working(self, specs: Sequence[ToolSpec]) -> list[Any]:
        """Gives tools that nobody is asked about."""
        return [GatedTool(self._tool(spec, False), Approvals(agent=spec.agent), self.work) for spec in specs]

    def approvals(self, name: str, specs: Sequence[ToolSpec]) -> Approvals:
        """Gives the approval functions of an agent."""
        asking = {spec.name: build_approval_function(spec, self.world, self.ask, self.asked) for spec in specs}
        return Approvals(
            agent=self._called(name),
            tools={tool: function for tool, function in asking.items() if function is not None},
            context=self.context(name).get_messages,
        )

    def _called(self, name: str) -> str:
        """Gives the name that the framework knows an agent by."""
        named: str = self.blueprint.options.get("agent_names", {}).get(name, name)
        return named

    def _tool(self, spec: ToolSpec, stream: bool) -> Any:
        if spec.runs is not None:
            return Delegate(self.agent(spec.runs, stream=stream), spec)
        return ScenarioTool(spec, self.world, self.ask, strict=bool(self.blueprint.answer))

    def _made(self, name: str, stream: bool) -> AssistantAgent:
        options = self.blueprint.options
        most = self.blueprint.limits.model_replies or options.get("max_tool_iterations", DEFAULT_ROUNDS)
        answer = self.blueprint.answer
        return AssistantAgent(
            self._called(name),
            build_model(self.world, name, self.blueprint.model, self._expected(name)),
            workbench=self.benches(name, stream=stream),
            model_context=self.context(name),
            system_message=None,
            model_client_stream=stream,
            reflect_on_tool_use=bool(options.get("reflect_on_tool_use", False)),
            handoffs=[
                Handoff(target=spec.hands_over_to, name=spec.name, description=spec.description)
                for spec in self.blueprint.tools
                if spec.agent == name and spec.hands_over_to is not None
            ],
            output_content_type=build_fields_model("Answer", answer) if answer and name == MAIN else None,
            **rounds_option(most),
        )


async def calls_reaching_tools(calls: Sequence[Any], benches: Sequence[Any]) -> list[tuple[str, str]]:
    """Gives those of *calls* that a tool in *benches* will be given, an id and a tool each."""
    known = {tool["name"] for bench in benches for tool in await bench.list_tools()}
    return [(call.id, call.name) for call in calls if call.name in known and is_json(call.arguments)]


def build_swarm(agents: Sequence[Any]) -> Swarm:
    """Gives the team of *agents*; the first one begins."""
    answered = reduce(or_, [TextMessageTermination(source=agent.name) for agent in agents])
    return Swarm(
        list(agents),
        termination_condition=answered,
        custom_message_types=[ToolApprovalRequestEvent, ToolApprovalResultEvent],
    )
