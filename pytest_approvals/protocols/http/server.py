"""HTTP server of scripted models: a thread for each connection, requests parsed by `httptools`.

Connections and threads are the standard library's. `httptools` wraps llhttp, the parser of Node.js. Nagle's algorithm
is off, and a response is one write: with it on, a response in two writes waits 40 ms for the client's acknowledgement.
A stream is one write too, unless its style wants pieces.
"""

from __future__ import annotations

import re
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
from pytest_approvals.protocols.endpoint import JSON, HttpResponse

MAX_BODY_SIZE = 32 * 1024 * 1024
"""Size limit of the body of a request, in bytes."""

MAX_HEAD_SIZE = 128 * 1024
"""Size limit of what may come before the head of a request is complete, in bytes."""

_ABSOLUTE = re.compile(r"https?://[^/?]*", re.IGNORECASE)
"""Scheme and authority of an address, as clients write it that take the server for a proxy."""

# --- requests ---------------------------------------------------------------------------------------------------------


class HttpRequest(NamedTuple):
    """One request.

    Attributes:
        keep_alive: The client does not want the connection to end after it.
        origin: The page of a browser that sends it; empty if none does.
    """

    method: str
    path: str
    headers: list[tuple[bytes, bytes]]
    body: bytes
    keep_alive: bool
    origin: bytes = b""


class RequestTooLarge(Exception):
    """The body is larger than `MAX_BODY_SIZE`, or announced to be."""


class HeadTooLarge(Exception):
    """The head of a request does not end within `MAX_HEAD_SIZE`."""


class RequestUnreadable(Exception):
    """What was received is not HTTP.

    Attributes:
        in_body: The head of the request was readable.
    """

    def __init__(self, in_body: bool) -> None:
        super().__init__("what came is not HTTP")
        self.in_body = in_body


class HttpRequestReader:
    """Parser of the requests of one connection.

    Args:
        send_continue: Called if a client waits for `100 Continue` before it sends a body.

    Attributes:
        path: The path of the request that is being received.
    """

    def __init__(self, send_continue: Callable[[], None]) -> None:
        self.path = ""
        self._send_continue = send_continue
        self._parser = HttpRequestParser(self)
        self._complete: list[HttpRequest] = []
        self.on_message_begin()

    def read(self, data: bytes) -> list[HttpRequest]:
        """Parse what was received, and return the requests that are complete with it.

        A request that is followed by something unreadable is the last one.

        Raises:
            RequestTooLarge: A body is too large; nothing more can be read.
            HeadTooLarge: A head does not end; nothing more can be read.
            RequestUnreadable: Nothing more can be read.
        """
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade):
            if not self._complete:
                raise RequestUnreadable(self._in_body) from None
            # The complete ones are still answered, and then the connection ends.
            self._complete[-1] = self._complete[-1]._replace(keep_alive=False)
        if self._size > MAX_BODY_SIZE:
            raise RequestTooLarge
        if not self._in_body:
            # Counted here, because the parser hands over a field only when it is complete.
            self._head_size += len(data)
            if self._head_size > MAX_HEAD_SIZE and not self._complete:
                raise HeadTooLarge
        complete, self._complete = self._complete, []
        return complete

    # --- callbacks of the parser ---

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._body: list[bytes] = []
        self._size = 0
        self._head_size = 0
        self._in_body = False
        self._origin = b""

    def on_url(self, data: bytes) -> None:
        """Receive a part of the path."""
        self._url += data

    def on_header(self, name: bytes, value: bytes) -> None:
        """Receive a header field."""
        self._headers.append((name, value))

    def on_headers_complete(self) -> None:
        """End the head."""
        self._in_body = True
        path = self._url.decode("latin-1")
        if not path.startswith("/"):
            rest = _ABSOLUTE.sub("", path, count=1)
            path = rest if rest.startswith("/") else f"/{rest}"
        self.path = path
        for name, value in self._headers:
            field = name.lower()
            if field == b"content-length" and int(value) > MAX_BODY_SIZE:
                # Refused before the client has sent the body.
                self._size = MAX_BODY_SIZE + 1
            elif field == b"origin":
                self._origin = value
            elif field == b"expect" and self._size <= MAX_BODY_SIZE:
                self._send_continue()

    def on_body(self, data: bytes) -> None:
        """Receive a part of the body."""
        self._size += len(data)
        if self._size <= MAX_BODY_SIZE:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """End the request."""
        parser, body = self._parser, b"".join(self._body)
        method, keep_alive = parser.get_method().decode("latin-1"), parser.should_keep_alive()
        self._complete.append(HttpRequest(method, self.path, self._headers, body, keep_alive, self._origin))


