"""Server side of one conversation: the bytes of a request in, the bytes of a response out.

Every transport ends here, so that a script is played and checked the same over all of them: the transport objects for
client libraries, the routes of a mock, the model server.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, Protocol

from pytest_approvals.agent_side.contract.exceptions import ModelDown, ModelRefused, ScriptExhausted, Unsupported
from pytest_approvals.agent_side.contract.types import Chunk, Item, ModelCall, Reply
from pytest_approvals.protocols.codec import (
    IN_BODY,
    PLACEHOLDER,
    PLACEHOLDER_AS_JSON,
    ParsedRequest,
    ProtocolCodec,
    RequestTarget,
)
from pytest_approvals.protocols.growing_requests import GrowingRequests
from pytest_approvals.protocols.input_rules import RuleViolation, check_items
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.streaming import CORRUPTIONS, PLAIN, StreamStyle, corrupt_body, encode_array
from pytest_approvals.protocols.text import parse_object, to_json, to_json_bytes

MAX_CACHED_REQUESTS = 16
MAX_CACHED_BYTES = 16 * 1024


class RequestCache:
    """The last parsed requests of a conversation.

    A body that comes again is not read and checked anew. There are at most `MAX_CACHED_REQUESTS`; bodies larger than
    `MAX_CACHED_BYTES` are left out.
    """

    def __init__(self) -> None:
        self._read: dict[bytes, ParsedRequest] = {}

    def get(self, raw: bytes) -> ParsedRequest | None:
        """Return the request that a body was parsed to, or None."""
        return self._read.get(raw)

    def add(self, raw: bytes, request: ParsedRequest) -> None:
        """Add a parsed request, in place of the oldest one."""
        if len(raw) > MAX_CACHED_BYTES:
            return
        while len(self._read) >= MAX_CACHED_REQUESTS:
            del self._read[next(iter(self._read))]
        self._read[raw] = request

    def clear(self) -> None:
        """Remove all requests: the same body has another meaning from now on."""
        self._read.clear()


MAX_REPEATED_REPLIES = 64


class RepeatedReplies:
    """Replies that are sent several times: from the second time on, only their id is written anew."""

    def __init__(self) -> None:
        # Objects are kept with their numbers, which others would have later.
        self._encoded: dict[tuple[int, Any], tuple[Reply, list[bytes] | None]] = {}
        self._of_frames: dict[tuple[int, int], tuple[Reply, ParsedRequest, list[bytes]]] = {}

    def find_of_frame(self, reply: Reply, frame: ParsedRequest) -> list[bytes] | None:
        """Return what stands around the id of a reply to a request with that frame; None if it is not known."""
        known = self._of_frames.get((id(reply), id(frame)))
        return None if known is None else known[2]

    def add_of_frame(self, reply: Reply, frame: ParsedRequest, parts: list[bytes]) -> None:
        """Keep what stands around the id of a reply to requests with that frame."""
        if len(self._of_frames) >= MAX_REPEATED_REPLIES:
            self._of_frames.clear()
        self._of_frames[id(reply), id(frame)] = reply, frame, parts

    def find(self, reply: Reply, form: Any) -> tuple[bool, list[bytes] | None]:
        """Note that a reply is sent.

        Returns:
            Whether it was sent before, so that it should be kept; and if it is kept, what stands around its id.
        """
        key = id(reply), form
        known = self._encoded.get(key)
        if known is not None:
            return True, known[1]
        while len(self._encoded) >= MAX_REPEATED_REPLIES:
            self._encoded.pop(next(iter(self._encoded)), None)
        self._encoded[key] = reply, None
        return False, None

    def add(self, reply: Reply, form: Any, pieces: Iterable[bytes]) -> list[bytes]:
        """Keep a reply that is encoded under the id `PLACEHOLDER`; return what stands around the id."""
        parts = b"".join(pieces).split(PLACEHOLDER_AS_JSON)
        self._encoded[id(reply), form] = reply, parts
        return parts


JSON = "application/json"

_SINGLE_ITEM_RULES = ("call-without-id", "arguments-not-an-object")
"""Rules about the fields of one item, which a provider checks before it reads the conversation."""


class ModelHandler(Protocol):
    """The model behind an endpoint: the world of a session, which records and checks."""

    async def __call__(self, items: Sequence[Item], request: ParsedRequest, /) -> Reply:
        """Return the next reply.

        Args:
            items: The input of the model; what holds or answers a structured output is `other` here.
            request: The request as it was parsed and checked.

        Raises:
            ModelRefused: The request breaks a rule, of the conversation or of the body.
            ModelDown: The scenario lets the model fail here.
            ScriptExhausted: The script has no further reply.
        """


@dataclass(slots=True, kw_only=True)
class HttpResponse:
    """The response to a client.

    Attributes:
        pieces: The body, piece by piece; raises `ModelDown` if the connection breaks.
        flush_each: The pieces must arrive one by one, because the style of the stream cuts them so.
        is_stream: The length is not known before the last piece.
        headers: Further header fields.
    """

    status: int
    content_type: str
    pieces: Iterator[bytes]
    flush_each: bool = False
    is_stream: bool = False
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def from_json(cls, value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
        """Return a JSON response."""
        return cls(status=status, content_type=JSON, pieces=iter([to_json_bytes(value)]), headers=headers)

    @classmethod
    def from_error(cls, codec: ProtocolCodec, error: ProviderError) -> HttpResponse:
        """Return the provider's error response."""
        return cls.from_json(codec.error_body(error), error.status, codec.error_headers(error))


