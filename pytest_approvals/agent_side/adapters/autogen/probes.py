"""Probes in the tools and workbenches of attached agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterator, Mapping
from contextlib import aclosing, contextmanager
from contextvars import ContextVar, copy_context
from copy import copy
from dataclasses import dataclass
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any

from autogen_agentchat.base import TaskResult
from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, FunctionTool, ToolResult, Workbench

from ...contract import MAIN
from ...kit.context import run_in_turn
from ...kit.probes import Undo, patch_shared
from .gates import STREAM_WORKBENCH, ApprovingWorkbench, call_id_option, text_result
from .progress import RunProgress
from .requests import Approvals, ToolApprovalResult, denial_text

if TYPE_CHECKING:
    from .attach import AttachedAgents


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

_IN_BODY: ContextVar[AttachedAgents | None] = ContextVar("agents in the body of whose tool this is", default=None)


def agents_of_body() -> AttachedAgents | None:
    """Return the attached agents in the body of whose tool this is; None outside of one."""
    return _IN_BODY.get()


@contextmanager
def _set(variable: ContextVar[Any], value: Any) -> Iterator[None]:
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)


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
            with _set(_IN_BODY, agents), _set(_CALL, None):
                results.append(await body())
            # To the model, the result of an agent is its text.
            is_of_agent = isinstance(results[0], TaskResult)
            return tool.return_value_as_string(results[0]) if is_of_agent else results[0]

        value = await call.run(arguments.model_dump(mode="json"), real)
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
            with _set(_CALL, call):
                return await self._inner.call_tool(name, arguments, token, **call_id_option(call_id))
        results: list[ToolResult] = []

        async def real() -> str:
            with _set(_IN_BODY, self._agents):
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
