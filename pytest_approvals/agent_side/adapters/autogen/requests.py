"""Approval functions, their requests and decisions, which the framework does not have.

The design is the one that was requested in microsoft/autogen#5891. An approval function is called before a tool runs;
there may be one for a tool and one for an agent, and without any the call is approved. It returns a result that has a
reason and may have other arguments. Its request and its result are events of the run, which a consumer of `run_stream`
sees.
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
    """Argument of an approval function.

    Attributes:
        context: The conversation of the agent that asks; the call itself is its last message.
        changed_from: What the arguments were before the user changed them, if the tool asks again since.
    """

    request_id: str = Field(default_factory=lambda: str(uuid4()))
    agent: str
    tool: str
    arguments: Any
    call_id: str | None = None
    context: list[LLMMessage] = Field(default_factory=list, exclude=True)
    changed_from: Any = None

    def is_about(self, other: ToolApprovalRequest) -> bool:
        """Return whether both ask about one call; in older releases tools get no call id."""
        same = (self.tool, self.arguments) == (other.tool, other.arguments)
        return same if self.call_id is None else (self.tool, self.call_id) == (other.tool, other.call_id)


class ToolApprovalResult(BaseModel):
    """Result of an approval function; *arguments* replace those of the model."""

    approved: bool
    reason: str | None = None
    arguments: dict[str, Any] | None = None


class ToolApprovalRequestEvent(BaseAgentEvent):
    """The user is asked about a call."""

    content: ToolApprovalRequest
    type: Literal["ToolApprovalRequestEvent"] = "ToolApprovalRequestEvent"

    def to_text(self) -> str:
        """See `BaseAgentEvent.to_text`."""
        return f"May {self.content.tool} run with {self.content.arguments}?"


class ToolApprovalResultEvent(BaseAgentEvent):
    """The user answered."""

    content: ToolApprovalResult
    request_id: str
    type: Literal["ToolApprovalResultEvent"] = "ToolApprovalResultEvent"

    def to_text(self) -> str:
        """See `BaseAgentEvent.to_text`."""
        return "approved" if self.content.approved else denial_text(self.content)


ApprovalFunction = Callable[[ToolApprovalRequest, Callable[[BaseAgentEvent], None]], Awaitable[ToolApprovalResult]]
"""Answers a request; what it passes to its second argument becomes an event of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approvals:
    """Approval functions of one agent.

    Attributes:
        agent: The agent.
        tools: Those of single tools.
        every: That of the agent, for tools that have none; None approves.
        context: Returns the conversation of the agent.
    """

    agent: str
    tools: Mapping[str, ApprovalFunction] = field(default_factory=dict)
    every: ApprovalFunction | None = None
    context: Callable[[], Awaitable[list[LLMMessage]]] | None = None

    async def ask(
        self, tool: str, arguments: Any, call_id: str | None, token: CancellationToken | None
    ) -> AsyncIterator[BaseAgentEvent | ToolApprovalResult]:
        """Ask about a call, and yield the events of that and finally the result."""
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
        # Events are shown while the function waits for the user, and None ends them.
        answer.add_done_callback(lambda _: events.put_nowait(None))
        if token is not None:
            token.link_future(answer)
        while (event := await events.get()) is not None:
            yield event
        yield answer.result()

    async def answer(
        self, tool: str, arguments: Any, call_id: str | None, token: CancellationToken | None
    ) -> ToolApprovalResult:
        """Ask about a call where no consumer sees the events."""
        async for event in self.ask(tool, arguments, call_id, token):
            if isinstance(event, ToolApprovalResult):
                return event
        raise AssertionError("an approval function ends with a result")


def denial_text(result: ToolApprovalResult) -> str:
    """Return the result that the model gets for a call that was not approved."""
    return f"Tool execution not approved: {result.reason or 'No reason provided.'}"


def read_request(request: ToolApprovalRequest, specs: Iterable[ToolSpec]) -> Request:
    """Return the neutral request."""
    spec = next(
        (candidate for candidate in specs if (candidate.agent, candidate.name) == (request.agent, request.tool)), None
    )
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
    """Return a decision as the result of an approval function."""
    if decision.verdict == "approve":
        return ToolApprovalResult(approved=True)
    if decision.verdict == "reject":
        return ToolApprovalResult(approved=False, reason=decision.reason)
    if decision.verdict == "edit" and decision.tool is None:
        return ToolApprovalResult(approved=True, arguments=dict(decision.arguments or {}))
    raise Unsupported(decision.verdict, "an approval result is about one call and its arguments")
