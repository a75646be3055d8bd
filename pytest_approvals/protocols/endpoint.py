"""The requests that were read last: a body that comes again is not read and judged anew.

One conversation at the place where a client reaches it: a request's bytes come in, an answer's bytes go out.

Every transport ends here, so that a script is played and judged the same over all of them: the transport objects for
client libraries, the routes of a mock, the server on the loopback.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Protocol

from pytest_approvals.agent_side.contract.exceptions import ModelDown, ModelRefused, ScriptExhausted, Unsupported
from pytest_approvals.agent_side.contract.types import Item, Reply
from pytest_approvals.protocols.codec import ParsedRequest, ProtocolCodec
from pytest_approvals.protocols.input_rules import check_items
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.streaming import CORRUPTIONS, PLAIN, StreamStyle, corrupt_body, encode_events
from pytest_approvals.protocols.structured_output import StructuredOutputs, place_structured_output
from pytest_approvals.protocols.text import to_json

MAX_CACHED_REQUESTS = 16
MAX_CACHED_BYTES = 16 * 1024


class RequestCache:
    """The last `MAX_CACHED_REQUESTS` requests of a conversation, by their bodies; those larger than `MAX_CACHED_BYTES` are left out."""

    def __init__(self) -> None:
        self._read: dict[bytes, ParsedRequest] = {}

    def get(self, raw: bytes) -> ParsedRequest | None:
        """Gives what a body was read as; None where it has to be read."""
        return self._read.get(raw)

    def keep(self, raw: bytes, asked: ParsedRequest) -> None:
        """Keeps what a body was read as, in place of what was read longest ago."""
        if len(raw) > MAX_CACHED_BYTES:
            return
        while len(self._read) >= MAX_CACHED_REQUESTS:
            del self._read[next(iter(self._read))]
        self._read[raw] = asked

    def forget(self) -> None:
        """Forgets everything: the same body is to be read in another way from now on."""
        self._read.clear()


JSON = "application/json"
STREAM = "text/event-stream; charset=utf-8"

_SINGLE_ITEM_RULES = ("call-without-id", "arguments-not-an-object")
"""Rules about the fields of one item, which a provider looks at before it reads the conversation."""


class ModelHandler(Protocol):
    """Who answers: the world of a session, which records and judges."""

    async def __call__(self, items: Sequence[Item], asked: ParsedRequest) -> Reply:
        """
        Gives the next reply.

        Arguments:
            items: The input of the model; what holds or answers a structured answer is `other` here.
            asked: The request as it was read and judged.

        Errors:
            ModelRefused: The request breaks a rule, of the conversation or of the body.
            ModelDown: The scenario lets the model fail here.
            ScriptExhausted: The script has no further reply.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpResponse:
    """
    What goes back to the client.

    Attributes:
        pieces: The body, piece by piece; raises `ModelDown` where the connection breaks.
        apart: The pieces are to arrive one by one, because the style of the stream cut them so.
        headers: What else the head says.
    """

    status: int
    content_type: str
    pieces: Iterator[bytes]
    apart: bool = False
    headers: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, value: Any, status: int = 200, headers: tuple[tuple[str, str], ...] = ()) -> HttpResponse:
        """Gives an answer of JSON."""
        return cls(status=status, content_type=JSON, pieces=iter([to_json(value).encode()]), headers=headers)

    @classmethod
    def refusal(cls, spoken: ProtocolCodec, complaint: ProviderError) -> HttpResponse:
        """Gives the provider's answer to what it complains of."""
        return cls.of(spoken.error(complaint), complaint.status)


def unknown_path_error(spoken: ProtocolCodec, text: str) -> ProviderError:
    """Gives what a provider says to a path that it does not serve."""
    nothing = spoken.failure(404)
    return ProviderError(rule="wrong-path", text=text, status=404, kind=nothing.kind, code=nothing.code)


