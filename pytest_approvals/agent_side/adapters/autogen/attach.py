"""Attached agents: probes around their workbenches, the scripted model for their own.

An `AssistantAgent` takes its model and its workbenches in its constructor and has no API to replace them, so they are
replaced in its attributes, and restored at the end. Agents behind `AgentTool` and `TeamTool` are found through the
tools of its workbenches; one that the body of a tool runs is probed when it is run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ClassVar

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import BaseAgentEvent

from ...contract import MAIN, Attachment, ToolSpec, Unsupported
from ...contract.agent import World
from ...kit.context import await_in_turn
from ...kit.probes import Undo, patch_shared
from ...kit.tool_schema import read_parameters, show_place
from .agents import calls_reaching_tools
from .model import ScriptedClient
from .probes import agents_of_body, list_tools, probe_tool, probe_workbench
from .progress import RunProgress
from .requests import ApprovalFunction, Approvals, ToolApprovalRequest, ToolApprovalResult


class AttachedAgents:
    """The agents of an attached agent, probed; has the interface of `AgentGraph`.

    Attributes:
        speakers: The agents that the conversation can be handed over to.
        continues: Whether an agent continues after its tools ran is the user's choice.
        options: Keyword arguments for the framework's run calls.
        stubs: The tools that are replaced.
    """

    speakers: ClassVar[Sequence[str]] = (MAIN,)
    continues: ClassVar[bool] = True

    def __init__(self, attachment: Attachment, world: World, ask: ApprovalFunction, progress: RunProgress) -> None:
        self._world = world
        self._ask = ask
        self._progress = progress
        self._scripted = attachment.scripted
        self._gated = attachment.gated or frozenset()
        self.stubs = attachment.stubs
        self.options: Mapping[str, Any] = attachment.run_options
        self._main = _resolve_subject(attachment.subject, ScriptedClient(world, MAIN, progress.expect))
        self._undo: list[Undo] = [_watch_bodies()]
        self._specs: list[ToolSpec] = []
        # The references keep the agents alive, and so their ids from being given to others.
        self._probed: dict[int, Any] = {}
        self._probe_agents(self._main, MAIN)

    def probe_in_body(self, agent: Any) -> None:
        """Probe an agent that the body of a tool runs, unless its model is one for tests that no script replaces."""
        is_own_test_model = type(agent._model_client).__name__ == _TEST_MODEL
        if agent.name in self._scripted or not is_own_test_model:
            self._probe_agents(agent, agent.name)

    def _probe_agents(self, agent: Any, label: str) -> None:
        for inner, name in list(_walk_agents(agent, label)):
            if id(inner) not in self._probed:
                self._probed[id(inner)] = inner
                self._probe_agent(inner, name)

    def _probe_agent(self, agent: Any, label: str) -> None:
        specs = [
            _to_spec(name, tool, label, self._gated)
            for workbench in agent._workbench
            for name, tool in list_tools(workbench)
        ]
        self._specs += specs
        asking = {spec.name: self._ask_if_needed for spec in specs if spec.approval == "always"}
        approvals = Approvals(agent=label, tools=asking, context=agent.model_context.get_messages)
        before = agent._model_client, agent._workbench
        agent._model_client = ScriptedClient(self._world, label, self._progress.expect)
        agent._workbench = [probe_workbench(each, approvals, self._progress, self) for each in agent._workbench]

        def undo() -> None:
            agent._model_client, agent._workbench = before

        self._undo.append(undo)
        for workbench in before[1]:
            self._undo += [probe_tool(tool) for _, tool in list_tools(workbench)]

    async def _ask_if_needed(
        self, request: ToolApprovalRequest, show: Callable[[BaseAgentEvent], None]
    ) -> ToolApprovalResult:
        """Ask about a call, unless the test's condition says that it needs no approval."""

        async def ask() -> ToolApprovalResult:
            if await self._world.gate_slowly(request.tool, request.arguments, request.call_id, agent=request.agent):
                # A team refuses events of types that are not registered with it, and an agent inside may be in one.
                return await self._ask(request, show if request.agent == MAIN else _show_nothing)
            return ToolApprovalResult(approved=True)

        return await await_in_turn(ask())

    def get_main(self, *, stream: bool) -> Any:
        """Return the agent; whether its model streams is the user's choice."""
        return self._main

    def get_context(self, name: str) -> Any:
        """Return the conversation of the agent."""
        return self._main.model_context

    def get_workbenches(self, name: str, *, stream: bool) -> Sequence[Any]:
        """Return the workbenches of the agent."""
        workbenches: Sequence[Any] = self._main._workbench
        return workbenches

    async def calls_reaching_tools(self, calls: Sequence[Any], workbenches: Sequence[Any]) -> list[tuple[str, str]]:
        """Return those of *calls* that reach a tool."""
        return await calls_reaching_tools(calls, workbenches)

    def tools(self) -> tuple[ToolSpec, ...]:
        """Return the tools that were found."""
        return tuple(self._specs)

    def trim(self, name: str, keep: int) -> None:
        """Refuse: how an attached agent trims is the user's choice."""
        raise Unsupported("trim", "the context of an attached agent has the size that its user gave it")

    async def close(self) -> None:
        """Remove the probes."""
        for undo in reversed(self._undo):
            undo()
        self._undo.clear()


