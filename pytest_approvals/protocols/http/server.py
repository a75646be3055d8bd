"""HTTP server of scripted models: an event loop, requests parsed by `httptools`.

One thread serves all connections. A connection gets a thread of its own as soon as something on it may wait: a response
that is not ready, a client that does not read. `httptools` wraps llhttp, the parser of Node.js. Nagle's algorithm is
off, and a response is one write: with it on, a response in two writes waits 40 ms for the client's acknowledgement. A
stream is one write too, unless its style wants pieces.
"""

from __future__ import annotations

import re
import selectors
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from threading import Thread
from typing import NamedTuple

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


def path_of(target: str) -> str:
    """Return the path of a request's target with its query; the target may be a whole address.

    >>> path_of("/health?x=1"), path_of("HTTP://[::1]:80/health"), path_of("http://model.invalid?x=1")
    ('/health?x=1', '/health', '/?x=1')
    """
    if target.startswith("/"):
        return target
    rest = _ABSOLUTE.sub("", target, count=1)
    return rest if rest.startswith("/") else f"/{rest}"


def error_of(message: str, status: int) -> HttpResponse:
    """Return an error that is of no provider."""
    return HttpResponse.from_json({"error": {"message": message}}, status)


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


class _Head(NamedTuple):
    """A head that was parsed, but for the value of its `Content-Length`.

    Attributes:
        before: What stands before that value.
        behind: What stands behind it, to the end of the head.
        length_at: Which of the headers is `Content-Length`.
    """

    before: bytes
    behind: bytes
    method: str
    path: str
    headers: list[tuple[bytes, bytes]]
    keep_alive: bool
    origin: bytes
    length_at: int


_MAX_LENGTH_DIGITS = 7
_LENGTH = re.compile(rb"\r\nContent-Length: ?([0-9]{1,%d})\r\n" % _MAX_LENGTH_DIGITS, re.IGNORECASE)

_MAX_HEADS = 256
_MAX_HEAD_LENGTH = 4096

_known_heads: dict[tuple[bytes, bytes], _Head] = {}
"""Heads by what stands before and behind the value of `Content-Length`; those of a client are all alike."""


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
        # The head of the last request, if it is known: nearly always the next one has the same.
        self._last: _Head | None = None
        self._complete: list[HttpRequest] = []
        # No part of a request was received yet, so that the next bytes begin one.
        self._is_between = True
        self.on_message_begin()

    def read(self, data: bytes) -> list[HttpRequest]:
        """Parse what was received, and return the requests that are complete with it.

        A request that is followed by something unreadable is the last one.

        Raises:
            RequestTooLarge: A body is too large; nothing more can be read.
            HeadTooLarge: A head does not end; nothing more can be read.
            RequestUnreadable: Nothing more can be read.
        """
        if self._is_between:
            known = None if self._last is None else _read_with_head(data, self._last)
            if known is None:
                self._last = _find_known_head(data)
                known = None if self._last is None else _read_with_head(data, self._last)
            if known is not None:
                self.path = known.path
                return [known]
        is_between, self._is_between = self._is_between, False
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
        if len(complete) == 1 and is_between and self._is_between:
            _remember_head(data, complete[0])
        return complete

    # --- callbacks of the parser ---

    def on_message_begin(self) -> None:
        """Begin a request."""
        self._is_between = False
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
        self.path = path_of(self._url.decode("latin-1"))
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
        self._is_between = True
        parser, body = self._parser, b"".join(self._body)
        method, keep_alive = parser.get_method().decode("latin-1"), parser.should_keep_alive()
        self._complete.append(HttpRequest(method, self.path, self._headers, body, keep_alive, self._origin))


def _read_with_head(data: bytes, head: _Head) -> HttpRequest | None:
    """Return the request in *data* if it has that head and *data* is the whole request."""
    before, behind, method, path, headers, keep_alive, origin, length_at = head
    if not data.startswith(before):
        return None
    start = len(before)
    end = data.find(b"\r", start, start + _MAX_LENGTH_DIGITS + 1)
    length = data[start:end]
    body = end + len(behind)
    if end < 0 or not length.isdigit() or int(length) != len(data) - body or not data.startswith(behind, end):
        return None
    headers = headers.copy()
    headers[length_at] = headers[length_at][0], length
    return HttpRequest(method, path, headers, data[body:], keep_alive, origin)


def _find_known_head(data: bytes) -> _Head | None:
    """Return the head of the request in *data* if it is known."""
    end = data.find(b"\r\n\r\n") + 4
    length = _LENGTH.search(data, 0, end) if 4 <= end <= _MAX_HEAD_LENGTH else None
    return None if length is None else _known_heads.get((data[: length.start(1)], data[length.end(1) : end]))