# --- connections ------------------------------------------------------------------------------------------------------

HOLD_SECONDS = 2.0
"""Seconds that a client may wait for a response that never comes; then the connection ends, as a proxy ends it."""

METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS")

_LOOPBACK_ORIGIN = re.compile(rb"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?\Z")
"""Pages of this machine, which may read responses; those of the network may not."""

STATUS_PHRASES = {int(status): status.phrase for status in HTTPStatus}
"""Reason phrases; any other status, such as Anthropic's 529, means that the server is overloaded."""

ServeRequest = Callable[[str, str, bytes], HttpResponse]
"""Answers a method, a path with its query, and a body; raises `ModelDown` if there is no response."""

RefuseRequest = Callable[[str], HttpResponse]
"""Answers a path whose body is too large."""


class HttpServer(ThreadingTCPServer):
    """Server on one address, with a thread for each connection.

    Args:
        family: IPv4 or IPv6.
        address: The address of the interface.
        port: 0 takes a free one.
        serve: Answers requests.
        refuse_too_large: Answers requests whose body is too large.
        keep_alive: Keep connections open for further requests; otherwise each ends with its first response, so that
            clients need not be closed.
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
        refuse_too_large: RefuseRequest,
        *,
        keep_alive: bool = True,
        handler: type[ConnectionHandler] | None = None,
    ) -> None:
        self.address_family = family
        self.keep_alive = keep_alive
        self.serve = serve
        self.refuse_too_large = refuse_too_large
        self._open: dict[socket.socket, Thread] = {}
        super().__init__((address, port), handler or ConnectionHandler)
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in its own thread, which `stop` can wait for."""
        thread = Thread(target=self.process_request_thread, args=(request, client_address), daemon=True)
        self._open[request] = thread
        thread.start()

    def shutdown_request(self, request: Any) -> None:
        """Close and drop a connection that has ended."""
        self._open.pop(request, None)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that disconnected; the base class would print a traceback."""

    def stop(self) -> None:
        """Stop accepting, close every connection and wait for its thread."""
        self.shutdown()
        self.server_close()
        remaining = list(self._open.items())
        for connection, _ in remaining:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        # A thread that is still at work after that is a daemon, which does not keep the process alive.
        for _, thread in remaining:
            thread.join(5)


class ConnectionHandler(BaseRequestHandler):
    """Handler of one connection, which answers its requests one after the other."""

    server: HttpServer
    request: socket.socket

    def handle(self) -> None:
        """Answer requests until one of the two sides ends the connection."""
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        self._keep_alive = True
        self._more_headers = b""
        reader = HttpRequestReader(self._send_continue)
        with suppress(ConnectionError):
            while self._keep_alive and (data := self.request.recv(65536)):
                self._receive(reader, data)

    def _receive(self, reader: HttpRequestReader, data: bytes) -> None:
        try:
            requests = reader.read(data)
        except RequestTooLarge:
            self._keep_alive = False
            self._send(self.server.refuse_too_large(reader.path))
        except HeadTooLarge:
            self._keep_alive = False
            error = {"error": {"message": f"the head of the request is larger than {MAX_HEAD_SIZE} bytes"}}
            self._send(HttpResponse.from_json(error, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        except RequestUnreadable as unreadable:
            self._keep_alive = False
            if not unreadable.in_body:
                error = {"error": {"message": str(unreadable)}}
                self._send(HttpResponse.from_json(error, HTTPStatus.BAD_REQUEST))
        else:
            for request in requests:
                if self._keep_alive:
                    self._answer(request)

    def serve(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request; raise `ModelDown` if the connection breaks without one."""
        return self.server.serve(request.method, request.path, request.body)

    def _answer(self, request: HttpRequest) -> None:
        self._keep_alive = request.keep_alive and self.server.keep_alive
        if request.method not in METHODS:
            self._keep_alive = False
            self._send(HttpResponse(status=HTTPStatus.NOT_IMPLEMENTED, content_type=JSON, pieces=iter(())))
            return
        self._more_headers = _format_cors_headers(request) if request.origin else b""
        if request.method == "OPTIONS":
            allow = b"Allow: %b\r\n" % ", ".join(METHODS).encode()
            self.request.sendall(b"HTTP/1.1 204 No Content\r\n%b%b\r\n" % (allow, self._more_headers))
            return
        is_head = request.method == "HEAD"
        try:
            response = self.serve(request._replace(method="GET") if is_head else request)
        except ModelDown as down:
            self._break_off(down)
            return
        if is_head:
            self.request.sendall(b"%bContent-Length: %d\r\n\r\n" % (self._head(response), _size_of(response)))
        else:
            self._send(response)

    def _send_continue(self) -> None:
        self.request.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _send(self, response: HttpResponse) -> None:
        if response.is_stream:
            self._send_stream(response)
        else:
            body = b"".join(response.pieces)
            self.request.sendall(b"%bContent-Length: %d\r\n\r\n%b" % (self._head(response), len(body), body))

    def _send_stream(self, response: HttpResponse) -> None:
        head, waiting = self._head(response) + b"Transfer-Encoding: chunked\r\n\r\n", []
        try:
            for piece in response.pieces:
                waiting.append(piece)
                if response.flush_each:
                    self.request.sendall(head + _format_chunk(waiting))
                    head, waiting = b"", []
        except ModelDown as down:
            self.request.sendall(head + _format_chunk(waiting))
            self._break_off(down)
            return
        self.request.sendall(head + _format_chunk(waiting) + b"0\r\n\r\n")

    def _break_off(self, down: ModelDown) -> None:
        """End the connection; if no response comes in time, the client may end it first."""
        self._keep_alive = False
        if down.how == "timeout":
            self.request.settimeout(HOLD_SECONDS)
            with suppress(OSError):
                self.request.recv(1)

    def _head(self, response: HttpResponse) -> bytes:
        head = _format_head(response.status, response.content_type, self._keep_alive)
        for name, value in response.headers:
            head += f"{name}: {value}\r\n".encode()
        return head + self._more_headers