def unknown_path_error(codec: ProtocolCodec, text: str) -> ProviderError:
    """Return a provider's error for a path that it does not serve."""
    not_found = codec.failure(404)
    return ProviderError(rule="wrong-path", text=text, status=404, kind=not_found.kind, code=not_found.code)


class Endpoint:
    """Server side of one conversation.

    Args:
        codec: The protocol that its clients speak.
        model: Answers its requests.
        style: How streams are written.
    """

    def __init__(self, codec: ProtocolCodec, model: ModelHandler, *, style: StreamStyle = PLAIN) -> None:
        self.codec = codec
        self._model = model
        self._style = style
        self._outputs = StructuredOutputs()
        self._cache = RequestCache()
        self._growing = GrowingRequests(codec)
        self._grows = bool(codec.messages_field)
        self._repeated = RepeatedReplies()
        self._number = 0
        self._requests = count(1)

    async def serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        """Answer one request to any path; see `RequestHandler`."""
        path, _, query = path.partition("?")
        target = self.codec.find_target(path, query) if method == "POST" else None
        if target is not None:
            return await self.post(raw, target)
        return self.serve_stored(method, path, query, raw) or await self.reject_unreadable(
            unknown_path_error(self.codec, f"{self.codec.failure(404).text} ({method} {path})")
        )

    def serve_stored(self, method: str, path: str, query: str, raw: bytes) -> HttpResponse | None:
        """Answer a request that does not ask the model, and is not recorded; None for a path that is not served."""
        try:
            body = json.loads(raw) if raw else {}
        except (ValueError, RecursionError):
            return self.reject(self.codec.invalid_json())
        if not isinstance(body, Mapping):
            return self.reject(self.codec.shape_rules.check(body)[0])
        answer = self.codec.serve_stored(method, path, query, body)
        if isinstance(answer, ProviderError):
            return self.reject(answer)
        return None if answer is None else HttpResponse.from_json(answer)

    async def post(self, raw: bytes, target: RequestTarget = IN_BODY) -> HttpResponse:
        """Answer one request of its protocol, under an id of its own.

        Raises:
            ModelDown: The connection breaks before there is an answer.
        """
        try:
            request = self._read_growing(raw) if self._grows else self._read_cached(raw, target)
        except (ValueError, RecursionError):
            return self._add_id(await self.reject_unreadable(self.codec.invalid_json()))
        try:
            reply = await self._model(request.items, request)
        except ModelRefused as refusal:
            response = self.reject(self._to_error(request, refusal))
        except ScriptExhausted as exhausted:
            response = self.reject(ProviderError(rule="script-exhausted", text=str(exhausted), code="script_exhausted"))
        except ModelDown as down:
            response = self._fail(request, down)
        else:
            response = self._respond(request, reply)
        return self._add_id(response)

    def _add_id(self, response: HttpResponse) -> HttpResponse:
        response.headers = (*response.headers, (self.codec.request_id_header, f"req_{next(self._requests)}"))
        return response

    async def reject_unreadable(self, error: ProviderError) -> HttpResponse:
        """Reject a request that cannot be read; the model records it as any other refusal."""
        # The model only records the refusal; the response is in the words of the protocol.
        with suppress(ModelRefused):
            await self._model((), ParsedRequest(body_errors=(error,), violations=(error,), is_readable=False))
        return self.reject(error)

    def _read_cached(self, raw: bytes, target: RequestTarget) -> ParsedRequest:
        """Parse and check the body of a request, unless that was done before.

        Raises:
            ValueError, RecursionError: It is not JSON.
        """
        key = raw if target is IN_BODY else f"{target.model} {target.stream} {target.as_array}\n".encode() + raw
        known = self._cache.get(key)
        if known is not None:
            return known
        request = self._read(json.loads(raw), target)
        # The same body means something else once the provider has stored more, or has sent an id that it refused.
        if not request.is_stateful and not request.violations:
            self._cache.add(key, request)
        return request

    def _read_growing(self, raw: bytes) -> ParsedRequest:
        """Parse and check what the body of a request has that no request before it had.

        Raises:
            ValueError, RecursionError: It is not JSON.
        """
        # What was accepted may be incomplete, or mean something else, after reasoning or a structured output was sent.
        may_grow = not self.codec.sent and not self._outputs
        known = self._growing.read(raw) if may_grow else None
        if known is not None:
            return known
        body, place = self._growing.parse(raw)
        request = self._read(body, IN_BODY)
        is_kept = may_grow and place is not None and request.fits_types and not request.violations
        if place is not None and is_kept and not request.is_stateful and self.codec.may_grow(request):
            self._growing.add(place, request)
        return request

    def _read(self, body: Any, target: RequestTarget) -> ParsedRequest:
        """Check a body."""
        parsed = self.codec.read(body, target)
        items = self._outputs.hide_in(parsed.items)
        violations: tuple[RuleViolation, ...] = parsed.body_errors or tuple(
            violation for violation in check_items(items, self.codec.name) if not self.codec.excuses(violation, parsed)
        )
        if not violations and parsed.is_readable and not parsed.fits_types:
            # Last, because the other rules name what is wrong, and for which call.
            violations = self.codec.check_types(parsed.body)
        # Most requests are as they were parsed, and `replace` takes a tenth of the time of a request.
        is_parsed = items is parsed.items and not violations
        return parsed if is_parsed else replace(parsed, items=items, violations=violations)

    def _fail(self, request: ParsedRequest, down: ModelDown) -> HttpResponse:
        if down.status:
            error = self.codec.failure(down.status)
            wait = () if down.retry_after is None else (("retry-after", f"{down.retry_after:g}"),)
            headers = (*self.codec.error_headers(error), *wait)
            return HttpResponse.from_json(self.codec.error_body(error), error.status, headers)
        if down.how not in CORRUPTIONS:  # nothing arrives: the transport ends the connection
            raise down
        if request.stream and not request.as_array:
            return self._stream_of(iter([self.codec.corrupt_stream(down.how, self._style)]))
        return HttpResponse(status=200, content_type=JSON, pieces=iter([corrupt_body(down.how, stream=False)]))

    def _stream_of(self, pieces: Iterator[bytes], content_type: str = "") -> HttpResponse:
        flush_each = self._style.size is not None
        content_type = content_type or self.codec.stream_type
        return HttpResponse(status=200, content_type=content_type, pieces=pieces, flush_each=flush_each, is_stream=True)

    def _stream(self, request: ParsedRequest, reply: Reply) -> HttpResponse:
        events = self.codec.events(request, reply, self._style)
        if request.as_array:
            pieces = self._corrupt_at_break(encode_array(events, self._style), as_array=True)
            return self._stream_of(pieces, JSON)
        return self._stream_of(self._corrupt_at_break(self.codec.encode(events, self._style)))

    def _corrupt_at_break(self, pieces: Iterator[bytes], *, as_array: bool = False) -> Iterator[bytes]:
        try:
            yield from pieces
        except ModelDown as down:
            if down.how not in CORRUPTIONS:
                raise
            how, style = down.how, self._style
            yield corrupt_body(how, stream=False) if as_array else self.codec.corrupt_stream(how, style)

    def reject(self, error: ProviderError) -> HttpResponse:
        """Return the provider's error response."""
        return HttpResponse.from_error(self.codec, error)

    def _to_error(self, request: ParsedRequest, refusal: ModelRefused) -> ProviderError:
        if not request.violations:
            return ProviderError(rule="refused", text=refusal.reason)
        # `min` takes the first of several: a rule about one item if any is broken, else the first rule.
        return self.codec.express(
            min(request.violations, key=lambda violation: violation.rule not in _SINGLE_ITEM_RULES), request
        )

    def _respond(self, request: ParsedRequest, reply: Reply) -> HttpResponse:
        self._number += 1
        if reply.calls:
            self.codec.emitted.update(text for call in reply.calls for text in (call.id, call.tool) if text)
        if reply.thoughts:
            # What cached requests hold may be incomplete from now on.
            self._cache.clear()
            self._growing.clear()
        placed = reply
        if reply.answer is not None:
            answer_id = f"call_answer_{self._number}"
            self._outputs.add(reply.answer, answer_id)
            # Calls and texts that are the output are `other` from now on, so cached requests are outdated.
            self._cache.clear()
            self._growing.clear()
            placed = place_structured_output(reply, request, answer_id)
        self.codec.sent.add(placed)
        repeated = self._respond_again(request, placed)
        if repeated is not None:
            return repeated
        try:
            if request.stream:
                return self._stream(request, placed)
            return HttpResponse.from_json(self.codec.reply(request, placed))
        except Unsupported as unsupported:
            return self.reject(ProviderError(rule="unsupported", text=str(unsupported), code="unsupported"))

    def _respond_again(self, request: ParsedRequest, reply: Reply) -> HttpResponse | None:
        """Return the response with a reply that was sent before; None if it was not."""
        frame = request.frame
        parts = None if frame is None else self._repeated.find_of_frame(reply, frame)
        if parts is None:
            form = None if self._style.size is not None else self.codec.form_of(request, reply)
            if form is None:
                return None
            is_repeated, parts = self._repeated.find(reply, form)
            if not is_repeated:
                return None
            if parts is None:
                pieces = self.codec.encode_under(PLACEHOLDER, request, reply, self._style)
                parts = self._repeated.add(reply, form, pieces)
            if frame is not None:
                self._repeated.add_of_frame(reply, frame, parts)
        body = iter([self.codec.next_id().encode().join(parts)])
        return self._stream_of(body) if request.stream else HttpResponse(status=200, content_type=JSON, pieces=body)