def _remember_head(data: bytes, request: HttpRequest) -> None:
    """Keep the head of a request; *data* is all that was received of it, and of nothing else."""
    end = len(data) - len(request.body)
    length = _LENGTH.search(data, 0, end)
    if length is None or end > _MAX_HEAD_LENGTH or data.find(b"\r\n\r\n") + 4 != end:
        return
    fields = [name.lower() for name, _ in request.headers]
    if fields.count(b"content-length") != 1 or not {b"expect", b"transfer-encoding", b"upgrade"}.isdisjoint(fields):
        return
    if len(_known_heads) >= _MAX_HEADS:
        _known_heads.clear()
    before, behind = data[: length.start(1)], data[length.end(1) : end]
    _known_heads[before, behind] = _Head(
        before,
        behind,
        request.method,
        request.path,
        request.headers,
        request.keep_alive,
        request.origin,
        fields.index(b"content-length"),
    )


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


ServeNow = Callable[[str, str, bytes], HttpResponse | None]
"""The same for a request whose response need not wait; None if it may, and then a thread asks `ServeRequest`."""

_LARGE_BODY = 1024 * 1024
"""Bytes of a body that takes so long to read that other connections should not wait for it."""


class HttpServer:
    """Server on one address.

    Args:
        family: IPv4 or IPv6.
        address: The address of the interface.
        port: 0 takes a free one.
        serve: Answers requests.
        refuse_too_large: Answers requests whose body is too large.
        keep_alive: Keep connections open for further requests; otherwise each ends with its first response, so that
            clients need not be closed.
        handler: Serves a connection, in place of `ConnectionHandler`.
        serve_now: Answers those requests that need no thread of their connection; left out, all need one.

    Attributes:
        socket: Where it listens.
    """

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
        serve_now: ServeNow | None = None,
    ) -> None:
        self.keep_alive = keep_alive
        self.serve = serve
        self.refuse_too_large = refuse_too_large
        self.serve_now = serve_now
        self._handler = handler or ConnectionHandler
        self._open: dict[socket.socket, Thread | None] = {}
        self._is_stopped = False
        self.socket = _listen(family, address, port)
        self._waker, self._wakes = socket.socketpair()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.socket, selectors.EVENT_READ)
        self.selector.register(self._wakes, selectors.EVENT_READ)
        name = self.socket.getsockname()
        self.server_name, self.server_port = str(name[0]), int(name[1])

    def serve_forever(self) -> None:
        """Serve connections until `stop`."""
        while not self._is_stopped:
            for key, _ in self.selector.select():
                if key.data is not None:
                    key.data.receive()
                elif key.fileobj is self.socket:
                    self._accept()

    def _accept(self) -> None:
        with suppress(OSError):
            # Several clients may have connected since.
            while True:
                connection, _ = self.socket.accept()
                connection.setblocking(False)
                self._open[connection] = None
                self.selector.register(connection, selectors.EVENT_READ, self._handler(self, connection))

    def begin_thread(self, connection: socket.socket, serve: Callable[[], None]) -> None:
        """Leave a connection to a thread, which `stop` waits for."""
        self.selector.unregister(connection)
        connection.setblocking(True)

        def run() -> None:
            try:
                serve()
            # As in the loop.
            except Exception:
                pass
            finally:
                self._close(connection)

        thread = self._open[connection] = Thread(target=run, daemon=True)
        thread.start()

    def end(self, connection: socket.socket) -> None:
        """End a connection that no thread serves."""
        self.selector.unregister(connection)
        self._close(connection)

    def _close(self, connection: socket.socket) -> None:
        self._open.pop(connection, None)
        with suppress(OSError):
            connection.shutdown(socket.SHUT_WR)
        connection.close()

    def stop(self) -> None:
        """Stop accepting, close every connection and wait for its thread."""
        self._is_stopped = True
        with suppress(OSError):
            self._waker.send(b"x")
        remaining = list(self._open.items())
        for connection, _ in remaining:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        # A thread that is still at work after that is a daemon, which does not keep the process alive.
        for _, thread in remaining:
            if thread is not None:
                thread.join(5)

    def close(self) -> None:
        """Release the sockets, after `serve_forever` has returned."""
        self.selector.close()
        for connection in list(self._open):
            self._close(connection)
        for one in (self.socket, self._waker, self._wakes):
            one.close()


