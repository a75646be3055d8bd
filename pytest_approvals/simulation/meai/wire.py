"""
Between the neutral types of the harness and messages of Microsoft.Extensions.AI.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_approvals.agent_side.contract import World
from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.agent_side.neutral import Decision, Item, ModelCall, Reply, Request

from .contents import Content, FunctionCall, FunctionResult, Message, Text, ToolApprovalRequest, ToolApprovalResponse


@dataclass(frozen=True, slots=True)
class WorldModel:
    """
    The scripted model, as an inner client.

    Attributes:
        tools: The names that the model is offered.
        message_id: Gives each answer an id.
    """

    world: World
    tools: Sequence[str]
    message_id: Callable[[], str]

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        """Gives the whole answer."""
        reply = await self.world.model(items_of(messages), tools=self.tools)
        contents = (*_texts(reply.say), *map(_call, reply.calls))
        return [Message(role="assistant", contents=contents, message_id=self.message_id())]

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message]:
        """Gives text as it comes and calls at the end, as the provider clients do."""
        reply = await self.world.model(items_of(messages), stream=True, tools=self.tools)
        message_id = self.message_id()
        for chunk in reply.chunks:
            if chunk.text:
                yield Message(role="assistant", contents=(Text(text=chunk.text),), message_id=message_id)
        if reply.breaks:
            raise ModelDown(0, reply.how)
        if reply.calls or not _has_text(reply):
            yield Message(role="assistant", contents=tuple(map(_call, reply.calls)), message_id=message_id)


def items_of(messages: Sequence[Message]) -> list[Item]:
    """Gives what a provider is sent; approvals of functions, which no provider knows, are left out."""
    return [
        item
        for place, message in enumerate(messages)
        for content in message.contents
        for item in _items(content, message.role, place)
    ]


def _items(content: Content, role: str, place: int) -> list[Item]:
    match content:
        case Text(text=text) if text:
            return [Item(kind="user" if role == "user" else "say", text=text, message=place)]
        case FunctionCall():
            arguments = dict(content.arguments or {})
            return [Item(kind="call", id=content.call_id, tool=content.name, arguments=arguments, message=place)]
        case FunctionResult():
            return [Item(kind="result", id=content.call_id, text=told(content.result), message=place)]
        case _:
            return []


def told(result: Any) -> str:
    """Gives a result as the model reads it."""
    return result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)


def _texts(text: str | None) -> tuple[Content, ...]:
    return (Text(text=text),) if text else ()


def _has_text(reply: Reply) -> bool:
    return any(chunk.text for chunk in reply.chunks)


def _call(call: ModelCall) -> FunctionCall:
    arguments = None if isinstance(call.arguments, str) else dict(call.arguments)
    return FunctionCall(call_id=call.id or "", name=call.tool, arguments=arguments)


def shown_request(request: ToolApprovalRequest) -> Request:
    """Gives a request as a person sees it."""
    call = request.function
    assert call is not None
    return Request(
        id=request.request_id,
        call_id=call.call_id,
        tool=call.name,
        arguments=dict(call.arguments or {}),
        handle=request,
    )


def response_to(decision: Decision) -> ToolApprovalResponse:
    """
    Gives a decision as the framework takes it: made by the request that was held, which shares its call; for a request
    that was rebuilt, or tampered with, over a call made from what it says.
    """
    request = decision.request
    assert request is not None
    approved = decision.verdict == "approve"
    held = request.handle
    if isinstance(held, ToolApprovalRequest):
        return held.response(approved, decision.reason)
    arguments = dict(request.arguments) if not isinstance(request.arguments, str) else None
    call = FunctionCall(call_id=request.call_id or "", name=request.tool, arguments=arguments or None)
    return ToolApprovalResponse(request_id=request.id, approved=approved, tool_call=call, reason=decision.reason)
