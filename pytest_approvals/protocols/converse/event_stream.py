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
