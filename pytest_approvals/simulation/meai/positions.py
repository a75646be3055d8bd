"""
Settlement by position: what is open is read off the order of the messages.

A request is settled by a result for its call that stands after it, or once either of its copies is flagged; so it makes
no difference how many copies a store made of a call, which of them an earlier release has flagged, and whether a call
id was used before. A request is closed once, by a response with its own id, and runs as it was asked. A response is new
where nothing but responses stands after it: a new one that is about no open request is refused, unless the service
keeps the requests; an old one is history. Of two responses that come together a rejection counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from .behaviours import Behaviour
from .contents import FunctionCall, FunctionResult, Message, ToolApprovalRequest, ToolApprovalResponse
from .failures import InvalidOperation
from .settling import Decided, no_response, twice_asked


@dataclass(slots=True)
class _Asked:
    """A request with its response; without a request where the service keeps the conversation."""

    call: FunctionCall
    request: ToolApprovalRequest | None = None
    message: Message | None = None
    response: ToolApprovalResponse | None = None
    done: bool = False

    @property
    def id(self) -> str:
        known = self.request or self.response
        return known.request_id if known is not None else ""


@dataclass(slots=True)
class _Positions:
    """All requests so far, in the order in which they were asked."""

    service_keeps: bool
    asked: list[_Asked] = field(default_factory=list)

    def ask(self, request: ToolApprovalRequest, call: FunctionCall, message: Message) -> None:
        for other in self.unsettled():
            if other.request is not None and other.id == request.request_id:
                if other.call != call:
                    raise twice_asked(other.request, request)
                return
        self.asked.append(_Asked(call, request, message, done=call.informational_only))

    def respond(self, response: ToolApprovalResponse, call: FunctionCall, *, new: bool) -> None:
        found = self._asked_as(response, call)
        if new and not self.service_keeps and (found is None or found.done) and not _was_stored(found, call):
            raise _about_nothing(response, call)
        if found is None:
            done = call.informational_only or not self.service_keeps
            self.asked.append(_Asked(call, response=response, done=done))
        elif not found.done and (found.response is None or not response.approved):
            found.response = response
            found.done = call.informational_only

    def result(self, call_id: str) -> None:
        waiting = [each for each in self.unsettled() if each.call.call_id == call_id]
        answered = [each for each in waiting if each.response is not None]
        for each in (answered or waiting)[:1]:
            each.done = True

    def unsettled(self) -> list[_Asked]:
        return [each for each in self.asked if not each.done]

    def _asked_as(self, response: ToolApprovalResponse, call: FunctionCall) -> _Asked | None:
        by_id = [each for each in self.asked if each.id == response.request_id]
        unfinished = [each for each in by_id if not each.done]
        if unfinished or any(each.request is not None for each in by_id):
            return (unfinished or by_id)[-1]
        by_call = [each for each in self.unsettled() if each.call.call_id == call.call_id and each.response is None]
        return by_call[-1] if by_call else None


def decided_by_position(
    messages: Sequence[Message], behaviour: Behaviour, *, service_keeps: bool = False
) -> list[Decided]:
    """
    Gives what is decided and not settled, in the order of the requests.

    Errors:
        InvalidOperation: A request has no response after it, or a new response is about no open request.
        DuplicateKey: Two open requests for different calls have one id.
    """
    positions = _Positions(service_keeps)
    old = max((place for place, message in enumerate(messages) if not _only_responds(message)), default=-1)
    for place, message in enumerate(messages):
        for content in message.contents:
            match content:
                case ToolApprovalRequest(function=FunctionCall() as call):
                    positions.ask(content, call, message)
                case ToolApprovalResponse(function=FunctionCall() as call):
                    positions.respond(content, call, new=place > old)
                case FunctionResult(call_id=call_id):
                    positions.result(call_id)
    waiting = positions.unsettled()
    if unanswered := [each.call.call_id for each in waiting if each.response is None]:
        raise no_response(unanswered, behaviour)
    return [
        Decided(each.response, each.call, each.request, each.message) for each in waiting if each.response is not None
    ]


def _only_responds(message: Message) -> bool:
    return all(isinstance(content, ToolApprovalResponse) for content in message.contents)


def _was_stored(found: _Asked | None, call: FunctionCall) -> bool:
    """A flagged response was dealt with; one that holds the request's own call may be flagged and new."""
    return call.informational_only and (found is None or call is not found.call)


def _about_nothing(response: ToolApprovalResponse, call: FunctionCall) -> InvalidOperation:
    return InvalidOperation(
        f"The response with the request id '{response.request_id}' (FunctionCall.CallId '{call.call_id}') is about no "
        "open request."
    )
