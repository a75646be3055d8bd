"""
The binding layer that the .NET agent framework puts in front of the client: only what was shown can be decided.

Requests are recorded as they go out; a response that comes in is bound to the request it names, once, and a response
that names none is dropped. Sources: microsoft/agent-framework#7111.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_approvals.simulation.meai.client import FunctionInvokingClient
from pytest_approvals.simulation.meai.contents import (
    Content,
    FunctionCall,
    Message,
    ToolApprovalRequest,
    ToolApprovalResponse,
)
from pytest_approvals.simulation.meai.json_messages import MessageReader, write_content

STATE_KEY = "_pendingApprovalRequests"
"""Where a session of the agent framework keeps the recorded requests."""


@dataclass(slots=True)
class ApprovalBinding:
    """
    What one session has shown and nobody has decided about.

    Attributes:
        pending: Snapshots of the requests by their ids; the first one with an id stays. All are forgotten with the next
            run, whatever that decides.
    """

    pending: dict[str, ToolApprovalRequest] = field(default_factory=dict)

    def record(self, messages: Iterable[Message]) -> None:
        """Records the requests about functions that go out."""
        for message in messages:
            for content in message.contents:
                if isinstance(content, ToolApprovalRequest) and content.function is not None:
                    self.pending.setdefault(content.request_id, _snapshot(content, content.function))

    def bind(self, messages: Sequence[Message]) -> list[Message]:
        """
        Gives the messages with every response bound to what was asked, and forgets what was recorded.

        A request that stands before its response in the messages counts, too, and comes before a recorded one.
        """
        binder = _Binder(dict(self.pending))
        self.pending.clear()
        bound = [(message, tuple(binder.bound(message.contents))) for message in messages]
        return [_with_contents(message, contents) for message, contents in bound if contents or not message.contents]

    def to_json(self) -> list[dict[str, Any]]:
        """Gives the recorded requests, as a session keeps them under STATE_KEY."""
        return [write_content(request) for request in self.pending.values()]

    @classmethod
    def from_json(cls, given: Any) -> ApprovalBinding:
        """
        Gives the layer of a stored session.

        Errors:
            ContentError: That is no list of contents.
        """
        requests = MessageReader().contents(given, STATE_KEY)
        return cls({each.request_id: each for each in requests if isinstance(each, ToolApprovalRequest)})


@dataclass(slots=True)
class _Binder:
    """Walks through the messages of one run."""

    recorded: Mapping[str, ToolApprovalRequest]
    asked: dict[str, ToolApprovalRequest] = field(default_factory=dict)
    used: list[ToolApprovalRequest] = field(default_factory=list)

    def bound(self, contents: Iterable[Content]) -> list[Content]:
        return [kept for content in contents if (kept := self._bound_one(content)) is not None]

    def _bound_one(self, content: Content) -> Content | None:
        if isinstance(content, ToolApprovalRequest) and content.function is not None:
            self.asked[content.request_id] = content
        if not isinstance(content, ToolApprovalResponse) or content.function is None:
            return content
        return content if content.function.informational_only else self._bound_response(content, content.function)

    def _bound_response(self, response: ToolApprovalResponse, call: FunctionCall) -> ToolApprovalResponse | None:
        request = self.asked.get(response.request_id) or self.recorded.get(response.request_id)
        if request is None or request.function is None or any(request is each for each in self.used):
            return None
        self.used.append(request)
        return (
            response
            if _is_same_call(call, request.function)
            else replace(response, tool_call=request.tool_call, source=None)
        )


@dataclass(frozen=True, slots=True)
class BoundClient:
    """
    A client behind the binding layer of one session.

    Attributes:
        binding: What the session remembers between two runs.
    """

    client: FunctionInvokingClient
    binding: ApprovalBinding

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        """Serves a request at once, as the client does."""
        produced = await self.client.respond(self.binding.bind(messages))
        self.binding.record(produced)
        return produced

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message]:
        """Serves a request in updates, as the client does."""
        async for update in self.client.stream(self.binding.bind(messages)):
            self.binding.record([update])
            yield update


def _snapshot(request: ToolApprovalRequest, call: FunctionCall) -> ToolApprovalRequest:
    copied = replace(call, arguments=deepcopy(call.arguments), informational_only=False, source=None)
    return replace(request, tool_call=copied, requires_confirmation=True, source=None)


def _is_same_call(one: FunctionCall, other: FunctionCall) -> bool:
    """Compares as .NET does, where two values that were read from JSON are never equal."""
    if (one.call_id, one.name) != (other.call_id, other.name):
        return False
    return one.arguments is other.arguments or not (one.arguments or other.arguments)


def _with_contents(message: Message, contents: tuple[Content, ...]) -> Message:
    unchanged = len(contents) == len(message.contents) and all(map(_identical, contents, message.contents))
    return message if unchanged else replace(message, contents=contents)


def _identical(one: Content, other: Content) -> bool:
    return one is other
