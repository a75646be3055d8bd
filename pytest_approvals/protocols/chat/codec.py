"""Codec of Chat Completions, and neutral rule violations in OpenAI's words.

The sentences are those of real responses, as people quote them: agno-agi/agno#4345 (a call without a result) and
agno-agi/agno#5116 (a second result).

Reasoning is `reasoning_content`, which is no field of OpenAI's own: DeepSeek, Moonshot and others send it beside
`content`, and in the deltas of a stream (DeepSeek's documentation of the thinking mode, 2026-11-25).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown, Unsupported
from pytest_approvals.agent_side.contract.types import Chunk, Item, ModelCall, Reply
from pytest_approvals.protocols.chat.requests import SHAPE, TYPES, parse_request, read_more
from pytest_approvals.protocols.codec import (
    PLACEHOLDER,
    MoreMessages,
    OpenAICodec,
    ParsedRequest,
    RequestTarget,
    reject_hosted,
)
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import (
    ProviderError,
    TypeProblem,
    empty_array,
    missing_parameter,
    openai_type_error,
)
from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle
from pytest_approvals.protocols.text import arguments_text, to_json, to_json_bytes

_NO_HOSTED = "Chat Completions has no items for it"


class ChatCodec(OpenAICodec):
    """One conversation in Chat Completions, which stores nothing between two requests."""

    name = "chat"
    path = "/chat/completions"
    id_prefix = "chatcmpl-"
    shape_rules = SHAPE
    published_types = TYPES
    messages_field = "messages"

    def _express_type(self, problem: TypeProblem) -> ProviderError:
        # Below the top, the API names a path (i-am-bee/beeai-framework#980).
        if problem.how == "unknown" and len(problem.path) == 1:
            return openai_type_error(problem, unknown="Unrecognized request argument supplied: {param}")
        return openai_type_error(problem)

    def _parse(self, body: Mapping[str, Any], target: RequestTarget) -> ParsedRequest:
        return parse_request(body, self.sent)

    def read_more(self, more: MoreMessages) -> tuple[tuple[Item, ...], frozenset[str]] | None:
        """See `ProtocolCodec.read_more`."""
        return read_more(more)

    def form_of(self, request: ParsedRequest, reply: Reply) -> Any:
        """See `ProtocolCodec.form_of`."""
        # Texts only, which load tests get again and again.
        if reply.calls or reply.thoughts or reply.hosted or reply.breaks:
            return None
        if PLACEHOLDER in request.model or PLACEHOLDER in (reply.say or ""):
            return None
        return request.model, request.stream, count_choices(request.body), _wants_usage(request.body)

    def encode_under(self, reply_id: str, request: ParsedRequest, reply: Reply, style: StreamStyle) -> Iterator[bytes]:
        """See `ProtocolCodec.encode_under`."""
        if request.stream:
            return self.encode(stream_completion(request, reply, style, reply_id), style)
        return iter([to_json_bytes(build_completion(request, reply, reply_id))])

    def reply(self, request: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `ProtocolCodec.reply`."""
        reject_hosted(reply, _NO_HOSTED)
        _reject_reasoning(reply)
        return build_completion(request, reply, self.next_id())

    def events(self, request: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `ProtocolCodec.events`."""
        reject_hosted(reply, _NO_HOSTED)
        _reject_reasoning(reply)
        return stream_completion(request, reply, style, self.next_id())

    def _express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        if violation.rule == "empty-input":
            return _with_rule(empty_array("messages"), violation)
        if violation.rule == "call-without-id":
            return _with_rule(missing_parameter("messages[].tool_calls[].id"), violation)
        text, param = _SENTENCES.get(violation.rule, _other_violation)(violation, request)
        return ProviderError(rule=violation.rule, ids=violation.ids, text=text, param=param)


def _reject_reasoning(reply: Reply) -> None:
    """Raise an error if a reply has reasoning that one `reasoning_content` cannot hold.

    Raises:
        Unsupported: It does.
    """
    if any(thought.text is None for thought in reply.thoughts):
        raise Unsupported("redacted_reasoning", "`reasoning_content` is plain text")
    if any(thought.before is not None for thought in reply.thoughts):
        raise Unsupported("reasoning_between_calls", "a message has one `reasoning_content`, which precedes its calls")


def _with_rule(error: ProviderError, violation: RuleViolation) -> ProviderError:
    return ProviderError(rule=violation.rule, ids=violation.ids, text=error.text, param=error.param, code=error.code)


def _missing_results(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    text = (
        "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
        f"The following tool_call_ids did not have response messages: {', '.join(violation.ids)}"
    )
    return text, f"messages.[{_message_index(violation, request, 'call') + 1}].role"


def _unexpected_result(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    # "preceeding" is the provider's own spelling.
    text = "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."
    return text, f"messages.[{_message_index(violation, request, 'result')}].role"


def _second_result(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    call_id = violation.ids[0] if violation.ids else ""
    numbers = [item.message for item in request.items if item.kind == "result" and item.id == call_id][-2:]
    messages = " and ".join(f"messages[{number}]" for number in numbers)
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}', in {messages}."
    return text, f"messages.[{numbers[-1] if numbers else 0}].tool_call_id"


def _duplicate_id(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    call_id = violation.ids[0] if violation.ids else ""
    text = f"Invalid parameter: Duplicate value for 'tool_call_id' of '{call_id}'."
    return text, f"messages.[{_message_index(violation, request, 'call')}].tool_calls"


def _other_violation(violation: RuleViolation, request: ParsedRequest) -> tuple[str, str | None]:
    return f"Invalid parameter: {violation.text}.", "messages"


def _message_index(violation: RuleViolation, request: ParsedRequest, kind: str) -> int:
    return request.find_message(kind, violation.ids[0]) if violation.ids else 0


_SENTENCES: dict[str, Callable[[RuleViolation, ParsedRequest], tuple[str, str | None]]] = {
    "call-without-result": _missing_results,
    "result-not-adjacent": _missing_results,
    "result-without-call": _unexpected_result,
    "second-result": _second_result,
    "duplicate-call-id": _duplicate_id,
}
"""Text and parameter of the error, by the violated rule."""


USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def build_completion(request: ParsedRequest, reply: Reply, completion_id: str) -> dict[str, Any]:
    """Return a reply as a completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.say, "refusal": None, "annotations": []}
    if reply.thoughts:
        message["reasoning_content"] = "".join(thought.text or "" for thought in reply.thoughts)
    if reply.calls:
        message["tool_calls"] = [_tool_call(call) for call in reply.calls]
    choice = {"message": message, "logprobs": None, "finish_reason": _finish_reason(reply)}
    return {
        **_completion_head(request, completion_id),
        "object": "chat.completion",
        "choices": [{"index": index, **choice} for index in range(count_choices(request.body))],
        "usage": USAGE,
    }


