"""Codec of Converse, its streams, and neutral rule violations in the words of Bedrock.

A request names its model in its path, and whether it wants a stream. A stream is no text: see `event_stream.py`.
Arguments of calls are objects, and in streams pieces of JSON.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.agent_side.contract.types import Chunk, Reply, Thought
from pytest_approvals.protocols.codec import ParsedRequest, ProtocolCodec, RequestTarget, reject_hosted
from pytest_approvals.protocols.converse.event_stream import MEDIA_TYPE, encode_messages
from pytest_approvals.protocols.converse.requests import SHAPE, TYPES, is_prompt, parse_request, write_blob
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError, TypeProblem
from pytest_approvals.protocols.streaming import (
    PLAIN,
    PartKey,
    SseEvent,
    StreamPart,
    StreamStyle,
    corrupt_body,
    list_part_keys,
    stream_parts,
)
from pytest_approvals.protocols.text import estimate_tokens, object_or_empty, parse_object

_NO_HOSTED = "Converse has no items for approvals"

_MAKERS_THAT_BEGIN = ("anthropic.", "qwen.")
"""In the names of models for which Bedrock accepts a conversation that the model begins; see `first_not_user`."""
_TARGET = re.compile(r"/model/(?P<model>[^/]+)/(?P<method>converse|converse-stream)\Z")
_COUNT = re.compile(r"/model/(?P<model>[^/]+)/count-tokens\Z")

_FAILURES = {
    400: ("ValidationException", "The provided request is not valid"),
    401: ("UnrecognizedClientException", "The security token included in the request is invalid."),
    403: ("AccessDeniedException", "You don't have access to the model with the specified model ID."),
    404: ("ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier."),
    413: ("ValidationException", "Input is too long for requested model."),
    429: ("ThrottlingException", "Too many requests, please wait before trying again."),
    500: ("InternalServerException", "The system encountered an unexpected error during processing. Try again."),
    503: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
    529: ("ServiceUnavailableException", "Bedrock is unable to process your request."),
}
"""By status: the class of the error, which a client reads from a header, and its text."""

USAGE = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
METRICS = {"latencyMs": 1}


class ConverseCodec(ProtocolCodec):
    """One conversation with Bedrock, which stores nothing between two requests."""

    name = "converse"
    path = "/converse"
    request_id_header = "x-amzn-RequestId"
    id_prefix = ""
    first_event = "messageStart"
    stream_type = MEDIA_TYPE
    shape_rules = SHAPE
    published_types = TYPES

    def find_target(self, path: str, query: str) -> RequestTarget | None:
        """See `ProtocolCodec.find_target`."""
        found = _TARGET.search(path)
        if found is None:
            return None
        return RequestTarget(model=unquote(found["model"]), stream=found["method"] == "converse-stream")

    def serve_stored(
        self, method: str, path: str, query: str, body: Mapping[str, Any]
    ) -> Mapping[str, Any] | ProviderError | None:
        """See `ProtocolCodec.serve_stored`: the number of tokens of an input."""
        found = _COUNT.search(path)
        if method != "POST" or found is None:
            return None
        asked = object_or_empty(object_or_empty(body.get("input")).get("converse"))
        request = self.read(asked, RequestTarget(model=unquote(found["model"])))
        errors = request.body_errors or self.check_types(request.body)
        return errors[0] if errors else {"inputTokens": estimate_tokens(asked)}

    def _parse(self, body: Mapping[str, Any], target: RequestTarget) -> ParsedRequest:
        return parse_request(body, target, self.sent)

    def excuses(self, violation: RuleViolation, request: ParsedRequest) -> bool:
        """See `ProtocolCodec.excuses`: a stored prompt has messages of its own, and not all messages have items."""
        if is_prompt(request.model):
            return violation.rule in ("empty-input", "no-message", "first-not-user")
        if violation.rule == "first-not-user":
            return any(maker in request.model for maker in _MAKERS_THAT_BEGIN)
        return violation.rule in ("empty-input", "no-message") and bool(request.body.get("messages"))

    # --- replies ---

    def reply(self, request: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `ProtocolCodec.reply`."""
        reject_hosted(reply, _NO_HOSTED)
        content = [_block(reply, key) for key in list_part_keys(reply)]
        return {
            "output": {"message": {"role": "assistant", "content": content}},
            "stopReason": _stop_reason(reply),
            "usage": USAGE,
            "metrics": METRICS,
        }

    def events(self, request: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `ProtocolCodec.events`."""
        reject_hosted(reply, _NO_HOSTED)
        return _stream_reply(reply, style)

    def encode(self, events: Iterable[SseEvent], style: StreamStyle) -> Iterator[bytes]:
        """See `ProtocolCodec.encode`."""
        return encode_messages(events, style)

    def corrupt_stream(self, how: str, style: StreamStyle) -> bytes:
        """See `ProtocolCodec.corrupt_stream`: bytes that are no message, since clients skip what one lacks."""
        return corrupt_body(how, stream=False)

    # --- errors ---

    def _express_type(self, problem: TypeProblem) -> ProviderError:
        return express_type(problem)

    def _express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        text = _SENTENCES.get(violation.rule, _other_violation)(violation, request)
        return ProviderError(rule=violation.rule, ids=violation.ids, text=text)

    def error_body(self, error: ProviderError) -> dict[str, Any]:
        """See `ProtocolCodec.error_body`."""
        return {"message": error.text}

    def error_headers(self, error: ProviderError) -> tuple[tuple[str, str], ...]:
        """See `ProtocolCodec.error_headers`: the class of the error."""
        kind = _FAILURES.get(error.status, _FAILURES[400 if error.status < 500 else 500])[0]
        return (("x-amzn-ErrorType", error.kind if error.kind.endswith("Exception") else kind),)

    def failure(self, status: int) -> ProviderError:
        """See `ProtocolCodec.failure`."""
        known = _FAILURES.get(status, _FAILURES[500] if status >= 500 else None)
        return ProviderError(text=known[1] if known else f"The request failed with status {status}.", status=status)

    def invalid_json(self) -> ProviderError:
        """See `ProtocolCodec.invalid_json`."""
        return ProviderError(rule="not-json", text="Could not parse the request body", kind="SerializationException")


def express_type(problem: TypeProblem) -> ProviderError:
    """Return the error for a value that does not fit.

    Constraints of the service model are quoted in BerriAI/litellm#24668 and openclaw/openclaw#12892, keys in
    envoyproxy/ai-gateway#2476 and danny-avila/LibreChat#13838, objects in deepset-ai/haystack-core-integrations#3766.
    """
    if problem.how == "keys":
        can = "can only" if problem.value else "must"
        text = f"The value at {_dotted(problem.path)} {can} set one of the following keys: {_list(problem.expected)}."
        return ProviderError(text=text)
    if problem.how == "unknown":
        pointer = "".join(f"/{step}" for step in problem.path[:-1])
        text = f"#{pointer}: extraneous key [{problem.path[-1]}] is not permitted"
        return ProviderError(text=f"Malformed input request: {text}, please reformat your input and try again.")
    if problem.how == "type":
        if problem.path[-1] in ("json", "input", "additionalModelRequestFields"):
            text = f"The format of the value at {_dotted(problem.path)} is invalid. Provide a json object for the field"
            return ProviderError(text=f"{text} and try again.")
        return ProviderError(text=_found_instead(problem), kind="SerializationException")
    value = "Value null" if problem.how == "missing" else "Value"
    text = f"{value} at '{_counted(problem.path)}' failed to satisfy constraint: Member must {_constraint(problem)}"
    return ProviderError(text=f"1 validation error detected: {text}")


def _constraint(problem: TypeProblem) -> str:
    if problem.how == "missing":
        return "not be null"
    if problem.how == "word":
        return f"satisfy enum value set: [{', '.join(problem.expected)}]"
    limit, value = problem.limit, problem.value
    assert limit is not None
    if isinstance(value, int | float):
        if limit.minimum is not None and value < limit.minimum:
            return f"have value greater than or equal to {limit.minimum:g}"
        return f"have value less than or equal to {limit.maximum:g}"
    least, most = limit.min_length or limit.min_items or 0, limit.max_length or limit.max_items
    if len(value) < least:
        return f"have length greater than or equal to {least}"
    if most is not None and len(value) > most:
        return f"have length less than or equal to {most}"
    return f"satisfy regular expression pattern: {str(limit.pattern).removeprefix('^(?:').removesuffix(')$')}"


def _found_instead(problem: TypeProblem) -> str:
    """Return the sentence about a value of another JSON type than the service model has."""
    value = problem.value
    if isinstance(value, list):
        return "Start of list found where not expected"
    if isinstance(value, Mapping):
        return "Start of structure or map found where not expected."
    kind = {bool: str(value).upper(), str: "STRING", type(None): "NULL"}.get(type(value), "NUMBER")
    wanted = problem.expected[0].partition(" ")[2] if problem.expected else ""
    name = {"string": "a String", "integer": "an Integer", "decimal": "a Float", "boolean": "a Boolean"}.get(wanted)
    return f"{kind}_VALUE can not be converted to {name}" if name else "Unexpected field type"


def _dotted(path: tuple[Any, ...]) -> str:
    return ".".join(map(str, path))


def _counted(path: tuple[Any, ...]) -> str:
    """Return a path as constraints name it, where elements are members and the first one is number 1.

    >>> _counted(("messages", 0, "role"))
    'messages.1.member.role'
    """
    return ".".join(f"{step + 1}.member" if isinstance(step, int) else str(step) for step in path)


def _list(words: tuple[str, ...]) -> str:
    return ", ".join(words[:-1]) + (", or " if words[:-1] else "") + words[-1]


def _missing_results(violation: RuleViolation, request: ParsedRequest) -> str:
    number = request.find_message("call", violation.ids[0]) if violation.ids else 0
    return f"Expected toolResult blocks at messages.{number + 1}.content for the following Ids: " + ", ".join(
        violation.ids
    )


def _too_many_results(violation: RuleViolation, request: ParsedRequest) -> str:
    number = request.find_message("result", violation.ids[0]) if violation.ids else 0
    return (
        f"The number of toolResult blocks at messages.{number}.content exceeds the number of toolUse blocks of "
        "previous turn."
    )


def _other_violation(violation: RuleViolation, request: ParsedRequest) -> str:
    return f"The provided request is not valid: {violation.text}"


NO_MESSAGE = (
    "A conversation must have at least one message. Try again with a conversation that has at least one message."
)
NOT_A_USERS = (
    "A conversation must start with a user message. Try again with a conversation that starts with a user message."
)

_SENTENCES: dict[str, Callable[[RuleViolation, ParsedRequest], str]] = {
    "empty-input": lambda violation, request: NO_MESSAGE,
    "no-message": lambda violation, request: NO_MESSAGE,
    "first-not-user": lambda violation, request: NOT_A_USERS,
    "call-without-result": _missing_results,
    "result-not-adjacent": _missing_results,
    "result-without-call": _too_many_results,
    "second-result": _too_many_results,
}
"""The text of the error, by the violated rule: see the rules in `requests.py` for who quotes them."""


# --- blocks -----------------------------------------------------------------------------------------------------------


def _stop_reason(reply: Reply) -> str:
    return "tool_use" if reply.calls else "end_turn"


def _block(reply: Reply, key: PartKey) -> dict[str, Any]:
    kind, position = key
    if kind == "thought":
        return {"reasoningContent": _reasoning(reply.thoughts[position])}
    if kind == "text":
        return {"text": reply.say}
    call = reply.calls[position]
    # Arguments without text are an empty input, as they are in a stream.
    return {"toolUse": {"toolUseId": call.id, "name": call.tool, "input": parse_object(call.arguments) or {}}}


def _reasoning(thought: Thought) -> dict[str, Any]:
    if thought.text is None:
        return {"redactedContent": write_blob(thought.signature)}
    return {"reasoningText": {"text": thought.text, "signature": thought.signature}}


def _stream_reply(reply: Reply, style: StreamStyle) -> Iterator[SseEvent]:
    yield _event("messageStart", role="assistant")
    for index, part, step in stream_parts(reply, overlapping=style.overlapping):
        if step == "begin":
            yield from _begin_block(index, part)
        elif step == "end":
            yield from _end_block(index, part)
        elif (delta := _delta(step, part)) is not None:
            yield _event("contentBlockDelta", contentBlockIndex=index, delta=delta)
    if reply.breaks:
        raise ModelDown(0, reply.how)
    yield _event("messageStop", stopReason=_stop_reason(reply))
    yield _event("metadata", usage=USAGE, metrics=METRICS)


def _begin_block(index: int, part: StreamPart) -> Iterator[SseEvent]:
    # Only a call has a first event: text and reasoning begin with their first delta.
    if part.call is not None:
        start = {"toolUse": {"toolUseId": part.call.id, "name": part.call.tool}}
        yield _event("contentBlockStart", contentBlockIndex=index, start=start)


def _end_block(index: int, part: StreamPart) -> Iterator[SseEvent]:
    if part.thought is not None:
        signed = {"signature": part.thought.signature}
        last = signed if part.thought.text is not None else {"redactedContent": write_blob(part.thought.signature)}
        yield _event("contentBlockDelta", contentBlockIndex=index, delta={"reasoningContent": last})
    yield _event("contentBlockStop", contentBlockIndex=index)


def _delta(chunk: Chunk, part: StreamPart) -> dict[str, Any] | None:
    if part.thought is not None:
        shown = part.thought.text is not None and chunk.text is not None
        return {"reasoningContent": {"text": chunk.text}} if shown else None
    if chunk.call is not None:
        return None if chunk.arguments is None else {"toolUse": {"input": chunk.arguments}}
    return None if chunk.text is None else {"text": chunk.text}


def _event(name: str, **facts: Any) -> SseEvent:
    return SseEvent(name=name, data=facts)
