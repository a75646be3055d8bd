"""The approval design that was asked for in microsoft/autogen#5891, which the framework does not have.

An approval function is asked before a tool runs; there may be one for a tool and one for an agent, and where there is
none the call is approved. It answers with a result that has a reason and may have other arguments. What it asks and
what it was told are events of the run, which a consumer of `run_stream` sees.

Requests and decisions in the neutral form.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import uuid4

from autogen_agentchat.messages import BaseAgentEvent
from autogen_core import CancellationToken
from autogen_core.models import LLMMessage
from pydantic import BaseModel, Field

from ...contract import Decision, Request, ToolSpec, Unsupported


class ToolApprovalRequest(BaseModel):
    """
    What an approval function is asked.

    Attributes:
        context: The conversation of the agent that asks, the call itself being its last message.
    """

    request_id: str = Field(default_factory=lambda: str(uuid4()))
    agent: str
    tool: str
    arguments: Any
    call_id: str | None = None
    context: list[LLMMessage] = Field(default_factory=list, exclude=True)

    def is_about(self, other: ToolApprovalRequest) -> bool:
        """Says whether both ask about one call; older releases tell a tool nothing of the call's id."""
        same = (self.tool, self.arguments) == (other.tool, other.arguments)
        return same if self.call_id is None else (self.tool, self.call_id) == (other.tool, other.call_id)


class ToolApprovalResult(BaseModel):
    """What an approval function answers; *arguments* stand in place of those that the model wrote."""

    approved: bool
    reason: str | None = None
    arguments: dict[str, Any] | None = None


class ToolApprovalRequestEvent(BaseAgentEvent):
    """A person is asked about a call."""

    content: ToolApprovalRequest
    type: Literal["ToolApprovalRequestEvent"] = "ToolApprovalRequestEvent"

    def to_text(self) -> str:
        """See `BaseAgentEvent.to_text`."""
        return f"May {self.content.tool} run with {self.content.arguments}?"


class ToolApprovalResultEvent(BaseAgentEvent):
    """A person answered."""

    content: ToolApprovalResult
    request_id: str
    type: Literal["ToolApprovalResultEvent"] = "ToolApprovalResultEvent"

    def to_text(self) -> str:
        """See `BaseAgentEvent.to_text`."""
        return "approved" if self.content.approved else denial_text(self.content)


ApprovalFunction = Callable[[ToolApprovalRequest, Callable[[BaseAgentEvent], None]], Awaitable[ToolApprovalResult]]
"""Answers a request; what it tells its second argument becomes an event of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """
    The approval functions of one agent.

    Attributes:
        tools: Those of single tools.
        every: That of the agent, for tools that have none; None approves.
        context: Gives the conversation of the agent.
    """

    agent: str
    tools: Mapping[str, ApprovalFunction] = field(default_factory=dict)
    every: ApprovalFunction | None = None
    context: Callable[[], Awaitable[list[LLMMessage]]] | None = None

    async def asked(
        self, tool: str, arguments: Any, call_id: str | None, token: CancellationToken | None
    ) -> AsyncIterator[BaseAgentEvent | ToolApprovalResult]:
        """Asks about a call, and gives the events of that and the result at last."""
        function = self.tools.get(tool, self.every)
        if function is None:
            yield ToolApprovalResult(approved=True)
            return
        context = await self.context() if self.context is not None else []
        request = ToolApprovalRequest(
            agent=self.agent, tool=tool, arguments=arguments, call_id=call_id, context=context
        )
        events: asyncio.Queue[BaseAgentEvent | None] = asyncio.Queue()
        answer = asyncio.ensure_future(function(request, events.put_nowait))
        answer.add_done_callback(lambda _: events.put_nowait(None))
        if token is not None:
            token.link_future(answer)
        while (event := await events.get()) is not None:
            yield event
        yield answer.result()

    async def answer(
        self, tool: str, arguments: Any, call_id: str | None, token: CancellationToken | None
    ) -> ToolApprovalResult:
        """Asks about a call where nobody can be shown the events."""
        async for one in self.asked(tool, arguments, call_id, token):
            if isinstance(one, ToolApprovalResult):
                return one
        raise AssertionError("an approval function ends with a result")


def denial_text(result: ToolApprovalResult) -> str:
    """Gives what the model is told of a call that was not approved."""
    return f"Tool execution not approved: {result.reason or 'No reason provided.'}"


def read_request(request: ToolApprovalRequest, specs: Iterable[ToolSpec]) -> Request:
    """Gives what a person is shown."""
    spec = next((one for one in specs if (one.agent, one.name) == (request.agent, request.tool)), None)
    return Request(
        id=request.request_id,
        call_id=request.call_id,
        tool=request.tool,
        arguments=_shown_arguments(request.arguments),
        agent=request.agent,
        kind=spec.kind if spec is not None else "function",
        server=spec.server if spec is not None else None,
        handle=request,
    )


def _shown_arguments(arguments: Any) -> Any:
    return dict(arguments) if isinstance(arguments, Mapping) else json.dumps(arguments)


def write_decision(decision: Decision) -> ToolApprovalResult:
    """Gives what an approval function answers."""
    if decision.verdict == "approve":
        return ToolApprovalResult(approved=True)
    if decision.verdict == "reject":
        return ToolApprovalResult(approved=False, reason=decision.reason)
    if decision.verdict == "edit" and decision.tool is None:
        return ToolApprovalResult(approved=True, arguments=dict(decision.arguments or {}))
    raise Unsupported(decision.verdict, "an approval result is about one call and its arguments")
