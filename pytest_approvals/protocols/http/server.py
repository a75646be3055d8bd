"""The requests that come over one connection, as `httptools` reads them: llhttp, the parser of Node.js.

The HTTP of the loopback server: connections and threads are the standard library's, requests are read by `httptools`.

Nagle is off, and an answer is one write: with it on, an answer in two writes waits 40 ms for the client's
acknowledgement. A stream is one write, too, but where its style wants pieces.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from typing import Any, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.protocols.endpoint import JSON, STREAM, HttpResponse

MAX_BODY_SIZE = 32 * 1024 * 1024
"""How large the body of a request may be."""


class HttpRequest(NamedTuple):
    """One request; after one that is not *lasting*, the client wants the connection to end."""

    method: str
    path: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    lasting: bool


class RequestTooLarge(Exception):
    """A body is larger than `MAX_BODY_SIZE`, or says so."""


class RequestUnreadable(Exception):
    """
    What came is not HTTP.

    Attributes:
        in_body: The head of the request was.
    """

    def __init__(self, in_body: bool) -> None:
        super().__init__("what came is not HTTP")
        self.in_body = in_body


class HttpRequestReader:
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
        self._whole: list[HttpRequest] = []
        self.on_message_begin()

    def read(self, piece: bytes) -> list[HttpRequest]:
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
                raise RequestUnreadable(self._in_body) from None
            self._whole[-1] = self._whole[-1]._replace(lasting=False)
        if self._size > MAX_BODY_SIZE:
            raise RequestTooLarge
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
            if word == b"content-length" and int(value) > MAX_BODY_SIZE:
                self._size = MAX_BODY_SIZE + 1
            elif word == b"expect" and self._size <= MAX_BODY_SIZE:
                self._go_on()

    def on_body(self, piece: bytes) -> None:
        """A piece of the body came."""
        self._size += len(piece)
        if self._size <= MAX_BODY_SIZE:
            self._body.append(piece)

    def on_message_complete(self) -> None:
        """The request ended."""
        parser, body = self._parser, b"".join(self._body)
        method, lasting = parser.get_method().decode("latin-1"), parser.should_keep_alive()
        self._whole.append(HttpRequest(method, self.path, self._headers, body, lasting))


HOLD_SECONDS = 2.0
"""How many seconds a client may wait for an answer that does not come; then the connection ends, as a proxy ends it."""

METHODS = ("GET", "POST", "DELETE")

STATUS_PHRASES = {int(status): status.phrase for status in HTTPStatus}
"""What stands behind a status; behind all others, such as Anthropic's 529, stands that the server is overloaded."""

ServeRequest = Callable[[str, str, bytes], HttpResponse]
"""Answers a method, a path and a body; raises `ModelDown` where the connection breaks without an answer."""

RefuseRequest = Callable[[str], HttpResponse]
"""Answers a path whose body is too large."""


class HttpServer(ThreadingTCPServer):
    """
    Listens on one address; a thread for each connection.

    Arguments:
        lasting: A connection stays open for further requests; else it ends with its first answer, so that nobody has
            to close the clients.
        handler: Serves a connection, in place of `ConnectionHandler`.
    """

    request_queue_size = 128
    allow_reuse_address = True

    def __init__(
        self,
        family: socket.AddressFamily,
        address: str,
        port: int,
        serve: ServeRequest,
        too_large: RefuseRequest,
        *,
        lasting: bool = True,
        handler: type[ConnectionHandler] | None = None,
    ) -> None:
        self.address_family = family
        self.lasting = lasting
        self.serve = serve
        self.too_large = too_large
        self._open: dict[socket.socket, Thread] = {}
        super().__init__((address, port), handler or ConnectionHandler)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serves a connection in a thread of its own; both are noted, so that `stop` can end them."""
        thread = Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        """Forgets a connection that has ended."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing about a client that went away."""

    def stop(self) -> None:
        """Ends the loop, closes every connection and waits for its thread."""
        self.shutdown()
        self.server_close()
        left = list(self._open.items())
        for connection, _ in left:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        for _, thread in left:
            thread.join(5)


