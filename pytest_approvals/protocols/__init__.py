"""Protocols of model providers: requests, replies and errors.

bytes ──► endpoint ──► codec ──► ParsedRequest ──► the scripted model
             ▲           │
             └─ events ◄─┴─── Reply
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pytest_approvals.errors import UnknownName

if TYPE_CHECKING:
    from pytest_approvals.protocols.codec import ProtocolCodec

PROTOCOL_PATHS = {"chat/completions": "chat", "responses": "responses", "messages": "messages"}
"""The protocols by the path that their requests are posted to, below the base address and the version.

Those of Gemini and of Converse name a model, too; see `find_protocol`.
"""


def find_protocol(path: str) -> str | None:
    """Return the protocol whose requests are posted to a path below the base address; None if there is none.

    >>> [find_protocol(path) for path in ("messages", "v1beta/models/m:generateContent", "model/m/converse", "files")]
    ['messages', 'gemini', 'converse', None]
    """
    found = PROTOCOL_PATHS.get(path)
    return found or next((name for name, methods in _METHODS.items() if path.endswith(methods)), None)


_METHODS = {
    "gemini": (":generateContent", ":streamGenerateContent"),
    "converse": ("/converse", "/converse-stream"),
}
"""The ends of paths that name a model, by protocol."""


def _create_chat() -> ProtocolCodec:
    from pytest_approvals.protocols.chat import ChatCodec

    return ChatCodec()


def _create_responses() -> ProtocolCodec:
    from pytest_approvals.protocols.responses import ResponsesCodec

    return ResponsesCodec()


def _create_messages() -> ProtocolCodec:
    from pytest_approvals.protocols.messages import MessagesCodec

    return MessagesCodec()


def _create_gemini() -> ProtocolCodec:
    from pytest_approvals.protocols.gemini import GeminiCodec

    return GeminiCodec()


def _create_converse() -> ProtocolCodec:
    from pytest_approvals.protocols.converse import ConverseCodec

    return ConverseCodec()


CODECS: dict[str, Callable[[], ProtocolCodec]] = {
    "chat": _create_chat,
    "responses": _create_responses,
    "messages": _create_messages,
    "gemini": _create_gemini,
    "converse": _create_converse,
}
"""Factory of the codec of each protocol, which imports its modules when it is first used."""


def create_codec(name: str) -> ProtocolCodec:
    """Return a codec for a new conversation in the protocol *name*.

    Raises:
        UnknownName: No protocol has that name.
    """
    if name not in CODECS:
        raise UnknownName("protocol", name, CODECS)
    return CODECS[name]()
