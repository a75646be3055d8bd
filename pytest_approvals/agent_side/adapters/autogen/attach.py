"""Attached agents: probes around their workbenches, the scripted model for their own.

An `AssistantAgent` takes its model and its workbenches in its constructor and has no API to replace them, so they are
replaced in its attributes, and restored at the end. Its agents behind `AgentTool` are found through the tools of its
workbenches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from functools import wraps
from typing import Any

from autogen_agentchat.messages import BaseAgentEvent
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, ToolResult, Workbench

from ...contract import MAIN, Attachment, ToolSpec, Unsupported
from ...contract.agent import World
from ...kit.probes import Undo, patch_shared
from ...kit.tool_schema import read_parameters, show_place
from .agents import calls_reaching_tools
from .gates import ApprovingWorkbench, call_id_option, text_result
from .model import ScriptedClient
from .progress import RunProgress
from .requests import ApprovalFunction, Approvals, ToolApprovalRequest, ToolApprovalResult


class AttachedAgents:
    """The agents of an attached agent, probed; has the interface of `AgentGraph`.

    Attributes:
        speakers: The agents that the conversation can be handed over to.
        continues: Whether an agent continues after its tools ran is the user's choice.
        options: Keyword arguments for the framework's run calls.
    """

    speakers: Sequence[str] = (MAIN,)
    continues = True

    def __init__(self, attachment: Attachment, world: World, ask: ApprovalFunction, progress: RunProgress) -> None:
        self._world = world
        self._ask = ask
        self._progress = progress
        self._stubs = attachment.stubs
        self._gated = attachment.gated or frozenset()
        self.options: Mapping[str, Any] = attachment.run_options
        self._main = _resolve_subject(attachment.subject, ScriptedClient(world, MAIN, progress.expect))
        self._undo: list[Undo] = []
        self._specs: list[ToolSpec] = []
        for agent, label in list(_walk_agents(self._main, MAIN)):
            self._specs += [_to_spec(tool, label, self._gated) for tool in _iterate_tools(agent)]
            self._probe_agent(agent, label)

    def _probe_agent(self, agent: Any, label: str) -> None:
        asking = {
            spec.name: self._ask_if_needed for spec in self._specs if spec.agent == label and spec.approval == "always"
        }
        approvals = Approvals(agent=label, tools=asking, context=self._context_of(agent).get_messages)
        before = agent._model_client, agent._workbench
        agent._model_client = ScriptedClient(self._world, label, self._progress.expect)
        agent._workbench = [
            ProbedWorkbench(workbench, label, approvals, self._progress, self._world, self._stubs)
            for workbench in agent._workbench
        ]

        def undo() -> None:
            agent._model_client, agent._workbench = before

        self._undo.append(undo)
        self._undo += [
            self._probe_tool(tool, label)
            for workbench in before[1]
            for tool in getattr(workbench, "_tools", ())
            if _is_probed(tool)
        ]

    def _probe_tool(self, tool: Any, label: str) -> Undo:
        """Let the world run the body of a tool, after the framework has validated the arguments."""

        def build() -> dict[str, Any]:
            body = tool.run

            @wraps(body)
            async def run(arguments: Any, *more: Any, **options: Any) -> Any:
                async def real() -> Any:
                    return await body(arguments, *more, **options)

                return await self._world.run(
                    tool.name,
                    arguments.model_dump(mode="json"),
                    _CALL_ID.get(),
                    agent=label,
                    real=None if tool.name in self._stubs else real,
                )

            return {"run": run}

        return patch_shared(tool, build)

    async def _ask_if_needed(
        self, request: ToolApprovalRequest, show: Callable[[BaseAgentEvent], None]
    ) -> ToolApprovalResult:
        """Ask about a call, unless the test's condition says that it needs no approval."""
        if await self._world.gate_slowly(request.tool, request.arguments, request.call_id, agent=request.agent):
            return await self._ask(request, show)
        return ToolApprovalResult(approved=True)

    def _context_of(self, agent: Any) -> Any:
        return agent.model_context

    def get_main(self, *, stream: bool) -> Any:
        """Return the agent; whether its model streams is the user's choice."""
        return self._main

    def get_context(self, name: str) -> Any:
        """Return the conversation of the agent."""
        return self._context_of(self._main)

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


_CALL_ID: ContextVar[str | None] = ContextVar("call_id", default=None)
"""The id of the call that a tool runs for, which its body does not receive."""


def _is_probed(tool: Any) -> bool:
    """Return whether the framework validates the arguments of a tool, and then runs its body."""
    return getattr(type(tool), "run_json", None) is BaseTool.run_json


class ProbedWorkbench(ApprovingWorkbench):
    """The user's workbench, whose calls are gated and run in the world."""

    def __init__(
        self,
        inner: Workbench,
        agent: str,
        approvals: Approvals,
        progress: RunProgress,
        world: World,
        stubs: frozenset[str],
    ) -> None:
        super().__init__(inner, approvals, progress)
        self._agent = agent
        self._world = world
        self._stubs = stubs

    async def run_approved(
        self, name: str, arguments: Mapping[str, Any] | None, token: CancellationToken | None, call_id: str | None
    ) -> ToolResult:
        """See `ApprovingWorkbench.run_approved`."""
        if any(tool.name == name and _is_probed(tool) for tool in getattr(self._inner, "_tools", ())):
            token_of_call = _CALL_ID.set(call_id)
            try:
                return await self._inner.call_tool(name, arguments, token, **call_id_option(call_id))
            finally:
                _CALL_ID.reset(token_of_call)
        call_arguments = arguments or {}
        if not isinstance(call_arguments, Mapping):
            # The framework refuses what is no object before the body runs.
            return await self._inner.call_tool(name, call_arguments, token, **call_id_option(call_id))
        results: list[ToolResult] = []

        async def real() -> str:
            results.append(await self._inner.call_tool(name, call_arguments, token, **call_id_option(call_id)))
            return str(results[0].to_text())

        stubbed = name in self._stubs
        value = await self._world.run(name, call_arguments, call_id, agent=self._agent, real=None if stubbed else real)
        return results[0] if results else text_result(name, str(value), failed=False)


# --- finding ----------------------------------------------------------------------------------------------------------


def _resolve_subject(subject: Any, model: ScriptedClient) -> Any:
    agent = subject if hasattr(subject, "run_stream") else subject(model)
    if not hasattr(agent, "_workbench") or not hasattr(agent, "model_context"):
        raise Unsupported(
            "attach", f"{type(agent).__name__} is not an AssistantAgent and exposes neither model nor tools"
        )
    return agent


def _iterate_tools(agent: Any) -> Iterator[Any]:
    for workbench in agent._workbench:
        # The tools of an MCP server are not known before it is asked.
        yield from getattr(workbench, "_tools", ())


def _walk_agents(agent: Any, label: str) -> Iterator[tuple[Any, str]]:
    yield agent, label
    for tool in _iterate_tools(agent):
        inner: Any = getattr(tool, "_agent", None)
        if hasattr(inner, "_workbench"):
            yield from _walk_agents(inner, inner.name)


def _to_spec(tool: Any, label: str, gated: frozenset[str]) -> ToolSpec:
    inner = getattr(tool, "_agent", None)
    return ToolSpec(
        name=tool.name,
        description=tool.description,
        parameters=read_parameters(tool.schema.get("parameters")),
        approval="always" if tool.name in gated else "never",
        agent=label,
        runs=getattr(inner, "name", None),
        place=show_place(getattr(tool, "_func", type(tool))),
    )
