"""Attached agents: probes around their workbenches, the scripted model for their own.

An `AssistantAgent` takes its model and its workbenches in its constructor and has no API to replace them, so they are
replaced in its attributes, and restored at the end. Agents behind `AgentTool` and `TeamTool` are found through the
tools of its workbenches; one that the body of a tool runs is probed when it is run.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from contextvars import ContextVar, copy_context
from copy import copy
from dataclasses import dataclass, replace
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, ClassVar

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import BaseAgentEvent
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.tools import BaseTool, FunctionTool, ToolResult, Workbench
from pydantic_core import to_jsonable_python

from ...contract import MAIN, Attachment, Item, ToolSpec, Unsupported
from ...contract.agent import World
from ...kit.context import await_in_turn, body_owner, run_in_turn, use_body
from ...kit.probes import Undo, patch_shared
from ...kit.tool_schema import describe_arguments, read_parameters, show_place
from .agents import calls_reaching_tools
from .gates import STREAM_WORKBENCH, ApprovingWorkbench, call_id_option, text_result
from .model import ScriptedClient
from .progress import RunProgress
from .requests import ApprovalFunction, Approvals, ToolApprovalRequest, ToolApprovalResult, denial_text


class AttachedAgents:
    """The agents of an attached agent, probed; has the interface of `AgentGraph`.

    Attributes:
        speakers: The agents that the conversation can be handed over to: those of a team.
        is_team: The caller talks to a team.
        continues: Whether an agent continues after its tools ran is the user's choice.
        options: Keyword arguments for the framework's run calls.
        stubs: The tools that are replaced.
    """

    continues: ClassVar[bool] = True

    def __init__(self, attachment: Attachment, world: World, ask: ApprovalFunction, progress: RunProgress) -> None:
        self._world = world
        self._ask = ask
        self._progress = progress
        self._scripted = attachment.scripted
        self._gated = attachment.gated or frozenset()
        self.stubs = attachment.stubs
        self.options: Mapping[str, Any] = attachment.run_options
        self._main = _resolve_subject(attachment.subject, _SpeakingClient(world, MAIN, progress.expect))
        self._undo: list[Undo] = [_watch_bodies()]
        self._specs: list[ToolSpec] = []
        # The references keep the agents alive, and so their ids from being given to others.
        self._probed: dict[int, Any] = {}
        self._members = _list_members(self._main)
        self.speakers = tuple(self._members)
        self.is_team = hasattr(self._main, "_participants")
        for label, member in self._members.items():
            self._probe_agents(member, label)

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
            for workbench in _list_workbenches(agent)
            for name, tool in list_tools(workbench)
        ]
        self._specs += specs
        asking = {spec.name: self._ask_if_needed for spec in specs if spec.approval == "always"}
        approvals = Approvals(agent=label, tools=asking, context=agent.model_context.get_messages)
        model, workbenches = agent._model_client, _list_workbenches(agent)
        agent._model_client = _SpeakingClient(self._world, label, self._progress.expect)
        if workbenches:
            agent._workbench = [probe_workbench(each, approvals, self._progress, self) for each in workbenches]

        def undo() -> None:
            agent._model_client = model
            if workbenches:
                agent._workbench = workbenches

        self._undo.append(undo)
        for workbench in workbenches:
            self._undo += [probe_tool(tool) for _, tool in list_tools(workbench)]

    async def _ask_if_needed(
        self, request: ToolApprovalRequest, show: Callable[[BaseAgentEvent], None]
    ) -> ToolApprovalResult:
        """Ask about a call, unless the test's condition says that it needs no approval."""

        async def ask() -> ToolApprovalResult:
            if await self._world.gate_slowly(request.tool, request.arguments, request.call_id, agent=request.agent):
                # A team refuses events of types that are not registered with it, and an agent inside may be in one.
                is_shown = request.agent == MAIN and not self.is_team
                return await self._ask(request, show if is_shown else _show_nothing)
            return ToolApprovalResult(approved=True)

        return await await_in_turn(ask())

    def get_main(self, *, stream: bool) -> Any:
        """Return the agent; whether its model streams is the user's choice."""
        return self._main

    def get_context(self, name: str) -> Any:
        """Return the conversation of the agent."""
        return self._members[name].model_context

    def find_answer(self, messages: Sequence[Any]) -> Any:
        """Return the last message of an agent with a model; the user of a team may have had the last word."""
        names = {agent.name for agent in self._members.values()}
        return next((message for message in reversed(messages) if message.source in names), messages[-1])

    def earlier_turns(self) -> int | None:
        """Return 0 if the context of the agent leaves messages out, by their number or their length."""
        return None if isinstance(self._members[MAIN].model_context, UnboundedChatCompletionContext) else 0

    def get_workbenches(self, name: str, *, stream: bool) -> Sequence[Any]:
        """Return the workbenches of the agent."""
        return _list_workbenches(self._members[name])

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


