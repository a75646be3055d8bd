"""The intervention handler that asks a person about each call."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

from autogen_core import AgentId, DefaultInterventionHandler, DropMessage, FunctionCall, MessageContext
from autogen_core.tool_agent import ToolException

from ...contract import Decision
from .answers import result_of
from .approval import Approvals, ToolApprovalResult, denial
from .messages import shown
from .work import Work


class HandlerAnswer(ToolApprovalResult):
    """
    What a person answers a handler.

    Attributes:
        tool: Another tool that the call goes to.
        raw: What the handler returns in place of a message, alone in it.
    """

    tool: str | None = None
    raw: tuple[Any, ...] = ()


def answer_of(decision: Decision) -> HandlerAnswer:
    """Gives a decision as a handler can carry it out."""
    if decision.verdict == "raw":
        return HandlerAnswer(approved=True, raw=(decision.raw,))
    if decision.verdict == "edit":
        return HandlerAnswer(approved=True, tool=decision.tool, arguments=dict(decision.arguments or {}))
    return HandlerAnswer(**result_of(decision).model_dump())


class Asking(DefaultInterventionHandler):
    """
    Asks about each `FunctionCall` that is sent.

    Arguments:
        options: `reject_by: drop` lets a call that a person refuses be dropped, which is the handler's other way to
            keep a message from being delivered.
    """

    def __init__(self, approvals: Approvals, work: Work, options: Mapping[str, Any]) -> None:
        self._approvals = approvals
        self._work = work
        self._drops = options.get("reject_by") == "drop"

    async def on_send(self, message: Any, *, message_context: MessageContext, recipient: AgentId) -> Any:
        """See `InterventionHandler.on_send`."""
        if not isinstance(message, FunctionCall):
            return message
        # What is being worked on is told by the task, and the runtime handles all messages in one.
        result = await asyncio.create_task(self._asked(message, message_context))
        if not result.approved:
            if self._drops:
                return DropMessage
            raise ToolException(call_id=message.id, content=denial(result), name=message.name)
        return _delivered(message, result)

    async def _asked(self, call: FunctionCall, context: MessageContext) -> ToolApprovalResult:
        with self._work.entered(call.id, call.name):
            return await self._approvals.answer(call.name, shown(call.arguments), call.id, context.cancellation_token)


def _delivered(call: FunctionCall, result: ToolApprovalResult) -> Any:
    if isinstance(result, HandlerAnswer) and result.raw:
        return result.raw[0]
    if result.arguments is None:
        return call
    tool = getattr(result, "tool", None) or call.name
    return FunctionCall(id=call.id, name=tool, arguments=json.dumps(result.arguments))
