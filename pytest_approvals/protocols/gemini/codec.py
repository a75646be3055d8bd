"""Codec of Gemini, and neutral rule violations in Google's words.

A request names its model in its path, and whether it wants a stream. Arguments of calls are objects, and a call is
streamed whole. Reasoning is a signature on the part that it led to: the first call, or the text. Its text is a thought,
which is sent if the request asks for it (`thinkingConfig.includeThoughts`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.exceptions import ModelDown, Unsupported
from pytest_approvals.agent_side.contract.types import Reply, Thought
from pytest_approvals.protocols.codec import ParsedRequest, ProtocolCodec, RequestTarget, reject_hosted
from pytest_approvals.protocols.gemini.requests import SHAPE, TYPES, parse_request, write_signature
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError, TypeProblem
from pytest_approvals.protocols.streaming import (
    PLAIN,
    PartKey,
    SseEvent,
    StreamStyle,
    list_part_keys,
    stream_parts,
)
from pytest_approvals.protocols.text import estimate_tokens, object_or_empty, parse_object

_NO_HOSTED = "Gemini has no parts for it"
_TARGET = re.compile(
    r"/(?:models|tunedModels|endpoints)/(?P<model>[^/:]+):(?P<method>generateContent|streamGenerateContent)\Z"
)
_COUNT = re.compile(r"/models/[^/:]+:countTokens\Z")

_FAILURES = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
    404: ("NOT_FOUND", "The requested URL was not found on this server."),
    413: ("INVALID_ARGUMENT", "Request payload size exceeds the limit."),
    429: ("RESOURCE_EXHAUSTED", "You exceeded your current quota, please check your plan and billing details."),
    500: ("INTERNAL", "An internal error has occurred. Please retry or report the error."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    529: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
}

USAGE = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}


class GeminiCodec(ProtocolCodec):
    """One conversation with Gemini, which stores nothing between two requests."""

    name = "gemini"
    path = ":generateContent"
    id_prefix = "resp_"
    shape_rules = SHAPE
    published_types = TYPES

    def find_target(self, path: str, query: str) -> RequestTarget | None:
        """See `ProtocolCodec.find_target`."""
        found = _TARGET.search(path)
        if found is None:
            return None
        is_stream = found["method"] == "streamGenerateContent"
        # Google sends events to those who ask for them only.
        as_array = is_stream and "alt=sse" not in query.split("&")
        return RequestTarget(model=found["model"], stream=is_stream, as_array=as_array)

    def serve_stored(
        self, method: str, path: str, query: str, body: Mapping[str, Any]
    ) -> Mapping[str, Any] | ProviderError | None:
        """See `ProtocolCodec.serve_stored`: the number of tokens of an input."""
        if method != "POST" or not _COUNT.search(path):
            return None
        request = self.read(object_or_empty(body.get("generateContentRequest")) or body, RequestTarget())
        errors = request.body_errors or self.check_types(request.body)
        return errors[0] if errors else {"totalTokens": estimate_tokens(body)}

    def _parse(self, body: Mapping[str, Any], target: RequestTarget) -> ParsedRequest:
        return parse_request(body, target, self.sent)

    def excuses(self, violation: RuleViolation, request: ParsedRequest) -> bool:
        """See `ProtocolCodec.excuses`: empty texts have no items, and are contents.

        gemini-2.5-flash answers them (Mirascope/mirascope, cassettes of `test_call_with_empty_string`).
        """
        return violation.rule == "empty-input" and bool(request.body.get("contents"))

    def reply(self, request: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """See `ProtocolCodec.reply`."""
        _reject_unsupported(reply)
        parts = [part for key in list_part_keys(reply) for part in _parts_of(request, reply, key)]
        if reply.thoughts and not reply.calls and reply.say is None:
            parts.append(_signed({"text": ""}, reply, None))
        return _response(request, parts, self.next_id(), is_last=True)

    def events(self, request: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """See `ProtocolCodec.events`."""
        _reject_unsupported(reply)
        return _stream_response(request, reply, style, self.next_id())

    def _express_type(self, problem: TypeProblem) -> ProviderError:
        where = problem.param()
        if problem.how == "unknown":
            inside, _, name = where.rpartition(".")
            at = f" at '{inside}'" if inside else ""
            return ProviderError(text=f'Invalid JSON payload received. Unknown name "{name}"{at}: Cannot find field.')
        if problem.how == "missing":
            return ProviderError(text=f"* GenerateContentRequest.{where}: must be specified\n")
        if problem.limit is not None and problem.limit.pattern is not None:
            text = (
                "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, "
                "0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128."
            )
            return ProviderError(text=f"* GenerateContentRequest.{where}: {text}\n")
        if problem.limit is not None and problem.limit.max_items is not None:
            text = f"At most {problem.limit.max_items} elements can be specified."
            return ProviderError(text=f"* GenerateContentRequest.{where}: {text}\n")
        if problem.limit is not None:
            most = problem.limit.maximum
            bounds = f"{problem.limit.minimum:g} (inclusive)" + ("" if most is None else f" to {most:g} (inclusive)")
            text = f"Unable to submit request because it has a {where} value of {problem.value} but supported range is"
            return ProviderError(text=f"{text} from {bounds}.")
        kind = "" if problem.how == "word" else f", expected {' or '.join(problem.expected)}"
        return ProviderError(text=f"Invalid value at '{where}'{kind}: {problem.value!r}")

    def _express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        text = _SENTENCES.get(violation.rule) or f"Request contains an invalid argument: {violation.text}."
        return ProviderError(rule=violation.rule, ids=violation.ids, text=text)

    def error_body(self, error: ProviderError) -> dict[str, Any]:
        """See `ProtocolCodec.error_body`."""
        status = _FAILURES.get(error.status, _FAILURES[400 if error.status < 500 else 500])[0]
        return {"error": {"code": error.status, "message": error.text, "status": status}}

    def failure(self, status: int) -> ProviderError:
        """See `ProtocolCodec.failure`."""
        known = _FAILURES.get(status, _FAILURES[500] if status >= 500 else None)
        return ProviderError(text=known[1] if known else f"The request failed with status {status}.", status=status)

    def invalid_json(self) -> ProviderError:
        """See `ProtocolCodec.invalid_json`."""
        return ProviderError(rule="not-json", text="Invalid JSON payload received. Unable to parse the body.")


_RESPONSES = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)

_SENTENCES = {
    "empty-input": "* GenerateContentRequest.contents: contents is not specified\n",
    "call-without-result": _RESPONSES,
    "second-result": _RESPONSES,
    "result-not-in-next-turn": _RESPONSES,
    "result-without-call": ("Please ensure that function response turn comes immediately after a function call turn."),
}
"""The text of the error, by the violated rule."""


def _reject_unsupported(reply: Reply) -> None:
    """Raise an error if a reply has what no response of Gemini can hold.

    Raises:
        Unsupported: It does.
    """
    reject_hosted(reply, _NO_HOSTED)
    if any(not isinstance(parse_object(call.arguments), Mapping) for call in reply.calls):
        raise Unsupported("broken_arguments", "the arguments of a call are an object")
    if any(thought.before for thought in reply.thoughts):
        raise Unsupported("reasoning_between_calls", "of parallel calls only the first has a signature")


def _parts_of(request: ParsedRequest, reply: Reply, key: PartKey) -> Iterator[dict[str, Any]]:
    kind, position = key
    if kind == "thought":
        yield from _thought_parts(request, reply.thoughts[position])
    elif kind == "text":
        part = {"text": reply.say}
        yield part if reply.calls else _signed(part, reply, None)
    else:
        yield _call_part(reply, position)


def _thought_parts(request: ParsedRequest, thought: Thought) -> Iterator[dict[str, Any]]:
    if thought.text and _wants_thoughts(request):
        yield {"text": thought.text, "thought": True}


def _wants_thoughts(request: ParsedRequest) -> bool:
    config = object_or_empty(object_or_empty(request.body.get("generationConfig")).get("thinkingConfig"))
    return config.get("includeThoughts") is True


def _call_part(reply: Reply, position: int) -> dict[str, Any]:
    call = reply.calls[position]
    function = {"name": call.tool, "args": parse_object(call.arguments)}
    # The first call has the signature; the others of the same reply have none.
    part = {"functionCall": {"id": call.id, **function} if call.id is not None else function}
    return part if position else _signed(part, reply, position)


def _signed(part: dict[str, Any], reply: Reply, position: int | None) -> dict[str, Any]:
    """Return a part with the signature of the reasoning before it."""
    places = (None,) if position is None else (None, position)
    signatures = [thought.signature for thought in reply.thoughts if thought.before in places]
    return {**part, "thoughtSignature": write_signature(signatures[-1])} if signatures else part


def _response(request: ParsedRequest, parts: list[dict[str, Any]], number: str, *, is_last: bool) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": parts, "role": "model"}, "index": 0}
    if is_last:
        candidate["finishReason"] = "STOP"
    count = object_or_empty(request.body.get("generationConfig")).get("candidateCount") or 1
    return {
        "candidates": [{**candidate, "index": index} for index in range(count)],
        "usageMetadata": USAGE,
        "modelVersion": request.model,
        "responseId": number,
    }


def _stream_response(request: ParsedRequest, reply: Reply, style: StreamStyle, number: str) -> Iterator[SseEvent]:
    for part in _stream_parts(request, reply, style):
        yield SseEvent(data=_response(request, [part], number, is_last=False))
    if reply.breaks:
        raise ModelDown(0, reply.how)
    # The last event of a text has its signature, in a part of its own.
    last = {"text": ""}
    yield SseEvent(data=_response(request, [last if reply.calls else _signed(last, reply, None)], number, is_last=True))


def _stream_parts(request: ParsedRequest, reply: Reply, style: StreamStyle) -> Iterator[dict[str, Any]]:
    for _, part, step in stream_parts(reply, overlapping=False):
        if step == "begin":
            continue
        if step == "end":
            if part.call is not None:
                yield _call_part(reply, part.key[1])
        elif part.thought is not None:
            if step.text and _wants_thoughts(request):
                yield {"text": step.text, "thought": True}
        elif step.text is not None:
            yield {"text": step.text}