class _SpeakingClient(ScriptedClient):
    """Scripted model that is told by name what other participants of a conversation said."""

    def _to_items(self, messages: Sequence[Any]) -> list[Item]:
        items = super()._to_items(messages)
        others = {
            number
            for number, message in enumerate(messages)
            if message.type == "UserMessage" and message.source != CALLER
        }
        # The framework's models of a team get such a message with the name of its sender, and not as the caller's.
        return [replace(item, kind="other") if item.message in others else item for item in items]


CALLER = "user"
"""The name under which the framework keeps the messages of a caller that gives text alone."""

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
            agents = body_owner()
            if isinstance(agents, AttachedAgents):
                agents.probe_in_body(agent)
            async for event in original(agent, *messages, **options):
                yield event

        return {"on_messages_stream": on_messages_stream}

    return patch_shared(AssistantAgent, build, place=setattr)


# --- bodies -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What the body of a tool runs for, and does not receive."""

    id: str | None
    tool: str
    agent: str
    agents: AttachedAgents

    async def run(self, arguments: Mapping[str, Any], real: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """Run the call in the world; a stub never runs the tool."""
        is_stub = self.tool in self.agents.stubs
        return await run_in_turn(self.tool, arguments, self.id, agent=self.agent, real=None if is_stub else real)


_CALL: ContextVar[_Call | None] = ContextVar("call that a tool runs for", default=None)


@contextmanager
def _use_call(call: _Call | None) -> Iterator[None]:
    token = _CALL.set(call)
    try:
        yield
    finally:
        _CALL.reset(token)


# --- tools ------------------------------------------------------------------------------------------------------------


def list_tools(workbench: Any) -> list[tuple[str, Any]]:
    """Return the tools of a workbench with the names that models see; those of an MCP server are not known."""
    overrides = getattr(workbench, "_tool_overrides", None) or {}
    tools = getattr(workbench, "_tools", ())
    return [(getattr(overrides.get(tool.name), "name", None) or tool.name, tool) for tool in tools]


def is_probed(tool: Any) -> bool:
    """Return whether the framework validates the arguments of a tool, and then runs its body."""
    return getattr(type(tool), "run_json", None) is BaseTool.run_json


def probe_tool(tool: Any) -> Undo:
    """Let the world run the body of a tool, after the framework has validated the arguments."""
    return patch_shared(tool, lambda: _build_probes(tool)) if is_probed(tool) else lambda: None


def _build_probes(tool: Any) -> dict[str, Any]:
    body = tool.run
    body_stream: Any = getattr(tool, "run_stream", None)

    async def run_in_world(arguments: Any, body: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        call = _CALL.get()
        if call is None:
            return await body()
        agents, results = call.agents, []

        async def real() -> Any:
            # What the body runs is no longer this call.
            with use_body(agents), _use_call(None):
                results.append(await body())
            # To the model, the result of an agent is its text.
            is_of_agent = isinstance(results[0], TaskResult)
            return tool.return_value_as_string(results[0]) if is_of_agent else results[0]

        # Fields that the model left out have their defaults, as the body sees them.
        fields = {name: getattr(arguments, name) for name in type(arguments).model_fields}
        value = await call.run(to_jsonable_python(describe_arguments(fields), fallback=repr), real)
        return results[0] if results else value

    async def run(arguments: Any, *more: Any, **options: Any) -> Any:
        async def run_body() -> Any:
            if type(tool).run is FunctionTool.run and not iscoroutinefunction(tool._func):
                return await FunctionTool.run(_carry_context(tool), arguments, *more, **options)
            return await body(arguments, *more, **options)

        return await run_in_world(arguments, run_body)

    async def run_stream(arguments: Any, *more: Any, **options: Any) -> AsyncGenerator[Any, None]:
        events: asyncio.Queue[Any] = asyncio.Queue()

        async def run_body() -> Any:
            event = None
            async for event in body_stream(arguments, *more, **options):
                events.put_nowait((event,))
            return event

        running = asyncio.ensure_future(run_in_world(arguments, run_body))
        running.add_done_callback(lambda _: events.put_nowait(None))
        shown = False
        try:
            while (event := await events.get()) is not None:
                shown = True
                yield event[0]
        finally:
            running.cancel()
        # A stub has a result, and no events that lead to it.
        value = running.result()
        if not shown:
            yield value

    return {"run": run} if body_stream is None else {"run": run, "run_stream": run_stream}


def _carry_context(tool: Any) -> Any:
    """Return a copy of a blocking tool that runs in this context.

    The framework runs its body in a thread without one, where an agent that it runs would not be known.
    """
    context, function = copy_context(), tool._func
    carrying = copy(tool)
    carrying._func = lambda **arguments: context.run(function, **arguments)
    return carrying


# --- workbenches ------------------------------------------------------------------------------------------------------


class ProbedWorkbench(ApprovingWorkbench):
    """The user's workbench, whose calls are gated and run in the world."""

    def __init__(self, inner: Workbench, approvals: Approvals, progress: RunProgress, agents: AttachedAgents) -> None:
        super().__init__(inner, approvals, progress)
        self._agents = agents

    def _find_call(self, name: str, call_id: str | None) -> _Call:
        return _Call(id=call_id, tool=name, agent=self._approvals.agent or MAIN, agents=self._agents)

    def _has_probed_tool(self, name: str) -> bool:
        return any(tool_name == name and is_probed(tool) for tool_name, tool in list_tools(self._inner))

    async def run_approved(
        self, name: str, arguments: Mapping[str, Any] | None, token: CancellationToken | None, call_id: str | None
    ) -> ToolResult:
        """See `ApprovingWorkbench.run_approved`."""
        call = self._find_call(name, call_id)
        # What is no object is refused by the framework before the body runs.
        if self._has_probed_tool(name) or (arguments and not isinstance(arguments, Mapping)):
            with _use_call(call):
                return await self._inner.call_tool(name, arguments, token, **call_id_option(call_id))
        results: list[ToolResult] = []

        async def real() -> str:
            with use_body(self._agents):
                results.append(await self._inner.call_tool(name, arguments, token, **call_id_option(call_id)))
            return str(results[0].to_text())

        value = await call.run(arguments or {}, real)
        return results[0] if results else text_result(name, str(value), failed=False)


def probe_workbench(inner: Workbench, approvals: Approvals, progress: RunProgress, agents: AttachedAgents) -> Any:
    """Return a workbench around the user's, which shows events if the user's does."""
    shows_events = STREAM_WORKBENCH is not None and isinstance(inner, STREAM_WORKBENCH)
    probe = _build_stream_probe() if shows_events else ProbedWorkbench
    return probe(inner, approvals, progress, agents)


def _build_stream_probe() -> type[ProbedWorkbench]:
    # The framework looks for events in workbenches of this one class only.
    class ProbedStreamWorkbench(ProbedWorkbench, STREAM_WORKBENCH):
        async def call_tool_stream(
            self,
            name: str,
            arguments: Mapping[str, Any] | None = None,
            cancellation_token: CancellationToken | None = None,
            call_id: str | None = None,
        ) -> AsyncGenerator[Any, None]:
            inner: Any = self._inner
            with self._progress.enter(call_id, name):
                result = ToolApprovalResult(approved=True)
                async for event in self._approvals.ask(name, arguments, call_id, cancellation_token):
                    if isinstance(event, ToolApprovalResult):
                        result = event
                    else:
                        yield event
                if not result.approved:
                    yield text_result(name, denial_text(result), failed=True)
                    return
                approved_arguments = arguments if result.arguments is None else result.arguments
                if not self._has_probed_tool(name):
                    yield await self.run_approved(name, approved_arguments, cancellation_token, call_id)
                    return
                token = _CALL.set(self._find_call(name, call_id))
                try:
                    async with aclosing(
                        inner.call_tool_stream(name, approved_arguments, cancellation_token, call_id)
                    ) as events:
                        async for event in events:
                            yield event
                finally:
                    _CALL.reset(token)

    return ProbedStreamWorkbench


# --- finding ----------------------------------------------------------------------------------------------------------


def _resolve_subject(subject: Any, model: ScriptedClient) -> Any:
    return subject if hasattr(subject, "run_stream") else subject(model)


def _list_members(main: Any) -> dict[str, Any]:
    """Return the agents that the caller talks to, by label: the agent, or those of a team, whose first is the main one.

    Raises:
        Unsupported: None of them has a model and tools that can be seen.
    """
    named = [one for one in getattr(main, "_participants", (main,)) if _has_model_and_tools(one)]
    if not named:
        raise Unsupported(
            "attach", f"{type(main).__name__} is not an AssistantAgent or a team of them: its model cannot be scripted"
        )
    return {MAIN if agent is named[0] else str(agent.name): agent for agent in named}


def _has_model_and_tools(agent: Any) -> bool:
    """Return whether an agent has a model; a `CodeExecutorAgent` may have one, and writes code in place of calls."""
    return hasattr(agent, "model_context") and getattr(agent, "_model_client", None) is not None


def _list_workbenches(agent: Any) -> list[Any]:
    return list(getattr(agent, "_workbench", ()))


def _walk_agents(agent: Any, label: str) -> Iterator[tuple[Any, str]]:
    yield agent, label
    for workbench in _list_workbenches(agent):
        for _, tool in list_tools(workbench):
            for inner in _list_inner_agents(tool):
                yield from _walk_agents(inner, inner.name)


def _list_inner_agents(tool: Any) -> list[Any]:
    """Return the agents that a tool of the framework runs: one, or those of a team."""
    team = getattr(tool, "_team", None)
    found = [getattr(tool, "_agent", None), *(getattr(team, "_participants", None) or ())]
    return [agent for agent in found if _has_model_and_tools(agent)]


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
