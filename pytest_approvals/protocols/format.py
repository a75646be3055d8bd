"""
The protocols that clients of models speak.

A `Format` serves one conversation: it reads requests, writes replies, as JSON and as a stream, and words refusals. What
it has no part in: HTTP, the script, and the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol

from pytest_approvals.agent_side.neutral import Reply
from pytest_approvals.errors import UnknownName

from .asked import Asked
from .complaints import Complaint
from .rules import BrokenRule
from .sse import PLAIN, Event, Style

PATHS = {"chat/completions": "chat", "responses": "responses", "messages": "messages"}
"""The protocols by the path that their requests are posted to, below the base address and the version."""


class Format(Protocol):
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

    def read(self, body: Any) -> Asked:
        """Reads the body of a request, parsed from JSON; what is wrong with it is in `Asked.complaints`."""

    def reply(self, asked: Asked, reply: Reply) -> dict[str, Any]:
        """
        Gives a reply as JSON.

        Errors:
            Unsupported: The protocol has nothing that could say it.
        """

    def events(self, asked: Asked, reply: Reply, style: Style = PLAIN) -> Iterator[Event]:
        """
        Gives a reply as a stream.

        Errors:
            ModelDown: The stream breaks here, as the reply says.
            Unsupported: The protocol has nothing that could say it.
        """

    def worded(self, broken: BrokenRule, asked: Asked) -> Complaint:
        """Gives a broken neutral rule in the provider's words."""

    def error(self, complaint: Complaint) -> dict[str, Any]:
        """Gives the body of an answer that refuses or fails."""

    def failure(self, status: int) -> Complaint:
        """Gives what the provider says when it fails with that status: 401, 404, 413, 429, 500, 503, 529."""

    def not_json(self) -> Complaint:
        """Gives what the provider says to a body that is not JSON."""


def _chat() -> Format:
    from .chat import Chat

    return Chat()


def _responses() -> Format:
    from .responses import Responses

    return Responses()


def _messages() -> Format:
    from .messages import Messages

    return Messages()


FORMATS: dict[str, Callable[[], Format]] = {"chat": _chat, "responses": _responses, "messages": _messages}
"""What begins a conversation in each protocol, which is imported when it is spoken."""


def format_named(name: str) -> Format:
    """
    Gives a new conversation in the protocol called *name*.

    Errors:
        UnknownName: No protocol has that name.
    """
    if name not in FORMATS:
        raise UnknownName("protocol", name, FORMATS)
    return FORMATS[name]()