class ConnectionHandler(BaseRequestHandler):
    """Serves the requests of one connection, one after the other."""

    server: HttpServer
    request: socket.socket

    def handle(self) -> None:
        """Reads what comes and answers it, until one of the two sides ends the connection."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self._lasts = True
        reader = HttpRequestReader(self._go_on)
        with suppress(ConnectionError):
            while self._lasts and (piece := self.request.recv(65536)):
                self._take(reader, piece)

    def _take(self, reader: HttpRequestReader, piece: bytes) -> None:
        try:
            requests = reader.read(piece)
        except RequestTooLarge:
            self._lasts = False
            self._send(self.server.too_large(reader.path))
        except RequestUnreadable as unreadable:
            self._lasts = False
            if not unreadable.in_body:
                self._send(HttpResponse.from_json({"error": {"message": str(unreadable)}}, HTTPStatus.BAD_REQUEST))
        else:
            for request in requests:
                if self._lasts:
                    self._answer(request)

    def serve(self, request: HttpRequest) -> HttpResponse:
        """Gives the answer to a request; raises `ModelDown` where the connection breaks without one."""
        return self.server.serve(request.method, request.path.partition("?")[0], request.body)

    def _answer(self, request: HttpRequest) -> None:
        self._lasts = request.lasting and self.server.lasting
        if request.method not in METHODS:
            self._lasts = False
            self._send(HttpResponse(status=HTTPStatus.NOT_IMPLEMENTED, content_type=JSON, pieces=iter(())))
            return
        try:
            answer = self.serve(request)
        except ModelDown as down:
            self._break_off(down)
            return
        self._send(answer)

    def _go_on(self) -> None:
        self.request.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _send(self, answer: HttpResponse) -> None:
        if answer.content_type == STREAM:
            self._send_stream(answer)
        else:
            body = b"".join(answer.pieces)
            self.request.sendall(b"%bContent-Length: %d\r\n\r\n%b" % (self._head(answer), len(body), body))

    def _send_stream(self, answer: HttpResponse) -> None:
        head, waiting = self._head(answer) + b"Transfer-Encoding: chunked\r\n\r\n", []
        try:
            for piece in answer.pieces:
                waiting.append(piece)
                if answer.flush_each:
                    self.request.sendall(head + _format_chunk(waiting))
                    head, waiting = b"", []
        except ModelDown as down:
            self.request.sendall(head + _format_chunk(waiting))
            self._break_off(down)
            return
        self.request.sendall(head + _format_chunk(waiting) + b"0\r\n\r\n")

    def _break_off(self, down: ModelDown) -> None:
        """Ends the connection; where no answer comes in time, the client has some time to do that."""
        self._lasts = False
        if down.how == "timeout":
            self.request.settimeout(HOLD_SECONDS)
            with suppress(OSError):
                self.request.recv(1)

    def _head(self, answer: HttpResponse) -> bytes:
        return _format_head(answer.status, answer.content_type, answer.headers, self._lasts)


@lru_cache(maxsize=256)
def _format_head(status: int, content_type: str, headers: tuple[tuple[str, str], ...], lasts: bool) -> bytes:
    """Gives the head of an answer up to its length."""
    lines = [f"HTTP/1.1 {int(status)} {STATUS_PHRASES.get(status, 'Overloaded')}"]
    lines += [f"Content-Type: {content_type}", *(f"{name}: {value}" for name, value in headers)]
    if not lasts:
        lines.append("Connection: close")
    return "\r\n".join([*lines, ""]).encode()


def _format_chunk(pieces: list[bytes]) -> bytes:
    """Gives pieces as one chunk; nothing for none, because an empty chunk ends a stream."""
    body = b"".join(pieces)
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""
