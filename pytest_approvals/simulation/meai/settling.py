"""
Approvals in the messages that a caller sends: which are open, which are decided, and where their calls go.

Nothing runs here; the client runs what is approved, and tells afterwards. Sources: dotnet/extensions#6745, #7152,
#7261, #7299, #7468, #7538, #7617.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from .behaviours import Behaviour
from .contents import (
    Content,
    FunctionCall,
    FunctionResult,
    Message,
    ToolApprovalRequest,
    ToolApprovalResponse,
)
from .failures import DuplicateKey, InvalidOperation

Approval = ToolApprovalRequest | ToolApprovalResponse


@dataclass(frozen=True, slots=True)
class Decided:
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
    approved: list[Decided] = field(default_factory=list)
    rejected: list[Decided] = field(default_factory=list)


def is_live(content: Content, behaviour: Behaviour) -> bool:
    """Says whether a content is a request or response about a function that this client has to deal with."""
    if not isinstance(content, ToolApprovalRequest | ToolApprovalResponse) or content.function is None:
        return False
    return behaviour.by_position or not behaviour.has_flags or not content.function.informational_only


def settled(messages: Sequence[Message], behaviour: Behaviour, *, service_keeps: bool = False) -> Settlement | None:
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
    kept, at = _kept(messages, behaviour)
    if behaviour.by_position:
        from .positions import decided_by_position  # stands on this module

        decided = decided_by_position(messages, behaviour, service_keeps=service_keeps)
    else:
        decided = _decided(messages, behaviour)
    return Settlement(
        messages=kept,
        at=at,
        approved=[each for each in decided if each.response.approved],
        rejected=[each for each in decided if not each.response.approved],
    )


def no_response(call_ids: Sequence[str], behaviour: Behaviour) -> InvalidOperation:
    """Gives the failure that names the calls nobody decided about."""
    ids = ", ".join(call_ids)
    return InvalidOperation(
        f"{behaviour.request_type} found with FunctionCall.CallId(s) '{ids}' "
        f"that have no matching {behaviour.response_type}."
    )


def twice_asked(one: ToolApprovalRequest, other: ToolApprovalRequest) -> DuplicateKey:
    """Gives the failure that names the id of two requests, and their calls."""
    calls = ", ".join(request.function.call_id for request in (one, other) if request.function is not None)
    return DuplicateKey(
        f"An item with the same key has already been added. Key: {other.request_id} (requests for calls {calls})"
    )


def _kept(messages: Sequence[Message], behaviour: Behaviour) -> tuple[list[Message], int]:
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


def _decided(messages: Sequence[Message], behaviour: Behaviour) -> list[Decided]:
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
                        raise twice_asked(requests[content.request_id][0], content)
                    requests[content.request_id] = (content, message)
                case ToolApprovalResponse(function=FunctionCall() as call) if is_live(content, behaviour):
                    open_calls.pop(call.call_id, None)
                    responses.append((content, call))
                case ToolApprovalResponse(function=FunctionCall() as call) if behaviour.accepts_flagged_responses:
                    open_calls.pop(call.call_id, None)
                case FunctionResult():
                    done.add(content.call_id)
    if open_calls:
        raise no_response(list(open_calls), behaviour)
    waiting = [(response, call) for response, call in responses if call.call_id not in done]
    return [_decided_one(response, call, requests, behaviour) for response, call in waiting]


def _decided_one(
    response: ToolApprovalResponse,
    call: FunctionCall,
    requests: dict[str, tuple[ToolApprovalRequest, Message]],
    behaviour: Behaviour,
) -> Decided:
    key = response.request_id if behaviour.found_by == "request" else call.call_id
    request, message = requests.get(key, (None, None))
    return Decided(response, call, request, message)


def rebuilt_calls(decided: Sequence[Decided], fallback_id: str | None) -> list[Message]:
    """
    Gives the messages that the model once sent the calls in: one per message id, in order of first use.

    Arguments:
        fallback_id: The id of a message that had none, or is not known.
    """
    current: list[Decided] | None = None
    by_id: dict[str, list[Decided]] | None = None
    for each in decided:
        key = (each.message.message_id or "") if each.message is not None else ""
        if by_id is None and current is not None and each.message is not None and key != _key(current[0]):
            by_id = {_key(current[0]): current}
        if by_id is not None:
            current = by_id.setdefault(key, [])
        elif current is None:
            current = []
        current.append(each)
    groups = list(by_id.values()) if by_id is not None else [current] if current is not None else []
    return [_rebuilt(group, fallback_id) for group in groups]


def _key(each: Decided) -> str:
    return (each.message.message_id or "") if each.message is not None else ""


def _rebuilt(group: Sequence[Decided], fallback_id: str | None) -> Message:
    origin = group[0].message or Message(role="assistant")
    message_id = origin.message_id if origin.message_id is not None else fallback_id
    return replace(origin, contents=tuple(each.call for each in group), message_id=message_id)


def rejection(decided: Decided) -> FunctionResult:
    """Gives what the model is told in place of a result."""
    reason = decided.response.reason
    text = "Tool call invocation rejected."
    return FunctionResult(
        call_id=decided.call.call_id, result=f"{text} {reason}" if reason and reason.strip() else text
    )