def _show_nothing(_: BaseAgentEvent) -> None:
    pass


_TEST_MODEL = "ReplayChatCompletionClient"
"""The framework's own model for tests, by name: its module is not imported unless a user does."""


def _watch_bodies() -> Undo:
    """Probe the agents that are run in the bodies of tools.

    Nothing leads from an agent to those that its tools run, so the one method that all runs go through is replaced.
    """
    original = AssistantAgent.on_messages_stream

    def build() -> dict[str, Any]:
        @wraps(original)
        async def on_messages_stream(agent: Any, *messages: Any, **options: Any) -> AsyncGenerator[Any, None]:
            agents = agents_of_body()
            if agents is not None:
                agents.probe_in_body(agent)
            async for event in original(agent, *messages, **options):
                yield event

        return {"on_messages_stream": on_messages_stream}

    return patch_shared(AssistantAgent, build, place=setattr)


# --- finding ----------------------------------------------------------------------------------------------------------


def _resolve_subject(subject: Any, model: ScriptedClient) -> Any:
    agent = subject if hasattr(subject, "run_stream") else subject(model)
    if not hasattr(agent, "_workbench") or not hasattr(agent, "model_context"):
        raise Unsupported(
            "attach", f"{type(agent).__name__} is not an AssistantAgent and exposes neither model nor tools"
        )
    return agent


def _walk_agents(agent: Any, label: str) -> Iterator[tuple[Any, str]]:
    yield agent, label
    for workbench in agent._workbench:
        for _, tool in list_tools(workbench):
            for inner in _list_inner_agents(tool):
                yield from _walk_agents(inner, inner.name)


def _list_inner_agents(tool: Any) -> list[Any]:
    """Return the agents that a tool of the framework runs: one, or those of a team."""
    team = getattr(tool, "_team", None)
    found = [getattr(tool, "_agent", None), *(getattr(team, "_participants", None) or ())]
    return [agent for agent in found if hasattr(agent, "_workbench")]


def _to_spec(name: str, tool: Any, label: str, gated: frozenset[str]) -> ToolSpec:
    inner = getattr(tool, "_agent", None) or getattr(tool, "_team", None)
    return ToolSpec(
        name=name,
        description=tool.description,
        parameters=read_parameters(tool.schema.get("parameters")),
        approval="always" if name in gated else "never",
        agent=label,
        runs=getattr(inner, "name", None),
        place=show_place(getattr(tool, "_func", type(tool))),
    )
