"""A client as fast as Python allows: requests written once, answers read to their end and not looked into."""

from __future__ import annotations

import json
import re
import selectors
import socket
import struct
import time
from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

_LENGTH = re.compile(rb"\r\ncontent-length: *([0-9]+)\r\n", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked\r\n", re.IGNORECASE)
_CLOSE = re.compile(rb"\r\nconnection: *close\r\n", re.IGNORECASE)

_PATIENCE = struct.pack("ll", 30, 0)
"""After 30 seconds without an answer, the measurement fails."""


class Client:
    """
    Asks over several connections at the same time, on each one request after the other.

    Arguments:
        port: Where the server listens.
        paths: The path for each connection, in turn.
        bodies: What is asked on each connection, in turn; from the start again once all were asked.

    Attributes:
        answers: How many answers it has got.
    """

    def __init__(self, port: int, paths: Sequence[str], bodies: Sequence[Sequence[Any]], connections: int) -> None:
        self._port = port
        self._requests = [
            cycle([_written(port, paths[at % len(paths)], one) for one in bodies[at % len(bodies)]])
            for at in range(connections)
        ]
        self.answers = 0

    def rate(self, seconds: float) -> float:
        """Gives the answers a second, after a tenth of that time to warm up."""
        self._ask(seconds / 10)
        start = time.perf_counter()
        answers = self._ask(seconds)
        return answers / (time.perf_counter() - start)

    def _ask(self, seconds: float) -> int:
        if len(self._requests) == 1:
            return self._ask_on_one(self._requests[0], seconds)
        answers, limit = 0, time.perf_counter() + seconds
        with selectors.DefaultSelector() as selector:
            for requests in self._requests:
                self._begin(selector, requests)
            while time.perf_counter() < limit:
                for key, _ in selector.select(1):
                    answers += self._read(selector, key.fileobj, *key.data)
            for key in list(selector.get_map().values()):
                key.fileobj.close()
        self.answers += answers
        return answers

    def _ask_on_one(self, requests: Iterator[bytes], seconds: float) -> int:
        """Ask on one connection, where waiting for the answer is reading it."""
        answers, limit = 0, time.perf_counter() + seconds
        connection, got = self._connect(), b""
        connection.sendall(next(requests))
        while time.perf_counter() < limit:
            try:
                piece = connection.recv(65536)
            # As a connection that ends.
            except ConnectionResetError:
                piece = b""
            got += piece
            whole = is_whole(got)
            if piece and not whole:
                continue
            if not piece or ends_connection(got):
                connection.close()
                connection = self._connect()
            got = b""
            answers += whole
            connection.sendall(next(requests))
        connection.close()
        self.answers += answers
        return answers

    def _connect(self) -> socket.socket:
        # A time limit of Python's would cost a call of the system each time; that of the kernel costs nothing.
        connection = socket.create_connection(("127.0.0.1", self._port), timeout=30)
        connection.settimeout(None)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _PATIENCE)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return connection

    def _begin(self, selector: selectors.BaseSelector, requests: Iterator[bytes]) -> None:
        connection = self._connect()
        selector.register(connection, selectors.EVENT_READ, (bytearray(), requests))
        connection.sendall(next(requests))

    def _read(
        self, selector: selectors.BaseSelector, connection: Any, waiting: bytearray, requests: Iterator[bytes]
    ) -> int:
        try:
            piece = connection.recv(65536)
        # As a connection that ends.
        except ConnectionResetError:
            piece = b""
        got = bytes(waiting) + piece if waiting else piece
        whole = is_whole(got)
        if piece and not whole:
            waiting += piece
            return 0
        if piece and not ends_connection(got):
            waiting.clear()
            connection.sendall(next(requests))
            return 1
        # A server that ends the connection after an answer gets another one.
        selector.unregister(connection)
        connection.close()
        self._begin(selector, requests)
        return int(whole)


def is_whole(got: bytes) -> bool:
    """Says whether an answer has come to its end: by its length, or by its last chunk."""
    end = got.find(b"\r\n\r\n")
    if end < 0:
        return False
    length = _LENGTH.search(got, 0, end + 2)
    if length is not None:
        return int(length[1]) <= len(got) - end - 4
    return got.endswith(b"0\r\n\r\n") and _CHUNKED.search(got, 0, end + 2) is not None


def ends_connection(got: bytes) -> bool:
    """Says whether the server ends the connection after this answer."""
    return _CLOSE.search(got, 0, got.find(b"\r\n\r\n") + 2) is not None


def posted(port: int, path: str, body: Any) -> int:
    """Posts JSON and gives the status of the answer; 0 where there is none."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(_written(port, path, body))
            got = b""
            while not is_whole(got) and (piece := connection.recv(65536)):
                got += piece
    except OSError:
        return 0
    return int(got.split(b" ", 2)[1]) if got.startswith(b"HTTP/1.1 ") else 0


def _written(port: int, path: str, body: Any) -> bytes:
    raw = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer none\r\nContent-Length: {len(raw)}\r\n\r\n"
    )
    return head.encode() + raw