def count_choices(body: Mapping[str, Any]) -> int:
    """Return how many choices a request asks for; all are the reply of the script."""
    return body.get("n") or 1


def _completion_head(request: ParsedRequest, completion_id: str) -> dict[str, Any]:
    """Return the fields that a completion and each of its chunks have in common."""
    return {
        "id": completion_id,
        "object": "",
        "created": 0,
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": None,
    }


def _finish_reason(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _tool_call(call: ModelCall) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": arguments_text(call)}
    return {"id": call.id, "type": "function", "function": function}


def stream_completion(
    request: ParsedRequest, reply: Reply, style: StreamStyle, completion_id: str
) -> Iterator[SseEvent]:
    """Return the chunks of a streamed completion; see `ProtocolCodec.events`."""
    top = {**_completion_head(request, completion_id), "object": "chat.completion.chunk"}
    # Encoded once, for all chunks.
    head = to_json(top)[:-1]
    wants_usage = _wants_usage(request.body)
    # OpenAI begins a reply without text with a content of null.
    indexes = range(count_choices(request.body))
    begin = {"role": "assistant", "content": None if reply.calls and reply.say is None else ""}
    yield from (_chunk_event(head, index, begin) for index in indexes)
    for chunk in reply.chunks:
        if style.usage:
            yield SseEvent(data={**top, "choices": [], "usage": USAGE})
        delta = _delta(chunk)
        yield from (_chunk_event(head, index, delta) for index in indexes)
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield from (_chunk_event(head, index, {}, _finish_reason(reply)) for index in indexes)
    # The chunk with the usage has no choices (API reference of `stream_options`).
    if wants_usage or style.usage:
        yield SseEvent(data={**top, "choices": [], "usage": USAGE})
    if style.done:
        yield SseEvent(data="[DONE]")


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options = body.get("stream_options")
    return isinstance(options, Mapping) and bool(options.get("include_usage"))


def _chunk_event(head: str, index: int, delta: dict[str, Any], ended: str | None = None) -> SseEvent:
    choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": ended}
    return SseEvent(data=f'{head}, "choices": [{to_json(choice)}]}}')


def _delta(chunk: Chunk) -> dict[str, Any]:
    if chunk.thought is not None:
        return {"reasoning_content": chunk.text or ""}
    if chunk.call is None:
        return {"content": chunk.text or ""}
    call: dict[str, Any] = {"index": chunk.call}
    function: dict[str, Any] = {}
    if chunk.tool is not None or chunk.id is not None:
        call |= {"id": chunk.id, "type": "function"}
    if chunk.tool is not None:
        function["name"] = chunk.tool
    function["arguments"] = chunk.arguments or ""
    return {"tool_calls": [{**call, "function": function}]}
