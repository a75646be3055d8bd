"""A workbench around another one: what stands in the way of calls, and hands everything else on."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from autogen_core import CancellationToken
from autogen_core.tools import TextResultContent, ToolResult, Workbench
from pydantic import BaseModel

from .approval import Approvals, denial
from .work import Work


class AroundWorkbench(Workbench):
    """Asks about each call of another workbench before it is run."""

    component_config_schema = BaseModel

    def __init__(self, inner: Workbench, approvals: Approvals, work: Work) -> None:
        self._inner = inner
        self._approvals = approvals
        self._work = work

    @abstractmethod
    async def run_approved(
        self, name: str, arguments: Mapping[str, Any] | None, token: CancellationToken | None, call_id: str | None
    ) -> ToolResult:
        """Runs a call that may run."""

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
            return await self.run_approved(name, given, cancellation_token, call_id)

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


def told(name: str, text: str, *, failed: bool) -> ToolResult:
    """Gives a result that says *text*."""
    return ToolResult(name=name, result=[TextResultContent(content=text)], is_error=failed)
