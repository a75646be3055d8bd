"""The body of a request, as the standard library reads it: by its length, or in chunks."""

from __future__ import annotations

from http.client import HTTPException, HTTPResponse
from io import BufferedIOBase
from typing import Any, Protocol

MOST = 32 * 1024 * 1024
"""How large the body of a request may be."""


class TooLarge(Exception):
    """A body is larger than `MOST`, or says so."""


class Headers(Protocol):
    """What is read of the head of a request."""

    def get(self, name: str, default: str) -> str:
        """Gives a header."""


def body_of(headers: Headers, file: BufferedIOBase) -> bytes:
    """
    Reads the body of a request, which is empty where the head announces none.

    Errors:
        TooLarge: It is too large; nothing, or not all, was read.
        ConnectionError: The client ended in its middle.
    """
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return _chunked(file)
    announced = headers.get("content-length", "0")
    length = int(announced) if announced.isdigit() else MOST + 1
    if length > MOST:
        raise TooLarge
    body = file.read(length)
    if len(body) < length:
        raise ConnectionError("the client ended in the middle of a body")
    return body


def _chunked(file: BufferedIOBase) -> bytes:
    """Reads a body in chunks, as `http.client` reads that of a response."""
    response = HTTPResponse(_Connection(file))  # type: ignore[arg-type]  # of the socket it makes a file, and no more
    response.chunked, response.chunk_left, response.length = True, None, None
    try:
        body = response.read(MOST + 1)
    except (HTTPException, ValueError) as error:
        raise ConnectionError("a chunk of a body cannot be read") from error
    if len(body) > MOST:
        raise TooLarge
    return body


class _Connection:
    """Lends a connection's file to whoever closes what he has read to its end."""

    def __init__(self, file: BufferedIOBase) -> None:
        self.read = file.read
        self.readline = file.readline

    def makefile(self, mode: str) -> Any:
        return self

    def flush(self) -> None:
        """Has nothing to flush."""

    def close(self) -> None:
        """Leaves the connection open: the next request comes over it."""
