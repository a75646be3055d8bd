"""The agents of a session: an `AssistantAgent` for each agent of a blueprint, gated in the flavour's way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core.model_context import BufferedChatCompletionContext

from ...contract import Blueprint, ToolSpec, World
from . import releases
from .approval import ApprovalFunction, Approvals
from .gates import GatedTool, GatedWorkbench
from .model import ScriptedClient, is_json
from .tools import AskedBefore, Delegate, ScenarioTool, approval_function, fields_model
from .work import Work

Gate = Callable[[Sequence[Any], Approvals, Work], Any]
"""Makes the workbench of an agent's tools."""

UNTRIMMED = 1_000_000
"""How many messages a conversation keeps."""

ROUNDS = 20
"""How often an agent goes on after its tools ran, which the framework does once where it is not told."""


def gated_workbench(tools: Sequence[Any], approvals: Approvals, work: Work) -> Any:
    """Stands around the workbench."""
    return GatedWorkbench(tools, approvals, work)


def gated_tools(tools: Sequence[Any], approvals: Approvals, work: Work) -> Any:
    """Stands around each tool."""
    return releases.WORKBENCH([GatedTool(tool, approvals, work) for tool in tools])


@dataclass(slots=True, kw_only=True)
class Crew:
    """
    The agents of a session.

    An agent is made with or without streaming; both keep one conversation.

    Attributes:
        ask: Asks a person.
        asked: Says what a person was asked before.
        gate: What stands in front of the tools.
        work: Is told what the agents work on.
        options: Keyword arguments for the framework's run calls.
        goes_on: An agent goes on by itself after its tools ran.
    """

    world: World
    blueprint: Blueprint
    ask: ApprovalFunction
    asked: AskedBefore
    gate: Gate
    work: Work
    options: dict[str, Any] = field(default_factory=dict)
    goes_on: bool = bool(releases.rounds(1))
    _contexts: dict[str, Any] = field(default_factory=dict)
    _benches: dict[tuple[str, bool], list[Any]] = field(default_factory=dict)
    _agents: dict[tuple[str, bool], Any] = field(default_factory=dict)

    def context(self, name: str) -> Any:
        """Gives the conversation of an agent."""
        if name not in self._contexts:
            self._contexts[name] = BufferedChatCompletionContext(UNTRIMMED)
        return self._contexts[name]

    def trim(self, name: str, keep: int) -> None:
        """Lets the framework's buffered context keep the last *keep* messages of a conversation."""
        # The size is given where the context is made, and messages fall out of it one by one.
        self.context(name)._buffer_size = keep

    def tools(self) -> tuple[ToolSpec, ...]:
        """Gives the tools of all agents."""
        return self.blueprint.tools

    async def reaching(self, calls: Sequence[Any], benches: Sequence[Any]) -> list[tuple[str, str]]:
        """Gives those of *calls* that a tool will be given."""
        known = {tool["name"] for bench in benches for tool in await bench.list_tools()}
        return [(call.id, call.name) for call in calls if call.name in known and is_json(call.arguments)]

    def agent(self, name: str, *, stream: bool) -> Any:
        """Gives an agent, with those that its tools run."""
        if (name, stream) not in self._agents:
            self._agents[name, stream] = self._made(name, stream)
        return self._agents[name, stream]

    def benches(self, name: str, *, stream: bool) -> list[Any]:
        """Gives the workbenches of an agent."""
        if (name, stream) not in self._benches:
            own = [spec for spec in self.blueprint.tools if spec.agent == name]
            tools = [self._tool(spec, stream) for spec in own if spec.kind == "function"]
            self._benches[name, stream] = [self.gate(tools, self._approvals(name, own), self.work)]
        return self._benches[name, stream]

    def _approvals(self, name: str, specs: Sequence[ToolSpec]) -> Approvals:
        asking = {spec.name: approval_function(spec, self.world, self.ask, self.asked) for spec in specs}
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
        return ScenarioTool(spec, self.world, self.ask)

    def _made(self, name: str, stream: bool) -> AssistantAgent:
        options = self.blueprint.options
        most = self.blueprint.limits.model_replies or options.get("max_tool_iterations", ROUNDS)
        answer = self.blueprint.answer
        return AssistantAgent(
            self._called(name),
            ScriptedClient(self.world, name, self.work.expect),
            workbench=self.benches(name, stream=stream),
            model_context=self.context(name),
            system_message=None,
            model_client_stream=stream,
            reflect_on_tool_use=bool(options.get("reflect_on_tool_use", False)),
            output_content_type=fields_model("Answer", answer) if answer and name == "main" else None,
            **releases.rounds(most),
        )
