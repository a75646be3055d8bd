"""Settlement of approvals in the caller's messages: which are open, which are decided, and where their calls go.

Nothing runs here; the client runs what is approved. The releases settle by flags and ids, `robust` by position: what is
open is derived from the order of the messages. A request is settled by a later result for its call, or once either of
its copies is flagged; so it does not matter how many copies a store made of a call, which of them an earlier release
has flagged, and whether a call id was used before. A request is closed once, by a response with its own id, and
executed as it was shown. A response is new if only responses follow it: a new one about no open request is refused,
unless the service keeps the requests; an old one is history. Of two simultaneous responses a rejection counts.

Sources: dotnet/extensions#6745, #7152, #7261, #7299, #7468, #7538, #7617.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from pytest_approvals.simulation.meai.contents import (
    Content,
    FunctionCall,
    FunctionResult,
    Message,
    ToolApprovalRequest,
    ToolApprovalResponse,
)
from pytest_approvals.simulation.meai.releases import ReleaseBehaviour


class ClientFailure(Exception):
    """A failed request to the client.

    Attributes:
        type: Kind of failure in an outcome.
    """

    type = ""


class InvalidOperation(ClientFailure):
    """A request without a response, or a model that returned null: InvalidOperationException."""

    type = "InvalidOperation"


class DuplicateKey(ClientFailure):
    """Two open requests with the same id: ArgumentException."""

    type = "DuplicateKey"


class ToolError(ClientFailure):
    """Tools failed too often in a row.

    Args:
        failures: Tool, call id and message of each last failure.
    """

    type = "ToolError"

    def __init__(self, failures: Sequence[tuple[str, str, str]]) -> None:
        self.failures = tuple(failures)
        super().__init__("; ".join(f"{message} ({tool}, call {call_id})" for tool, call_id, message in failures))


Approval = ToolApprovalRequest | ToolApprovalResponse


@dataclass(frozen=True, slots=True)
class OpenDecision:
    """A response that still has to take effect.

    Attributes:
        call: Call to run or reject.
        request, message: Its request, and the message with it; None if the caller did not send them.
    """

    response: ToolApprovalResponse
    call: FunctionCall
    request: ToolApprovalRequest | None = None
    message: Message | None = None

    def mark_request(self) -> None:
        """Flag the call of the request, which may be the same object as that of the response."""
        if self.request is not None and self.request.function is not None:
            self.request.function.settle()


@dataclass(slots=True)
class Settlement:
    """The remaining messages, and the decisions.

    Attributes:
        messages: Messages without open requests and responses.
        at: Position for calls and results.
    """

    messages: list[Message]
    at: int
    approved: list[OpenDecision] = field(default_factory=list)
    rejected: list[OpenDecision] = field(default_factory=list)


def is_live(content: Content, behaviour: ReleaseBehaviour) -> bool:
    """Return whether a content is a request or response about a function that this client has to handle."""
    if not isinstance(content, ToolApprovalRequest | ToolApprovalResponse) or content.function is None:
        return False
    return behaviour.by_position or not behaviour.has_flags or not content.function.informational_only


def settle_approvals(
    messages: Sequence[Message], behaviour: ReleaseBehaviour, *, service_keeps: bool = False
) -> Settlement | None:
    """Return the decisions; None if no request and no response is open.

    Args:
        messages: Messages of the caller.
        behaviour: The releases.
        service_keeps: The service keeps the conversation, so requests may be missing in the messages.

    Raises:
        InvalidOperation: A request has no response after it.
        DuplicateKey: Two requests have the same id.
    """
    if not any(is_live(content, behaviour) for message in messages for content in message.contents):
        return None
    remaining, at = _remove_open_approvals(messages, behaviour)
    if behaviour.by_position:
        decisions = settle_by_position(messages, behaviour, service_keeps=service_keeps)
    else:
        decisions = _match_responses(messages, behaviour)
    return Settlement(
        messages=remaining,
        at=at,
        approved=[decision for decision in decisions if decision.response.approved],
        rejected=[decision for decision in decisions if not decision.response.approved],
    )


def missing_response_error(call_ids: Sequence[str], behaviour: ReleaseBehaviour) -> InvalidOperation:
    """Return the error that names the undecided calls."""
    ids = ", ".join(call_ids)
    return InvalidOperation(
        f"{behaviour.request_type} found with FunctionCall.CallId(s) '{ids}' "
        f"that have no matching {behaviour.response_type}."
    )


def duplicate_request_error(first: ToolApprovalRequest, second: ToolApprovalRequest) -> DuplicateKey:
    """Return the error that names the common id of two requests, and their calls."""
    calls = ", ".join(request.function.call_id for request in (first, second) if request.function is not None)
    return DuplicateKey(
        f"An item with the same key has already been added. Key: {second.request_id} (requests for calls {calls})"
    )


def _remove_open_approvals(messages: Sequence[Message], behaviour: ReleaseBehaviour) -> tuple[list[Message], int]:
    """Return the messages without open requests and responses, and the position for their calls and results."""
    remaining: list[Message] = []
    at = 0
    for message in messages:
        contents = tuple(content for content in message.contents if not is_live(content, behaviour))
        if len(contents) < len(message.contents):
            at = len(remaining)
        if contents:
            remaining.append(message if len(contents) == len(message.contents) else replace(message, contents=contents))
    return remaining, at if behaviour.anchored else len(remaining)


def _match_responses(messages: Sequence[Message], behaviour: ReleaseBehaviour) -> list[OpenDecision]:
    """Check that every request has a response, and return the responses whose call has no result yet."""
    requests: dict[str, tuple[ToolApprovalRequest, Message]] = {}
    open_calls: dict[str, None] = {}
    responses: list[tuple[ToolApprovalResponse, FunctionCall]] = []
    done: set[str] = set()
    for message in messages:
        for content in message.contents:
            match content:
                case ToolApprovalRequest(function=FunctionCall() as call) if is_live(content, behaviour):
                    open_calls[call.call_id] = None
                    if content.request_id in requests:
                        raise duplicate_request_error(requests[content.request_id][0], content)
                    requests[content.request_id] = (content, message)
                case ToolApprovalResponse(function=FunctionCall() as call) if is_live(content, behaviour):
                    open_calls.pop(call.call_id, None)
                    responses.append((content, call))
                case ToolApprovalResponse(function=FunctionCall() as call) if behaviour.accepts_flagged_responses:
                    open_calls.pop(call.call_id, None)
                case FunctionResult():
                    done.add(content.call_id)
    if open_calls:
        raise missing_response_error(list(open_calls), behaviour)
    waiting = [(response, call) for response, call in responses if call.call_id not in done]
    return [_match_response(response, call, requests, behaviour) for response, call in waiting]


def _match_response(
    response: ToolApprovalResponse,
    call: FunctionCall,
    requests: dict[str, tuple[ToolApprovalRequest, Message]],
    behaviour: ReleaseBehaviour,
) -> OpenDecision:
    key = response.request_id if behaviour.found_by == "request" else call.call_id
    request, message = requests.get(key, (None, None))
    return OpenDecision(response, call, request, message)


def rebuild_calls(decisions: Sequence[OpenDecision], fallback_id: str | None) -> list[Message]:
    """Return the messages in which the model sent the calls: one per message id, in order of first use.

    Args:
        decisions: The decisions.
        fallback_id: Id for messages without one.
    """
    current: list[OpenDecision] | None = None
    by_id: dict[str, list[OpenDecision]] | None = None
    for decision in decisions:
        key = (decision.message.message_id or "") if decision.message is not None else ""
        # As in .NET, ids separate the calls only from the second id on.
        if by_id is None and current is not None and decision.message is not None and key != _message_key(current[0]):
            by_id = {_message_key(current[0]): current}
        if by_id is not None:
            current = by_id.setdefault(key, [])
        elif current is None:
            current = []
        current.append(decision)
    groups = list(by_id.values()) if by_id is not None else [current] if current is not None else []
    return [_rebuild_message(group, fallback_id) for group in groups]


def _message_key(decision: OpenDecision) -> str:
    return (decision.message.message_id or "") if decision.message is not None else ""


def _rebuild_message(group: Sequence[OpenDecision], fallback_id: str | None) -> Message:
    origin = group[0].message or Message(role="assistant")
    message_id = origin.message_id if origin.message_id is not None else fallback_id
    return replace(origin, contents=tuple(decision.call for decision in group), message_id=message_id)


def build_rejection(decided: OpenDecision) -> FunctionResult:
    """Return the result that the model gets for a rejected call."""
    reason = decided.response.reason
    text = "Tool call invocation rejected."
    return FunctionResult(
        call_id=decided.call.call_id, result=f"{text} {reason}" if reason and reason.strip() else text
    )


@dataclass(slots=True)
class _PositionedRequest:
    """A request with its response; without a request if the service keeps the conversation."""

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
class _RequestLedger:
    """All requests so far, in their order."""

    service_keeps: bool
    asked: list[_PositionedRequest] = field(default_factory=list)

    def ask(self, request: ToolApprovalRequest, call: FunctionCall, message: Message) -> None:
        for other in self.unsettled():
            if other.request is not None and other.id == request.request_id:
                if other.call != call:
                    raise duplicate_request_error(other.request, request)
                return
        self.asked.append(_PositionedRequest(call, request, message, done=call.informational_only))

    def respond(self, response: ToolApprovalResponse, call: FunctionCall, *, new: bool) -> None:
        known = self._find_request(response, call)
        if new and not self.service_keeps and (known is None or known.done) and not _was_stored(known, call):
            raise _unmatched_response_error(response, call)
        if known is None:
            done = call.informational_only or not self.service_keeps
            self.asked.append(_PositionedRequest(call, response=response, done=done))
        elif not known.done and (known.response is None or not response.approved):
            known.response = response
            known.done = call.informational_only

    def result(self, call_id: str) -> None:
        waiting = [request for request in self.unsettled() if request.call.call_id == call_id]
        answered = [request for request in waiting if request.response is not None]
        for request in (answered or waiting)[:1]:
            request.done = True

    def unsettled(self) -> list[_PositionedRequest]:
        return [request for request in self.asked if not request.done]

    def _find_request(self, response: ToolApprovalResponse, call: FunctionCall) -> _PositionedRequest | None:
        by_id = [request for request in self.asked if request.id == response.request_id]
        unfinished = [request for request in by_id if not request.done]
        if unfinished or any(request.request is not None for request in by_id):
            return (unfinished or by_id)[-1]
        by_call = [
            request for request in self.unsettled() if request.call.call_id == call.call_id and request.response is None
        ]
        return by_call[-1] if by_call else None


def settle_by_position(
    messages: Sequence[Message], behaviour: ReleaseBehaviour, *, service_keeps: bool = False
) -> list[OpenDecision]:
    """Return the decisions that are not settled, in the order of the requests.

    Raises:
        InvalidOperation: A request has no response after it, or a new response is about no open request.
        DuplicateKey: Two open requests for different calls have the same id.
    """
    positions = _RequestLedger(service_keeps)
    # Only responses behind all other messages are new; the others are history.
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
    if unanswered := [request.call.call_id for request in waiting if request.response is None]:
        raise missing_response_error(unanswered, behaviour)
    return [
        OpenDecision(request.response, request.call, request.request, request.message)
        for request in waiting
        if request.response is not None
    ]


def _only_responds(message: Message) -> bool:
    return all(isinstance(content, ToolApprovalResponse) for content in message.contents)


def _was_stored(request: _PositionedRequest | None, call: FunctionCall) -> bool:
    """Return whether a response was already settled when it was stored; one with the request's own call may be new."""
    return call.informational_only and (request is None or call is not request.call)


def _unmatched_response_error(response: ToolApprovalResponse, call: FunctionCall) -> InvalidOperation:
    return InvalidOperation(
        f"The response with the request id '{response.request_id}' (FunctionCall.CallId '{call.call_id}') is about no "
        "open request."
    )