def place_structured_output(reply: Reply, request: ParsedRequest, call_id: str) -> Reply:
    """Return *reply* with its structured output as a call or as text, whichever *request* asks for.

    Args:
        reply: The reply of the script.
        request: The request that it answers.
        call_id: The id of the call, if it becomes one.
    """
    if reply.answer is None:
        return reply
    answer = dict(reply.answer)
    tool = _find_output_tool(answer, request)
    if tool is None:
        # A stream that breaks does so before the output, so it has no chunk of it.
        text = to_json(answer)
        chunks: tuple[Chunk, ...] = () if reply.breaks else (Chunk(text=text),)
        return replace(reply, say=(reply.say or "") + text, answer=None, chunks=(*reply.chunks, *chunks))
    position = len(reply.calls)
    call = ModelCall(id=call_id, tool=tool, arguments=answer)
    chunks = () if reply.breaks else (Chunk(call=position, id=call_id, tool=tool, arguments=to_json(answer)),)
    return replace(reply, calls=(*reply.calls, call), answer=None, chunks=(*reply.chunks, *chunks))


def _find_output_tool(answer: Mapping[str, Any], request: ParsedRequest) -> str | None:
    if request.wants_json:
        return None
    # The output tool of a framework has exactly the fields of the output as its parameters.
    fields = frozenset(answer)
    return next((name for name, parameters in request.parameters.items() if parameters == fields), None)


class StructuredOutputs:
    """The structured outputs that a conversation was sent."""

    def __init__(self) -> None:
        self._texts: set[str] = set()
        self._ids: set[str] = set()

    def __bool__(self) -> bool:
        return bool(self._texts)

    def add(self, answer: Mapping[str, Any], call_id: str) -> None:
        """Add the output of a reply."""
        self._texts.add(to_json(dict(answer)))
        self._ids.add(call_id)

    def hide_in(self, items: tuple[Item, ...]) -> tuple[Item, ...]:
        """Return *items* with those that hold an output, or the result of one, as `other`."""
        if not self._texts:  # most conversations have none, and reading every text as JSON takes time
            return items
        return tuple(_as_other(item) if self._holds(item) else item for item in items)

    def _holds(self, item: Item) -> bool:
        if item.kind in ("call", "result"):
            return item.id in self._ids
        # Compared as JSON, because a framework may send the text back with other white space.
        return item.kind == "say" and to_json(parse_object(item.text)) in self._texts


def _as_other(item: Item) -> Item:
    text = item.text if item.kind != "call" else json.dumps(item.arguments, ensure_ascii=False, separators=(",", ":"))
    return Item(kind="other", text=text, message=item.message)
