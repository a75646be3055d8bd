"""AWS event streams: messages of headers and a payload, each framed by its length and two checksums.

The format is that of the Smithy specification ("Amazon Event Stream"), as the AWS clients read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from zlib import crc32

from pytest_approvals.protocols.streaming import PLAIN, SseEvent, StreamStyle
from pytest_approvals.protocols.text import to_json

MEDIA_TYPE = "application/vnd.amazon.eventstream"

_TEXT = 7
"""Type of a header whose value is text."""

_FRAME = 16
"""Bytes of a message beside its headers and its payload."""


def encode_messages(events: Iterable[SseEvent], style: StreamStyle = PLAIN) -> Iterator[bytes]:
    """Yield events as messages; what *events* raises comes out after the bytes before it.

    Of a style only the size of the pieces has a meaning: lines, names and comments are those of server-sent events.
    """
    for event in events:
        data = event.data if isinstance(event.data, str) else to_json(event.data)
        message = encode_message(event.name or "", data.encode(errors="backslashreplace"))
        if style.size is None:
            yield message
        else:
            yield from (message[start : start + style.size] for start in range(0, len(message), style.size))


def encode_message(event: str, payload: bytes) -> bytes:
    """Return one message: the lengths and their checksum, the headers, the payload, and a checksum of it all.

    >>> len(encode_message("messageStop", b"{}"))
    99
    """
    kinds = {":event-type": event, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(_encode_header(name, value) for name, value in kinds.items())
    lengths = (len(headers) + len(payload) + 16).to_bytes(4, "big") + len(headers).to_bytes(4, "big")
    message = lengths + crc32(lengths).to_bytes(4, "big") + headers + payload
    return message + crc32(message).to_bytes(4, "big")


def _encode_header(name: str, value: str) -> bytes:
    return bytes([len(name)]) + name.encode() + bytes([_TEXT]) + len(value).to_bytes(2, "big") + value.encode()


def decode_messages(raw: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield the event name and the payload of each message of a stream.

    Raises:
        ValueError: The stream ends in the middle of a message, a checksum differs, or a message is an error.

    >>> list(decode_messages(encode_message("messageStop", b"{}")))
    [('messageStop', b'{}')]
    """
    start = 0
    while start < len(raw):
        size, headers_size = (int.from_bytes(raw[start + at : start + at + 4], "big") for at in (0, 4))
        message = raw[start : start + size]
        start += size
        if size < _FRAME or len(message) < size or headers_size > size - _FRAME:
            raise ValueError("the stream ends in the middle of a message")
        if int.from_bytes(message[-4:], "big") != crc32(message[:-4]):
            raise ValueError("a message of the stream has another checksum")
        headers = dict(_decode_headers(message[12 : 12 + headers_size]))
        payload = message[12 + headers_size : -4]
        if headers.get(":message-type") != "event":
            kind = headers.get(":exception-type") or headers.get(":error-code") or "an error"
            raise ValueError(f"the stream ends with {kind}")
        yield headers.get(":event-type", ""), payload


def _decode_headers(raw: bytes) -> Iterator[tuple[str, str]]:
    """Yield the headers, all of which are texts."""
    while raw:
        name, kind, rest = raw[1 : 1 + raw[0]], raw[1 + raw[0]], raw[2 + raw[0] :]
        if kind != _TEXT:
            raise ValueError(f"a header of the stream has the type {kind}, and not that of texts")
        size = int.from_bytes(rest[:2], "big")
        yield name.decode(), rest[2 : 2 + size].decode()
        raw = rest[2 + size :]
