"""Binding layer of the .NET agent framework in front of the client: only what was shown can be decided.

Outgoing requests are recorded; an incoming response is bound once to the request that it names, and dropped if it names
none. Sources: microsoft/agent-framework#7111.
"""

from __future__ import annotations

import operator
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
"""Key of the recorded requests in a session of the agent framework."""


@dataclass(slots=True)
class ApprovalBinding:
    """Undecided requests that one session has shown.

    Attributes:
        pending: Snapshots of the requests by id; the first one with an id counts. All are forgotten with the next run,
            even if it decides nothing.
    """

    pending: dict[str, ToolApprovalRequest] = field(default_factory=dict)

    def record(self, messages: Iterable[Message]) -> None:
        """Record the outgoing requests about functions."""
        for message in messages:
            for content in message.contents:
                if isinstance(content, ToolApprovalRequest) and content.function is not None:
                    self.pending.setdefault(content.request_id, _snapshot(content, content.function))

    def bind(self, messages: Sequence[Message]) -> list[Message]:
        """Return the messages with every response bound to its request, and forget the recorded requests.

        A request before its response in the messages counts, too, and takes precedence over a recorded one.
        """
        binder = _Binder(dict(self.pending))
        self.pending.clear()
        bound = [(message, tuple(binder.bind_all(message.contents))) for message in messages]
        return [_with_contents(message, contents) for message, contents in bound if contents or not message.contents]

    def to_json(self) -> list[dict[str, Any]]:
        """Return the recorded requests, as stored in a session under STATE_KEY."""
        return [write_content(request) for request in self.pending.values()]

    @classmethod
    def from_json(cls, value: Any) -> ApprovalBinding:
        """Return the layer of a stored session.

        Raises:
            ContentError: The value is not a list of contents.
        """
        requests = MessageReader().contents(value, STATE_KEY)
        return cls({request.request_id: request for request in requests if isinstance(request, ToolApprovalRequest)})


@dataclass(slots=True)
class _Binder:
    """Binder of the messages of one run."""

    recorded: Mapping[str, ToolApprovalRequest]
    asked: dict[str, ToolApprovalRequest] = field(default_factory=dict)
    used: list[ToolApprovalRequest] = field(default_factory=list)

    def bind_all(self, contents: Iterable[Content]) -> list[Content]:
        return [bound for content in contents if (bound := self._bind_content(content)) is not None]

    def _bind_content(self, content: Content) -> Content | None:
        if isinstance(content, ToolApprovalRequest) and content.function is not None:
            self.asked[content.request_id] = content
        if not isinstance(content, ToolApprovalResponse) or content.function is None:
            return content
        return content if content.function.informational_only else self._bind_response(content, content.function)

    def _bind_response(self, response: ToolApprovalResponse, call: FunctionCall) -> ToolApprovalResponse | None:
        request = self.asked.get(response.request_id) or self.recorded.get(response.request_id)
        if request is None or request.function is None or any(request is other for other in self.used):
            return None
        self.used.append(request)
        return (
            response
            if _is_same_call(call, request.function)
            else replace(response, tool_call=request.tool_call, source=None)
        )


@dataclass(frozen=True, slots=True)
class BoundClient:
    """A client behind the binding layer of one session.

    Attributes:
        binding: Memory of the session between two runs.
    """

    client: FunctionInvokingClient
    binding: ApprovalBinding

    async def respond(self, messages: Sequence[Message]) -> list[Message]:
        """Serve a request at once."""
        produced = await self.client.respond(self.binding.bind(messages))
        self.binding.record(produced)
        return produced

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Message]:
        """Serve a request in updates."""
        async for update in self.client.stream(self.binding.bind(messages)):
            self.binding.record([update])
            yield update


def _snapshot(request: ToolApprovalRequest, call: FunctionCall) -> ToolApprovalRequest:
    # A copy, so that nobody can change what was shown; not written as it was read, but anew.
    copied = replace(call, arguments=deepcopy(call.arguments), informational_only=False, source=None)
    return replace(request, tool_call=copied, requires_confirmation=True, source=None)


def _is_same_call(first: FunctionCall, second: FunctionCall) -> bool:
    """Compare as .NET, where two values that were read from JSON are never equal."""
    if (first.call_id, first.name) != (second.call_id, second.name):
        return False
    return first.arguments is second.arguments or not (first.arguments or second.arguments)


def _with_contents(message: Message, contents: tuple[Content, ...]) -> Message:
    unchanged = len(contents) == len(message.contents) and all(map(operator.is_, contents, message.contents))
    return message if unchanged else replace(message, contents=contents)
