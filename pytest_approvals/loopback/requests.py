"""The requests that come over one connection, as `httptools` reads them: llhttp, the parser of Node.js."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

MOST = 32 * 1024 * 1024
"""How large the body of a request may be."""


class Request(NamedTuple):
    """One request; after one that is not *lasting*, the client wants the connection to end."""

    method: str
    path: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    lasting: bool


class TooLarge(Exception):
    """A body is larger than `MOST`, or says so."""


class Unreadable(Exception):
    """
    What came is not HTTP.

    Attributes:
        in_body: The head of the request was.
    """

    def __init__(self, in_body: bool) -> None:
        super().__init__("what came is not HTTP")
        self.in_body = in_body


class RequestReader:
    """
    Makes requests of what comes over a connection.

    Arguments:
        go_on: Called where a client waits for a word before it sends a body.

    Attributes:
        path: Where the request that comes just now is sent to.
    """

    def __init__(self, go_on: Callable[[], None]) -> None:
        self.path = ""
        self._go_on = go_on
        self._parser = HttpRequestParser(self)
        self._whole: list[Request] = []
        self.on_message_begin()

    def read(self, piece: bytes) -> list[Request]:
        """
        Takes what came, and gives the requests that are whole with it.

        A request with something behind it that cannot be read is the last one.

        Errors:
            TooLarge: A body is; nothing more can be read.
            Unreadable: Nothing more can be read.
        """
        try:
            self._parser.feed_data(piece)
        except (HttpParserError, HttpParserUpgrade):
            if not self._whole:
                raise Unreadable(self._in_body) from None
            self._whole[-1] = self._whole[-1]._replace(lasting=False)
        if self._size > MOST:
            raise TooLarge
        whole, self._whole = self._whole, []
        return whole

    # --- what the parser calls ---

    def on_message_begin(self) -> None:
        """A request begins."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._in_body = False

    def on_url(self, piece: bytes) -> None:
        """A piece of the path came."""
        self._url += piece

    def on_header(self, name: bytes, value: bytes) -> None:
        """A line of the head came."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """The head ended."""
        self._in_body = True
        self.path = self._url.decode("latin-1")
        for name, value in self._headers:
            word = name.lower()
            if word == b"content-length" and int(value) > MOST:
                self._size = MOST + 1
            elif word == b"expect" and self._size <= MOST:
                self._go_on()

    def on_body(self, piece: bytes) -> None:
        """A piece of the body came."""
        self._size += len(piece)
        if self._size <= MOST:
            self._body.append(piece)

    def on_message_complete(self) -> None:
        """The request ended."""
        parser, body = self._parser, b"".join(self._body)
        method, lasting = parser.get_method().decode("latin-1"), parser.should_keep_alive()
        self._whole.append(Request(method, self.path, self._headers, body, lasting))
