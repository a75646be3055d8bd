"""Codec interface: parsed requests in, replies and errors out.

A codec serves one conversation in one protocol. It has no part in HTTP, the script or the journal.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any, ClassVar

from pytest_approvals.agent_side.contract.exceptions import Unsupported
from pytest_approvals.agent_side.contract.types import Item, Reply
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import (
    TYPE_RULE,
    BodyRules,
    ProviderError,
    PublishedTypes,
    TypeProblem,
    openai_error_body,
    openai_failure,
    openai_invalid_json,
    openai_type_error,
)
from pytest_approvals.protocols.reasoning import SentReasoning
from pytest_approvals.protocols.streaming import (
    EVENT_STREAM,
    PLAIN,
    SseEvent,
    StreamStyle,
    corrupt_body,
    encode_events,
)


# Not frozen, because that makes it cost three times as much, and there is one for every request.
@dataclass(slots=True, kw_only=True)
class ParsedRequest:
    """One request of a client, which nobody changes.

    Attributes:
        body: The request as it was received.
        items: The complete input of the model, with what the provider stored of the conversation.
        stream: The client wants a streamed reply.
        as_array: A streamed reply is one array of JSON, and no stream of events.
        tools: The names of the tools that the model is offered.
        parameters: The parameters of each offered function, by the function's name.
        wants_json: The client wants text in a format of its own, which is where structured output goes.
        body_errors: What is wrong with the body itself.
        violations: All that the provider refuses: the body errors, or else the rules that the items break.
        is_readable: Whether the body has the shape of a request at all; if not, there are no items.
        fits_types: Whether the body has the published types.
        has_signatures: Whether reasoning that answers it is sent with what the provider recognizes it by.
        is_stateful: Whether its meaning depends on what the provider stored of earlier requests.
        frame: The request whose fields it has but for the messages; None if there is none.
    """

    body: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    model: str = ""
    stream: bool = False
    tools: tuple[str, ...] = ()
    parameters: Mapping[str, frozenset[str]] = field(default_factory=dict)
    wants_json: bool = False
    body_errors: tuple[ProviderError, ...] = ()
    violations: tuple[RuleViolation, ...] = ()
    is_readable: bool = True
    fits_types: bool = False
    has_signatures: bool = False
    is_stateful: bool = False
    as_array: bool = False
    frame: ParsedRequest | None = field(default=None, repr=False, compare=False)

    def with_messages(self, body: Mapping[str, Any], items: tuple[Item, ...]) -> ParsedRequest:
        """Return a request without violations that has other messages and is the same otherwise."""
        # `replace` takes three times as long.
        return ParsedRequest(
            body=body,
            items=items,
            model=self.model,
            stream=self.stream,
            tools=self.tools,
            parameters=self.parameters,
            wants_json=self.wants_json,
            fits_types=self.fits_types,
            has_signatures=self.has_signatures,
            frame=self,
        )

    def find_message(self, kind: str, item_id: str) -> int:
        """Return the number of the message with the last item of that kind and id; 0 if there is none."""
        return next((item.message for item in reversed(self.items) if item.kind == kind and item.id == item_id), 0)


@dataclass(slots=True)
class MoreMessages:
    """Messages that follow accepted ones.

    Attributes:
        body: The whole body.
        start: The number of the first new message.
        new: The new messages.
        words: The words of the messages before; see `list_words`.
    """

    body: Mapping[str, Any]
    start: int
    new: list[Any]
    words: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTarget:
    """What the path of a request says about it, in protocols whose bodies do not.

    Attributes:
        model: The model; empty if the body names it.
        stream: The client wants a streamed reply; False if the body says so.
        as_array: A streamed reply is one array of JSON.
    """

    model: str = ""
    stream: bool = False
    as_array: bool = False


IN_BODY = RequestTarget()
"""The target of a request whose body says everything."""


PLACEHOLDER = "\0id\0"
"""Id of a reply that is encoded to be sent several times."""

PLACEHOLDER_AS_JSON = b"\\u0000id\\u0000"


class ProtocolCodec(ABC):
    """One conversation in one protocol.

    Attributes:
        name: The name of its rules: one of `CODECS`.
        path: Where its requests are posted, below the base address that its clients take.
        request_id_header: The header field with the id of a request, as the provider's client reads it.
        id_prefix: What the ids of its replies begin with.
        first_event: The name of the first event of its streams; None if events have no names.
        stream_type: The media type of its streams.
        shape_rules: The rules without which a body cannot be read at all.
        published_types: The types that bodies must have.
        messages_field: The field of a body that grows with the conversation; empty if every body is read as a whole.
        emitted: The ids and tool names of the calls that it sent, which it takes back whatever they look like.
        sent: The reasoning that it sent.
    """

    name: ClassVar[str]
    path: ClassVar[str]
    request_id_header: ClassVar[str] = "x-request-id"
    id_prefix: ClassVar[str]
    first_event: ClassVar[str | None] = None
    stream_type: ClassVar[str] = EVENT_STREAM
    shape_rules: ClassVar[BodyRules[Any]]
    published_types: ClassVar[PublishedTypes]
    messages_field: ClassVar[str] = ""

    def __init__(self) -> None:
        self._numbers = count(1)
        self.emitted: set[str] = set()
        self.sent = SentReasoning()

    def clear(self) -> None:
        """Forget what the provider stored."""
        self.sent.clear()

    def find_target(self, path: str, query: str) -> RequestTarget | None:
        """Return what the path of a request to the model says; None for one that does not ask the model."""
        return IN_BODY if path.endswith(self.path) else None

    def read(self, body: Any, target: RequestTarget = IN_BODY) -> ParsedRequest:
        """Parse a body; what is wrong with it is in `ParsedRequest.body_errors`."""
        errors = self.shape_rules.check(body)
        if errors:
            return ParsedRequest(body=body if isinstance(body, Mapping) else {}, body_errors=errors, is_readable=False)
        return self._parse(body, target)

    def read_more(self, more: MoreMessages) -> tuple[tuple[Item, ...], frozenset[str]] | None:
        """Return the items of messages that follow accepted ones, and the words of all messages.

        None if the whole body must be read, because something is wrong with the messages or may be.
        """
        return None

    def may_grow(self, request: ParsedRequest) -> bool:
        """Return whether its messages and its other fields are judged apart from each other in an accepted request."""
        return True

    def count_leading_items(self, body: Mapping[str, Any]) -> int:
        """Return how many items of an accepted body come before those of its messages, from other fields."""
        return 0

    def check_types(self, body: Mapping[str, Any]) -> tuple[ProviderError, ...]:
        """Return what does not fit the published types, for a body that breaks no other rule."""
        problems = self.published_types.find_problems(body)
        return tuple(
            replace(self._express_type(problem), rule=TYPE_RULE)
            for problem in problems
            if not (problem.how == "limit" and isinstance(problem.value, str) and problem.value in self.emitted)
        )

    def excuses(self, violation: RuleViolation, request: ParsedRequest) -> bool:
        """Return whether a broken rule does not hold for a request, since its items do not show all of the body."""
        return False

    @abstractmethod
    def _express_type(self, problem: TypeProblem) -> ProviderError:
        """Return a value that does not fit in the provider's words."""

    @abstractmethod
    def _parse(self, body: Mapping[str, Any], target: RequestTarget) -> ParsedRequest:
        """Read a body that has the shape of a request."""

    def serve_stored(
        self, method: str, path: str, query: str, body: Mapping[str, Any]
    ) -> Mapping[str, Any] | ProviderError | None:
        """Answer a request that does not ask the model: about what is stored, or how long an input is.

        Args:
            method: The method of the request.
            path: Its path.
            query: Its query.
            body: Its body; empty if it has none.

        Returns:
            The answer, an error, or None if the provider does not serve such a path.
        """
        return None

    @abstractmethod
    def reply(self, request: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """Return a reply as JSON.

        Raises:
            Unsupported: The protocol cannot express it.
        """

    @abstractmethod
    def events(self, request: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """Return a reply as a stream.

        Raises:
            ModelDown: The stream breaks here, as the reply says.
            Unsupported: The protocol cannot express it.
        """

    def form_of(self, request: ParsedRequest, reply: Reply) -> Any:
        """Return what the encoded reply depends on beside its id and itself; None for one that is always encoded.

        It does not depend on the messages of the request.
        """
        return None

    def encode_under(self, reply_id: str, request: ParsedRequest, reply: Reply, style: StreamStyle) -> Iterator[bytes]:
        """Return a reply that has a form, encoded under an id."""
        raise NotImplementedError

    def next_id(self) -> str:
        """Return the id of the next reply."""
        return f"{self.id_prefix}{next(self._numbers)}"

    def encode(self, events: Iterable[SseEvent], style: StreamStyle) -> Iterator[bytes]:
        """Yield a stream as bytes; what *events* raises comes out after the bytes before it."""
        return encode_events(events, style)

    def corrupt_stream(self, how: str, style: StreamStyle) -> bytes:
        """Return what stands in a stream in place of its events; *how* is a name of `CORRUPTIONS`."""
        return corrupt_body(how, stream=True, event=self.first_event, style=style)

    def express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        """Return a violation in the provider's words; errors of the protocol's own rules are in them already."""
        return violation if isinstance(violation, ProviderError) else self._express(violation, request)

    @abstractmethod
    def _express(self, violation: RuleViolation, request: ParsedRequest) -> ProviderError:
        """Return the violation of a neutral rule in the provider's words."""

    @abstractmethod
    def error_body(self, error: ProviderError) -> dict[str, Any]:
        """Return the body of an error response."""

    def error_headers(self, error: ProviderError) -> tuple[tuple[str, str], ...]:
        """Return the header fields of an error response."""
        return ()

    @abstractmethod
    def failure(self, status: int) -> ProviderError:
        """Return the provider's error of a status: 401, 404, 413, 429, 500, 503, 529."""

    @abstractmethod
    def invalid_json(self) -> ProviderError:
        """Return the provider's error for a body that is not JSON."""


class OpenAICodec(ProtocolCodec):
    """A protocol of OpenAI: all of them share the body and the texts of errors."""

    def _express_type(self, problem: TypeProblem) -> ProviderError:
        return openai_type_error(problem)

    def error_body(self, error: ProviderError) -> dict[str, Any]:
        """See `ProtocolCodec.error_body`."""
        return openai_error_body(error)

    def failure(self, status: int) -> ProviderError:
        """See `ProtocolCodec.failure`."""
        return openai_failure(status)

    def invalid_json(self) -> ProviderError:
        """See `ProtocolCodec.invalid_json`."""
        return openai_invalid_json()


def reject_hosted(reply: Reply, reason: str) -> None:
    """Raise an error if a reply holds anything of hosted MCP.

    Raises:
        Unsupported: It does; *reason* says what the protocol lacks.
    """
    if reply.hosted or any(call.kind == "hosted_mcp" for call in reply.calls):
        raise Unsupported("hosted_mcp", reason)
