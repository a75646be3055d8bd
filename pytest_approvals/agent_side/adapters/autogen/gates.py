"""Gates in front of tools: around a workbench, around each tool, and in a message handler.

Only a workbench can mark a call that was not approved as an error. The model only gets the exception of a tool; one
that leaves a workbench ends the run. Older releases lack some classes and parameters, which are looked for by name.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from abc import abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from functools import cache
from typing import TYPE_CHECKING, Any

from autogen_agentchat.agents import AssistantAgent
from autogen_core import (
    AgentId,
    CancellationToken,
    DefaultInterventionHandler,
    DropMessage,
    FunctionCall,
    MessageContext,
    tools,
)
from autogen_core.tool_agent import ToolException
from autogen_core.tools import BaseTool, StaticWorkbench, TextResultContent, ToolResult, Workbench
from pydantic import BaseModel

from ...contract import Decision
from ...kit.tool_schema import parse_arguments
from .progress import RunProgress
from .requests import Approvals, ToolApprovalResult, denial_text, write_decision

if TYPE_CHECKING:
    from .tools import McpConnection


STREAM_WORKBENCH: Any = getattr(tools, "StaticStreamWorkbench", None)
"""Workbench whose tools may show events in the stream of a run; None before 0.6.2."""

STREAM_TOOL: Any = getattr(tools, "BaseStreamTool", None)
"""Base of tools that show events; None before 0.6.2."""

WORKBENCH: Any = STREAM_WORKBENCH or StaticWorkbench


@cache
def takes_parameter(function: Any, parameter: str) -> bool:
    """Return whether a method of the framework has a parameter of that name."""
    return parameter in inspect.signature(function).parameters


def call_id_option(call_id: str | None) -> dict[str, Any]:
    """Return the argument for the id of a call, if the release has it."""
    return {"call_id": call_id} if takes_parameter(Workbench.call_tool, "call_id") else {}


def rounds_option(most: int) -> dict[str, Any]:
    """Return the argument that lets an agent continue after its tools, if the release has it."""
    return {"max_tool_iterations": most} if takes_parameter(AssistantAgent.__init__, "max_tool_iterations") else {}


class ApprovingWorkbench(Workbench):
    """Workbench that asks about each call before another workbench runs it."""

    component_config_schema = BaseModel

    def __init__(self, inner: Workbench, approvals: Approvals, progress: RunProgress) -> None:
        self._inner = inner
        self._approvals = approvals
        self._progress = progress

    @abstractmethod
    async def run_approved(
        self, name: str, arguments: Mapping[str, Any] | None, token: CancellationToken | None, call_id: str | None
    ) -> ToolResult:
        """Run an approved call."""

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """See `Workbench.call_tool`."""
        with self._progress.enter(call_id, name):
            result = await self._approvals.answer(name, arguments, call_id, cancellation_token)
            if not result.approved:
                return text_result(name, denial_text(result), failed=True)
            approved_arguments = arguments if result.arguments is None else result.arguments
            return await self.run_approved(name, approved_arguments, cancellation_token, call_id)

    async def list_tools(self) -> list[Any]:
        """See `Workbench.list_tools`."""
        return list(await self._inner.list_tools())

    async def start(self) -> None:
        """See `Workbench.start`."""
        await self._inner.start()

    async def stop(self) -> None:
        """See `Workbench.stop`."""
        await self._inner.stop()

    async def reset(self) -> None:
        """See `Workbench.reset`."""
        await self._inner.reset()

    async def save_state(self) -> Mapping[str, Any]:
        """See `Workbench.save_state`."""
        state: Mapping[str, Any] = await self._inner.save_state()
        return state

    async def load_state(self, state: Mapping[str, Any]) -> None:
        """See `Workbench.load_state`."""
        await self._inner.load_state(state)


def text_result(name: str, text: str, *, failed: bool) -> ToolResult:
    """Return a result with this text."""
    return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=failed)


class GatedWorkbench(WORKBENCH):
    """Workbench of tools that asks about each call."""

    def __init__(self, tools: Sequence[Any], approvals: Approvals, progress: RunProgress) -> None:
        super().__init__(list(tools))
        self._approvals = approvals
        self._progress = progress

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """See `Workbench.call_tool`."""
        with self._progress.enter(call_id, name):
            result = await self._approvals.answer(name, arguments, call_id, cancellation_token)
            if not result.approved:
                return text_result(name, denial_text(result), failed=True)
            approved_arguments = arguments if result.arguments is None else result.arguments
            tool_result: ToolResult = await super().call_tool(
                name, approved_arguments, cancellation_token, **call_id_option(call_id)
            )
            return tool_result

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any, None]:
        """See `StreamWorkbench.call_tool_stream`."""
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
            # If this generator is closed early, the inner one has to end within `enter`.
            async with aclosing(
                super().call_tool_stream(name, approved_arguments, cancellation_token, call_id)
            ) as events:
                async for event in events:
                    yield event


class GatedServer(ApprovingWorkbench):
    """Workbench of an MCP server that asks about each call."""

    def __init__(self, connection: McpConnection, approvals: Approvals, progress: RunProgress) -> None:
        super().__init__(connection.workbench, approvals, progress)
        self._connection = connection

    async def run_approved(
        self, name: str, arguments: Mapping[str, Any] | None, token: CancellationToken | None, call_id: str | None
    ) -> ToolResult:
        """See `ApprovingWorkbench.run_approved`."""
        return await self._inner.call_tool(name, arguments, token, **call_id_option(call_id))

    async def list_tools(self) -> list[Any]:
        """See `Workbench.list_tools`."""
        await self._connection.start()
        return await super().list_tools()

    async def start(self) -> None:
        """See `Workbench.start`."""
        await self._connection.start()

    async def stop(self) -> None:
        """See `Workbench.stop`."""
        await self._connection.stop()


class GatedTool(STREAM_TOOL or BaseTool):  # type: ignore[misc]
    """Tool that asks before it runs."""

    component_config_schema = BaseModel

    def __init__(self, inner: Any, approvals: Approvals, progress: RunProgress) -> None:
        super().__init__(inner.args_type(), inner.return_type(), inner.name, inner.description)
        self._inner = inner
        self._approvals = approvals
        self._progress = progress

    @property
    def schema(self) -> Any:
        """See `BaseTool.schema`."""
        return self._inner.schema

    def return_value_as_string(self, value: Any) -> str:
        """See `BaseTool.return_value_as_string`; a denial is a text already."""
        return value if isinstance(value, str) else str(self._inner.return_value_as_string(value))

    # The framework runs tools with `run_json` and `run_json_stream`, which ask; a tool must have these two as well.
    async def run(self, args: Any, cancellation_token: CancellationToken) -> Any:
        """See `BaseTool.run`."""
        return await self._inner.run(args, cancellation_token)

    async def run_stream(self, args: Any, cancellation_token: CancellationToken) -> AsyncGenerator[Any, None]:
        """See `BaseStreamTool.run_stream`."""
        async for event in self._inner.run_stream(args, cancellation_token):
            yield event

    async def run_json(
        self, args: Mapping[str, Any], cancellation_token: CancellationToken, call_id: str | None = None
    ) -> Any:
        """See `BaseTool.run_json`."""
        with self._progress.enter(call_id, self.name):
            result = await self._approvals.answer(self.name, args, call_id, cancellation_token)
            if not result.approved:
                return denial_text(result)
            approved_arguments = args if result.arguments is None else result.arguments
            return await self._inner.run_json(
                approved_arguments, cancellation_token, **_tool_call_id_option(self._inner, call_id)
            )

    async def run_json_stream(
        self, args: Mapping[str, Any], cancellation_token: CancellationToken, call_id: str | None = None
    ) -> AsyncGenerator[Any, None]:
        """See `BaseStreamTool.run_json_stream`."""
        with self._progress.enter(call_id, self.name):
            result = ToolApprovalResult(approved=True)
            async for event in self._approvals.ask(self.name, args, call_id, cancellation_token):
                if isinstance(event, ToolApprovalResult):
                    result = event
                else:
                    yield event
            if not result.approved:
                yield denial_text(result)
                return
            approved_arguments = args if result.arguments is None else result.arguments
            async for event in self._run_inner(approved_arguments, cancellation_token, call_id):
                yield event

    async def _run_inner(
        self, arguments: Mapping[str, Any], token: CancellationToken, call_id: str | None
    ) -> AsyncIterator[Any]:
        if hasattr(self._inner, "run_json_stream"):
            async for event in self._inner.run_json_stream(
                arguments, token, **_tool_call_id_option(self._inner, call_id)
            ):
                yield event
        else:
            yield await self._inner.run_json(arguments, token, **_tool_call_id_option(self._inner, call_id))


def _tool_call_id_option(tool: Any, call_id: str | None) -> dict[str, Any]:
    return {"call_id": call_id} if takes_parameter(type(tool).run_json, "call_id") else {}


class HandlerResult(ToolApprovalResult):
    """Result of the handler's approval function.

    Attributes:
        tool: Another tool for the call.
        raw: What the handler returns in place of a message, as the only element.
    """

    tool: str | None = None
    raw: tuple[Any, ...] = ()


def write_handler_decision(decision: Decision) -> HandlerResult:
    """Return a decision as a handler can apply it."""
    if decision.verdict == "raw":
        return HandlerResult(approved=True, raw=(decision.raw,))
    if decision.verdict == "edit":
        return HandlerResult(approved=True, tool=decision.tool, arguments=dict(decision.arguments or {}))
    return HandlerResult(**write_decision(decision).model_dump())


class ApprovalHandler(DefaultInterventionHandler):
    """Intervention handler that asks about each `FunctionCall` that is sent.

    Args:
        approvals: The approval functions.
        progress: Tracks what the agents work on.
        options: `reject_by: drop` drops a rejected call, which is the handler's other way to keep a message from being
            delivered.
    """

    def __init__(self, approvals: Approvals, progress: RunProgress, options: Mapping[str, Any]) -> None:
        self._approvals = approvals
        self._progress = progress
        self._drops = options.get("reject_by") == "drop"

    async def on_send(self, message: Any, *, message_context: MessageContext, recipient: AgentId) -> Any:
        """See `InterventionHandler.on_send`."""
        if not isinstance(message, FunctionCall):
            return message
        # Progress belongs to a task, and the runtime handles all messages in one task.
        result = await asyncio.create_task(self._ask(message, message_context))
        if not result.approved:
            if self._drops:
                return DropMessage
            raise ToolException(call_id=message.id, content=denial_text(result), name=message.name)
        return _rewrite_call(message, result)

    async def _ask(self, call: FunctionCall, context: MessageContext) -> ToolApprovalResult:
        with self._progress.enter(call.id, call.name):
            return await self._approvals.answer(
                call.name, parse_arguments(call.arguments), call.id, context.cancellation_token
            )


def _rewrite_call(call: FunctionCall, result: ToolApprovalResult) -> Any:
    if isinstance(result, HandlerResult) and result.raw:
        return result.raw[0]
    if result.arguments is None:
        return call
    tool = getattr(result, "tool", None) or call.name
    return FunctionCall(id=call.id, name=tool, arguments=json.dumps(result.arguments))