class Endpoint:
    """
    Answers the requests of one conversation.

    Arguments:
        spoken: The protocol that its clients speak.
        model: Who answers.
        style: How streams are written.
    """

    def __init__(self, spoken: ProtocolCodec, model: ModelHandler, *, style: StreamStyle = PLAIN) -> None:
        self.format = spoken
        self._model = model
        self._style = style
        self._answers = StructuredOutputs()
        self._recent = RequestCache()
        self._number = 0

    async def serve(self, method: str, path: str, raw: bytes) -> HttpResponse:
        """Answers one request to any path; see `transport.Served`."""
        if method != "POST" or not path.endswith(self.format.path):
            return await self.turn_away(
                unknown_path_error(self.format, f"{self.format.failure(404).text} ({method} {path})")
            )
        return await self.post(raw)

    async def post(self, raw: bytes) -> HttpResponse:
        """
        Answers one request of its protocol.

        Errors:
            ModelDown: The connection breaks before there is an answer.
        """
        try:
            asked = self._recent.get(raw) or self._read(raw)
        except (ValueError, RecursionError):
            return await self.turn_away(self.format.not_json())
        try:
            reply = await self._model(asked.items, asked)
        except ModelRefused as refusal:
            return self.refused(self._complaint(asked, refusal))
        except ScriptExhausted as exhausted:
            return self.refused(ProviderError(rule="script-exhausted", text=str(exhausted), code="script_exhausted"))
        except ModelDown as down:
            return self._failed(asked, down)
        return self._answer(asked, reply)

    async def turn_away(self, complaint: ProviderError) -> HttpResponse:
        """Answers a request that cannot be read: the model is asked nothing, and the refusal is recorded as all are."""
        with suppress(ModelRefused):
            await self._model((), ParsedRequest(complaints=(complaint,), broken=(complaint,), readable=False))
        return self.refused(complaint)

    def _read(self, raw: bytes) -> ParsedRequest:
        """
        Reads and judges the body of a request.

        Errors:
            ValueError, RecursionError: It is not JSON.
        """
        read = self.format.read(json.loads(raw))
        items = self._answers.hide_in(read.items)
        asked = replace(read, items=items, broken=read.complaints or (*check_items(items, self.format.name),))
        if not self.format.keeps:
            self._recent.keep(raw, asked)
        return asked

    def _failed(self, asked: ParsedRequest, down: ModelDown) -> HttpResponse:
        if down.status:
            complaint = self.format.failure(down.status)
            wait = () if down.retry_after is None else (("retry-after", f"{down.retry_after:g}"),)
            return HttpResponse.of(self.format.error(complaint), complaint.status, wait)
        if down.how not in CORRUPTIONS:
            raise down
        body = corrupt_body(down.how, stream=asked.stream, event=self.format.opening, style=self._style)
        return HttpResponse(status=200, content_type=STREAM if asked.stream else JSON, pieces=iter([body]))

    def _as_it_arrives(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        try:
            yield from pieces
        except ModelDown as down:
            if down.how not in CORRUPTIONS:
                raise
            yield corrupt_body(down.how, stream=True, event=self.format.opening, style=self._style)

    def refused(self, complaint: ProviderError) -> HttpResponse:
        """Gives the provider's answer to what it complains of."""
        return HttpResponse.refusal(self.format, complaint)

    def _complaint(self, asked: ParsedRequest, refusal: ModelRefused) -> ProviderError:
        if not asked.broken:
            return ProviderError(rule="refused", text=refusal.reason)
        return self.format.worded(min(asked.broken, key=lambda one: one.rule not in _SINGLE_ITEM_RULES), asked)

    def _answer(self, asked: ParsedRequest, reply: Reply) -> HttpResponse:
        self._number += 1
        answer_id = f"call_answer_{self._number}"
        if reply.answer is not None:
            self._answers.given(reply.answer, answer_id)
            self._recent.forget()
        told = place_structured_output(reply, asked, answer_id)
        try:
            if asked.stream:
                pieces = encode_events(self.format.events(asked, told, self._style), self._style)
                apart = self._style.size is not None
                return HttpResponse(status=200, content_type=STREAM, pieces=self._as_it_arrives(pieces), apart=apart)
            return HttpResponse.of(self.format.reply(asked, told))
        except Unsupported as unsaid:
            return self.refused(ProviderError(rule="unsupported", text=str(unsaid), code="unsupported"))