def _size_of(response: HttpResponse) -> int:
    return sum(map(len, response.pieces))


def _format_cors_headers(request: HttpRequest) -> bytes:
    """Return the header fields that let a page of this machine send a request and read its response."""
    if not _LOOPBACK_ORIGIN.match(request.origin):
        return b""
    lines = b"Access-Control-Allow-Origin: %b\r\nVary: Origin\r\nAccess-Control-Expose-Headers: *\r\n" % request.origin
    if request.method != "OPTIONS":
        return lines
    # `*` does not stand for Authorization, so the fields that are asked for are named.
    asked = [value for name, value in request.headers if name.lower() == b"access-control-request-headers"]
    methods = ", ".join(METHODS).encode()
    lines += b"Access-Control-Allow-Methods: %b\r\nAccess-Control-Max-Age: 600\r\n" % methods
    return lines + b"".join(b"Access-Control-Allow-Headers: %b\r\n" % value for value in asked)


@lru_cache(maxsize=256)
def _format_head(status: int, content_type: str, keep_alive: bool) -> bytes:
    """Return the head of a response up to what is its own."""
    lines = [f"HTTP/1.1 {int(status)} {STATUS_PHRASES.get(status, 'Overloaded')}", f"Content-Type: {content_type}"]
    if not keep_alive:
        lines.append("Connection: close")
    return "\r\n".join([*lines, ""]).encode()


def _format_chunk(pieces: list[bytes]) -> bytes:
    """Return pieces as one chunk; nothing for none, because an empty chunk ends a stream."""
    body = b"".join(pieces)
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""
