"""A request to a model, as every protocol says it in its own way.

The protocols that clients of models speak.

A `ProtocolCodec` serves one conversation: it reads requests, writes replies, as JSON and as a stream, and words refusals. What
it has no part in: HTTP, the script, and the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pytest_approvals.agent_side.contract.types import Item, Reply
from pytest_approvals.errors import UnknownName
from pytest_approvals.protocols.input_rules import RuleViolation
from pytest_approvals.protocols.provider_errors import ProviderError
from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedRequest:
    """
    One request of a client.

    Attributes:
        body: The request as it came.
        items: The complete input of the model, with what the provider kept of the conversation.
        stream: The client wants the answer as a stream.
        tools: The names of the tools that the model is offered.
        parameters: The parameters of each offered function, by the function's name.
        formatted: The client wants text in a format of its own, which is where a structured answer goes.
        complaints: What is wrong with the body itself.
        broken: All that the provider refuses: the complaints, or else the rules that the items break, once judged.
        readable: Whether the body has the shape of a request at all; if not, there are no items.
    """

    body: Mapping[str, Any] = field(default_factory=dict)
    items: tuple[Item, ...] = ()
    model: str = ""
    stream: bool = False
    tools: tuple[str, ...] = ()
    parameters: Mapping[str, frozenset[str]] = field(default_factory=dict)
    formatted: bool = False
    complaints: tuple[ProviderError, ...] = ()
    broken: tuple[RuleViolation, ...] = ()
    readable: bool = True

    def place(self, kind: str, item_id: str) -> int:
        """Gives the number of the message with the last item of that kind and id; 0 where there is none."""
        return next((item.message for item in reversed(self.items) if item.kind == kind and item.id == item_id), 0)


PROTOCOL_PATHS = {"chat/completions": "chat", "responses": "responses", "messages": "messages"}
"""The protocols by the path that their requests are posted to, below the base address and the version."""


class ProtocolCodec(Protocol):
    """
    One conversation in one protocol.

    Attributes:
        name: What its rules are called: `chat`, `responses` or `messages`.
        path: Where its requests are posted, below the base address that its clients take.
        opening: The name of the first event of its streams; None where events have no names.
        keeps: What a request says depends on those before: the provider keeps something of them.
    """

    name: str
    path: str
    opening: str | None
    keeps: bool

    def read(self, body: Any) -> ParsedRequest:
        """Reads the body of a request, parsed from JSON; what is wrong with it is in `ParsedRequest.complaints`."""

    def reply(self, asked: ParsedRequest, reply: Reply) -> dict[str, Any]:
        """
        Gives a reply as JSON.

        Errors:
            Unsupported: The protocol has nothing that could say it.
        """

    def events(self, asked: ParsedRequest, reply: Reply, style: StreamStyle = PLAIN) -> Iterator[SseEvent]:
        """
        Gives a reply as a stream.

        Errors:
            ModelDown: The stream breaks here, as the reply says.
            Unsupported: The protocol has nothing that could say it.
        """

    def worded(self, broken: RuleViolation, asked: ParsedRequest) -> ProviderError:
        """Gives a broken neutral rule in the provider's words."""

    def error(self, complaint: ProviderError) -> dict[str, Any]:
        """Gives the body of an answer that refuses or fails."""

    def failure(self, status: int) -> ProviderError:
        """Gives what the provider says when it fails with that status: 401, 404, 413, 429, 500, 503, 529."""

    def not_json(self) -> ProviderError:
        """Gives what the provider says to a body that is not JSON."""


def _create_chat() -> ProtocolCodec:
    from pytest_approvals.protocols.chat import ChatCodec

    return ChatCodec()


def _create_responses() -> ProtocolCodec:
    from pytest_approvals.protocols.responses import ResponsesCodec

    return ResponsesCodec()


def _create_messages() -> ProtocolCodec:
    from pytest_approvals.protocols.messages import MessagesCodec

    return MessagesCodec()


CODECS: dict[str, Callable[[], ProtocolCodec]] = {
    "chat": _create_chat,
    "responses": _create_responses,
    "messages": _create_messages,
}
"""What begins a conversation in each protocol, which is imported when it is spoken."""


def create_codec(name: str) -> ProtocolCodec:
    """
    Gives a new conversation in the protocol called *name*.

    Errors:
        UnknownName: No protocol has that name.
    """
    if name not in CODECS:
        raise UnknownName("protocol", name, CODECS)
    return CODECS[name]()
