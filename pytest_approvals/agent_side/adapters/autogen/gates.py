"""
The two places where the approval design stands: around a workbench, and around each tool.

Only a workbench can say that a call that was not approved is an error. Only the exception of a tool is told to the
model; one that leaves a workbench leaves the run.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from autogen_core import CancellationToken
from autogen_core.tools import BaseTool, ToolResult
from pydantic import BaseModel

from .approval import Approvals, ToolApprovalResult, denial
from .around import AroundWorkbench, told
from .releases import STREAM_TOOL, WORKBENCH, takes, with_call_id
from .work import Work

if TYPE_CHECKING:
    from .servers import Connection


class GatedWorkbench(WORKBENCH):
    """A workbench whose calls are asked about."""

    def __init__(self, tools: Sequence[Any], approvals: Approvals, work: Work) -> None:
        super().__init__(list(tools))
        self._approvals = approvals
        self._work = work

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> ToolResult:
        """See `Workbench.call_tool`."""
        with self._work.entered(call_id, name):
            result = await self._approvals.answer(name, arguments, call_id, cancellation_token)
            if not result.approved:
                return told(name, denial(result), failed=True)
            given = arguments if result.arguments is None else result.arguments
            done: ToolResult = await super().call_tool(name, given, cancellation_token, **with_call_id(call_id))
            return done

    async def call_tool_stream(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        cancellation_token: CancellationToken | None = None,
        call_id: str | None = None,
    ) -> AsyncGenerator[Any, None]:
        """See `StreamWorkbench.call_tool_stream`."""
        with self._work.entered(call_id, name):
            result = ToolApprovalResult(approved=True)
            async for one in self._approvals.asked(name, arguments, call_id, cancellation_token):
                if isinstance(one, ToolApprovalResult):
                    result = one
                else:
                    yield one
            if not result.approved:
                yield told(name, denial(result), failed=True)
                return
            given = arguments if result.arguments is None else result.arguments
            async with aclosing(super().call_tool_stream(name, given, cancellation_token, call_id)) as events:
                async for event in events:
                    yield event


class GatedServer(AroundWorkbench):
    """The workbench that connects to a server, whose calls are asked about."""

    def __init__(self, connection: Connection, approvals: Approvals, work: Work) -> None:
        super().__init__(connection.workbench, approvals, work)
        self._connection = connection

    async def run_approved(
        self, name: str, arguments: Mapping[str, Any] | None, token: CancellationToken | None, call_id: str | None
    ) -> ToolResult:
        """See `AroundWorkbench.run_approved`."""
        return await self._inner.call_tool(name, arguments, token, **with_call_id(call_id))

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
    """A tool that is asked about before it runs."""

    component_config_schema = BaseModel

    def __init__(self, inner: Any, approvals: Approvals, work: Work) -> None:
        super().__init__(inner.args_type(), inner.return_type(), inner.name, inner.description)
        self._inner = inner
        self._approvals = approvals
        self._work = work

    @property
    def schema(self) -> Any:
        """See `BaseTool.schema`."""
        return self._inner.schema

    def return_value_as_string(self, value: Any) -> str:
        """See `BaseTool.return_value_as_string`; a denial is a text already."""
        return value if isinstance(value, str) else str(self._inner.return_value_as_string(value))

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
        with self._work.entered(call_id, self.name):
            result = await self._approvals.answer(self.name, args, call_id, cancellation_token)
            if not result.approved:
                return denial(result)
            given = args if result.arguments is None else result.arguments
            return await self._inner.run_json(given, cancellation_token, **_call_id(self._inner, call_id))

    async def run_json_stream(
        self, args: Mapping[str, Any], cancellation_token: CancellationToken, call_id: str | None = None
    ) -> AsyncGenerator[Any, None]:
        """See `BaseStreamTool.run_json_stream`."""
        with self._work.entered(call_id, self.name):
            result = ToolApprovalResult(approved=True)
            async for one in self._approvals.asked(self.name, args, call_id, cancellation_token):
                if isinstance(one, ToolApprovalResult):
                    result = one
                else:
                    yield one
            if not result.approved:
                yield denial(result)
                return
            given = args if result.arguments is None else result.arguments
            async for event in self._ran(given, cancellation_token, call_id):
                yield event

    async def _ran(
        self, arguments: Mapping[str, Any], token: CancellationToken, call_id: str | None
    ) -> AsyncIterator[Any]:
        if hasattr(self._inner, "run_json_stream"):
            async for event in self._inner.run_json_stream(arguments, token, **_call_id(self._inner, call_id)):
                yield event
        else:
            yield await self._inner.run_json(arguments, token, **_call_id(self._inner, call_id))


def _call_id(tool: Any, call_id: str | None) -> dict[str, Any]:
    return {"call_id": call_id} if takes(type(tool).run_json, "call_id") else {}
