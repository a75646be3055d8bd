"""Approvals in the messages that a caller sends: which are open, which are decided, and where their calls go.

Nothing runs here; the client runs what is approved, and tells afterwards. Sources: dotnet/extensions#6745, #7152,
#7261, #7299, #7468, #7538, #7617.

Settlement by position: what is open is read off the order of the messages.

A request is settled by a result for its call that stands after it, or once either of its copies is flagged; so it makes
no difference how many copies a store made of a call, which of them an earlier release has flagged, and whether a call
id was used before. A request is closed once, by a response with its own id, and runs as it was asked. A response is new
where nothing but responses stands after it: a new one that is about no open request is refused, unless the service
keeps the requests; an old one is history. Of two responses that come together a rejection counts.
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
from pytest_approvals.simulation.meai.errors import DuplicateKey, InvalidOperation
from pytest_approvals.simulation.meai.releases import ReleaseBehaviour

Approval = ToolApprovalRequest | ToolApprovalResponse


@dataclass(frozen=True, slots=True)
class OpenDecision:
    """
    A response that something is to be done about.

    Attributes:
        call: The call that runs, or is rejected.
        request, message: What it answers, and where that stood; None where the caller did not send it.
    """

    response: ToolApprovalResponse
    call: FunctionCall
    request: ToolApprovalRequest | None = None
    message: Message | None = None

    def mark_request(self) -> None:
        """Flags the request's own call, which may be the same object as the response's."""
        if self.request is not None and self.request.function is not None:
            self.request.function.settle()


@dataclass(slots=True)
class Settlement:
    """
    What is left of the messages, and what was decided.

    Attributes:
        messages: Without open requests and responses.
        at: Where calls and results go.
    """

    messages: list[Message]
    at: int
    approved: list[OpenDecision] = field(default_factory=list)
    rejected: list[OpenDecision] = field(default_factory=list)


def is_live(content: Content, behaviour: ReleaseBehaviour) -> bool:
    """Says whether a content is a request or response about a function that this client has to deal with."""
    if not isinstance(content, ToolApprovalRequest | ToolApprovalResponse) or content.function is None:
        return False
    return behaviour.by_position or not behaviour.has_flags or not content.function.informational_only


def settle_approvals(
    messages: Sequence[Message], behaviour: ReleaseBehaviour, *, service_keeps: bool = False
) -> Settlement | None:
    """
    Gives what was decided; None where no request and no response is open.

    Arguments:
        service_keeps: What was asked need not stand in the messages, as the service has it.

    Errors:
        InvalidOperation: A request has no response after it.
        DuplicateKey: Two requests have one id.
    """
    if not any(is_live(content, behaviour) for message in messages for content in message.contents):
        return None
    kept, at = _remove_open_approvals(messages, behaviour)
    if behaviour.by_position:
        # stands on this module

        decided = settle_by_position(messages, behaviour, service_keeps=service_keeps)
    else:
        decided = _match_responses(messages, behaviour)
    return Settlement(
        messages=kept,
        at=at,
        approved=[each for each in decided if each.response.approved],
        rejected=[each for each in decided if not each.response.approved],
    )


def missing_response_error(call_ids: Sequence[str], behaviour: ReleaseBehaviour) -> InvalidOperation:
    """Gives the failure that names the calls nobody decided about."""
    ids = ", ".join(call_ids)
    return InvalidOperation(
        f"{behaviour.request_type} found with FunctionCall.CallId(s) '{ids}' "
        f"that have no matching {behaviour.response_type}."
    )


def duplicate_request_error(one: ToolApprovalRequest, other: ToolApprovalRequest) -> DuplicateKey:
    """Gives the failure that names the id of two requests, and their calls."""
    calls = ", ".join(request.function.call_id for request in (one, other) if request.function is not None)
    return DuplicateKey(
        f"An item with the same key has already been added. Key: {other.request_id} (requests for calls {calls})"
    )


def _remove_open_approvals(messages: Sequence[Message], behaviour: ReleaseBehaviour) -> tuple[list[Message], int]:
    """Takes open requests and responses out; gives what is left, and where their calls and results go."""
    kept: list[Message] = []
    at = 0
    for message in messages:
        contents = tuple(content for content in message.contents if not is_live(content, behaviour))
        if len(contents) < len(message.contents):
            at = len(kept)
        if contents:
            kept.append(message if len(contents) == len(message.contents) else replace(message, contents=contents))
    return kept, at if behaviour.anchored else len(kept)


def _match_responses(messages: Sequence[Message], behaviour: ReleaseBehaviour) -> list[OpenDecision]:
    """Checks that every request has a response, and gives the responses whose call has no result yet."""
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


def rebuild_calls(decided: Sequence[OpenDecision], fallback_id: str | None) -> list[Message]:
    """
    Gives the messages that the model once sent the calls in: one per message id, in order of first use.

    Arguments:
        fallback_id: The id of a message that had none, or is not known.
    """
    current: list[OpenDecision] | None = None
    by_id: dict[str, list[OpenDecision]] | None = None
    for each in decided:
        key = (each.message.message_id or "") if each.message is not None else ""
        if by_id is None and current is not None and each.message is not None and key != _message_key(current[0]):
            by_id = {_message_key(current[0]): current}
        if by_id is not None:
            current = by_id.setdefault(key, [])
        elif current is None:
            current = []
        current.append(each)
    groups = list(by_id.values()) if by_id is not None else [current] if current is not None else []
    return [_rebuild_message(group, fallback_id) for group in groups]


def _message_key(each: OpenDecision) -> str:
    return (each.message.message_id or "") if each.message is not None else ""


def _rebuild_message(group: Sequence[OpenDecision], fallback_id: str | None) -> Message:
    origin = group[0].message or Message(role="assistant")
    message_id = origin.message_id if origin.message_id is not None else fallback_id
    return replace(origin, contents=tuple(each.call for each in group), message_id=message_id)


def build_rejection(decided: OpenDecision) -> FunctionResult:
    """Gives what the model is told in place of a result."""
    reason = decided.response.reason
    text = "Tool call invocation rejected."
    return FunctionResult(
        call_id=decided.call.call_id, result=f"{text} {reason}" if reason and reason.strip() else text
    )


@dataclass(slots=True)
class _PositionedRequest:
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
class _RequestLedger:
    """All requests so far, in the order in which they were asked."""

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
        found = self._asked_as(response, call)
        if new and not self.service_keeps and (found is None or found.done) and not _was_stored(found, call):
            raise _unmatched_response_error(response, call)
        if found is None:
            done = call.informational_only or not self.service_keeps
            self.asked.append(_PositionedRequest(call, response=response, done=done))
        elif not found.done and (found.response is None or not response.approved):
            found.response = response
            found.done = call.informational_only

    def result(self, call_id: str) -> None:
        waiting = [each for each in self.unsettled() if each.call.call_id == call_id]
        answered = [each for each in waiting if each.response is not None]
        for each in (answered or waiting)[:1]:
            each.done = True

    def unsettled(self) -> list[_PositionedRequest]:
        return [each for each in self.asked if not each.done]

    def _asked_as(self, response: ToolApprovalResponse, call: FunctionCall) -> _PositionedRequest | None:
        by_id = [each for each in self.asked if each.id == response.request_id]
        unfinished = [each for each in by_id if not each.done]
        if unfinished or any(each.request is not None for each in by_id):
            return (unfinished or by_id)[-1]
        by_call = [each for each in self.unsettled() if each.call.call_id == call.call_id and each.response is None]
        return by_call[-1] if by_call else None


def settle_by_position(
    messages: Sequence[Message], behaviour: ReleaseBehaviour, *, service_keeps: bool = False
) -> list[OpenDecision]:
    """
    Gives what is decided and not settled, in the order of the requests.

    Errors:
        InvalidOperation: A request has no response after it, or a new response is about no open request.
        DuplicateKey: Two open requests for different calls have one id.
    """
    positions = _RequestLedger(service_keeps)
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
        raise missing_response_error(unanswered, behaviour)
    return [
        OpenDecision(each.response, each.call, each.request, each.message)
        for each in waiting
        if each.response is not None
    ]


def _only_responds(message: Message) -> bool:
    return all(isinstance(content, ToolApprovalResponse) for content in message.contents)


def _was_stored(found: _PositionedRequest | None, call: FunctionCall) -> bool:
    """A flagged response was dealt with; one that holds the request's own call may be flagged and new."""
    return call.informational_only and (found is None or call is not found.call)


def _unmatched_response_error(response: ToolApprovalResponse, call: FunctionCall) -> InvalidOperation:
    return InvalidOperation(
        f"The response with the request id '{response.request_id}' (FunctionCall.CallId '{call.call_id}') is about no "
        "open request."
    )
