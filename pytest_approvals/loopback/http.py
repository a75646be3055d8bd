"""
The HTTP of the loopback server, on the standard library's.

Nagle is off, and an answer is one write: with it on, an answer in two writes waits 40 ms for the client's
acknowledgement. A stream is one write, too, but where its style wants pieces.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from pytest_approvals.agent_side.failures import ModelDown
from pytest_approvals.protocols.endpoint import STREAM, Answer

from .body import TooLarge, body_of

HELD = 2.0
"""How many seconds a client may wait for an answer that does not come; then the connection ends, as a proxy ends it."""

Serve = Callable[[str, str, bytes], Answer]
"""Answers a method, a path and a body; raises `ModelDown` where the connection breaks without an answer."""

Refuse = Callable[[str], Answer]
"""Answers a path whose body is too large."""


class Listener(ThreadingHTTPServer):
    """
    Listens on one address; a thread for each connection.

    Arguments:
        lasting: A connection stays open for further requests; else it ends with its first answer, so that nobody has
            to close the clients.
        handler: Serves a connection, in place of `Handler`.
    """

    request_queue_size = 128

    def __init__(
        self,
        family: socket.AddressFamily,
        address: str,
        port: int,
        serve: Serve,
        too_large: Refuse,
        *,
        lasting: bool = True,
        handler: type[Handler] | None = None,
    ) -> None:
        self.address_family = family
        self.lasting = lasting
        self.serve = serve
        self.too_large = too_large
        self._open: dict[socket.socket, Thread] = {}
        super().__init__((address, port), handler or Handler)

    def server_bind(self) -> None:
        """Binds without asking a name server for the own name, as the base class does."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
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


class Handler(BaseHTTPRequestHandler):
    """Serves the requests of one connection, one after the other."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Listener

    def do_GET(self) -> None:
        """Serves a request without a body."""
        self._answer(b"")

    def do_POST(self) -> None:
        """Serves a request with a body."""
        try:
            self._answer(body_of(self.headers, self.rfile))
        except TooLarge:
            self.close_connection = True
            self._send(self.server.too_large(self.path))
        except ConnectionError:
            self.close_connection = True

    do_DELETE = do_GET  # noqa: N815 -- likewise

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the base class names it
        """Logs nothing: the journal holds what was asked."""

    def serve(self, raw: bytes) -> Answer:
        """Gives the answer to a request with that body; raises `ModelDown` where the connection breaks without one."""
        return self.server.serve(self.command, self.path.partition("?")[0], raw)

    def _answer(self, raw: bytes) -> None:
        self.close_connection |= not self.server.lasting
        try:
            answer = self.serve(raw)
        except ModelDown as down:
            self._break_off(down)
            return
        self._send(answer)

    def _send(self, answer: Answer) -> None:
        try:
            if answer.content_type == STREAM:
                self._send_stream(answer)
            else:
                body = b"".join(answer.pieces)
                self.wfile.write(self._head(answer, f"Content-Length: {len(body)}") + body)
        except ConnectionError:
            self.close_connection = True

    def _send_stream(self, answer: Answer) -> None:
        waiting = self._head(answer, "Transfer-Encoding: chunked")
        try:
            for piece in _chunked(answer.pieces):
                waiting += piece
                if answer.apart:
                    self.wfile.write(waiting)
                    waiting = b""
        except ModelDown as down:
            self.wfile.write(waiting)
            self._break_off(down)
            return
        self.wfile.write(waiting + b"0\r\n\r\n")

    def _break_off(self, down: ModelDown) -> None:
        """Ends the connection; where no answer comes in time, the client has some time to do that."""
        self.close_connection = True
        if down.how == "timeout":
            self.connection.settimeout(HELD)
            with suppress(OSError):
                self.connection.recv(1)

    def _head(self, answer: Answer, length: str) -> bytes:
        phrase = self.responses.get(answer.status, ("", ""))[0] if answer.status in self.responses else "Overloaded"
        lines = [f"HTTP/1.1 {answer.status} {phrase}", f"Content-Type: {answer.content_type}", length]
        lines += [f"{name}: {value}" for name, value in answer.headers]
        if self.close_connection:
            lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode()


def _chunked(pieces: Iterator[bytes]) -> Iterator[bytes]:
    return (f"{len(piece):x}\r\n".encode() + piece + b"\r\n" for piece in pieces if piece)