def _listen(family: socket.AddressFamily, address: str, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((address, port))
        listener.listen(128)
        listener.setblocking(False)
    except BaseException:
        listener.close()
        raise
    return listener


class ConnectionHandler:
    """Handler of one connection, which answers its requests one after the other.

    Args:
        server: The server.
        connection: The connection.
    """

    def __init__(self, server: HttpServer, connection: socket.socket) -> None:
        self.server = server
        self._connection = connection
        self._keep_alive = True
        self._more_headers = b""
        self._reader = HttpRequestReader(self._send_continue)
        self._in_thread = False
        self._unsent = b""
        self._holds = False
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)

    def receive(self) -> None:
        """Answer what was received; the server's loop calls it when there is something."""
        try:
            data = self._connection.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.server.end(self._connection)
            return
        waiting: Sequence[HttpRequest] = ()
        try:
            waiting = self._receive(data)
        # The client has disconnected, or a response failed: neither ends the server.
        except Exception:
            self._keep_alive = False
            self._unsent, self._holds = b"", False
        if waiting or self._unsent or self._holds:
            self._in_thread = True
            self.server.begin_thread(self._connection, lambda: self._go_on(waiting))
        elif not self._keep_alive:
            self.server.end(self._connection)

    def _go_on(self, waiting: Sequence[HttpRequest]) -> None:
        """Serve the connection to its end, in a thread of its own."""
        if self._unsent:
            self._connection.sendall(self._unsent)
        if self._holds:
            self._hold()
        self._answer_all(waiting)
        while self._keep_alive and (data := self._connection.recv(65536)):
            self._receive(data)

    def _receive(self, data: bytes) -> Sequence[HttpRequest]:
        """Answer what was received; return the requests that only a thread may answer."""
        try:
            requests = self._reader.read(data)
        except RequestTooLarge:
            self._keep_alive = False
            self._send(self.server.refuse_too_large(self._reader.path))
        except HeadTooLarge:
            self._keep_alive = False
            message = f"the head of the request is larger than {MAX_HEAD_SIZE} bytes"
            self._send(error_of(message, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE))
        except RequestUnreadable as unreadable:
            self._keep_alive = False
            if not unreadable.in_body:
                self._send(error_of(str(unreadable), HTTPStatus.BAD_REQUEST))
        else:
            return self._answer_all(requests)
        return ()

    def _answer_all(self, requests: Sequence[HttpRequest]) -> Sequence[HttpRequest]:
        """Answer requests in their order; return those from the first on that only a thread may answer."""
        for index, request in enumerate(requests):
            if not self._keep_alive:
                break
            if self._in_thread:
                self._answer(request, self.serve)
            elif self._unsent or len(request.body) > _LARGE_BODY or not self._answer(request, self.serve_now):
                return requests[index:]
        return ()

    def serve_now(self, request: HttpRequest) -> HttpResponse | None:
        """Return the response to a request as `serve` does; None if only a thread may."""
        serve_now = self.server.serve_now
        return None if serve_now is None else serve_now(request.method, request.path, request.body)

    def serve(self, request: HttpRequest) -> HttpResponse:
        """Return the response to a request; raise `ModelDown` if the connection breaks without one."""
        return self.server.serve(request.method, request.path, request.body)

    def _answer(self, request: HttpRequest, serve: Callable[[HttpRequest], HttpResponse | None]) -> bool:
        """Answer a request; return False if *serve* does not."""
        keep_alive, self._keep_alive = self._keep_alive, request.keep_alive and self.server.keep_alive
        if request.method not in METHODS:
            self._keep_alive = False
            self._send(HttpResponse(status=HTTPStatus.NOT_IMPLEMENTED, content_type=JSON, pieces=iter(())))
            return True
        self._more_headers = _format_cors_headers(request) if request.origin else b""
        if request.method == "OPTIONS":
            allow = b"Allow: %b\r\n" % ", ".join(METHODS).encode()
            self._write(b"HTTP/1.1 204 No Content\r\n%b%b\r\n" % (allow, self._more_headers))
            return True
        is_head = request.method == "HEAD"
        try:
            response = serve(request._replace(method="GET") if is_head else request)
        except ModelDown as down:
            self._break_off(down)
            return True
        if response is None:
            self._keep_alive = keep_alive
            return False
        if is_head:
            self._write(b"%bContent-Length: %d\r\n\r\n" % (self._head(response), _size_of(response)))
        else:
            self._send(response)
        return True

    def _send_continue(self) -> None:
        self._write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def _send(self, response: HttpResponse) -> None:
        if response.is_stream:
            self._send_stream(response)
        else:
            body = b"".join(response.pieces)
            self._write(b"%bContent-Length: %d\r\n\r\n%b" % (self._head(response), len(body), body))

    def _send_stream(self, response: HttpResponse) -> None:
        head, waiting = self._head(response) + b"Transfer-Encoding: chunked\r\n\r\n", []
        try:
            for piece in response.pieces:
                waiting.append(piece)
                if response.flush_each:
                    self._write(head + _format_chunk(waiting))
                    head, waiting = b"", []
        except ModelDown as down:
            self._write(head + _format_chunk(waiting))
            self._break_off(down)
            return
        self._write(head + _format_chunk(waiting) + b"0\r\n\r\n")

    def _break_off(self, down: ModelDown) -> None:
        """End the connection; if no response comes in time, the client may end it first."""
        self._keep_alive = False
        if down.how == "timeout" and self._in_thread:
            self._hold()
        else:
            self._holds = down.how == "timeout"

    def _hold(self) -> None:
        self._connection.settimeout(HOLD_SECONDS)
        with suppress(OSError):
            self._connection.recv(1)

    def _write(self, data: bytes) -> None:
        """Send bytes, or as many as the client takes now; the rest is left to a thread."""
        if self._in_thread:
            self._connection.sendall(data)
            return
        sent = 0
        if not self._unsent:
            try:  # noqa: SIM105 -- takes a fraction of the time of `suppress`
                sent = self._connection.send(data)
            except BlockingIOError:
                pass
        if sent < len(data):
            self._unsent += data[sent:]

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
