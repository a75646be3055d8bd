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
"""The protocols by the path that their requests are posted to, below the base address and the version."""


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
"""Factory of the codec of each protocol, which imports its modules when it is first used."""


def create_codec(name: str) -> ProtocolCodec:
    """Return a codec for a new conversation in the protocol *name*.

    Raises:
        UnknownName: No protocol has that name.
    """
    if name not in CODECS:
        raise UnknownName("protocol", name, CODECS)
    return CODECS[name]()
