"""Line transport over a pair of descriptors, on an event loop and, if it must be, without one.

Written against descriptors and not against transports, because one of the two ends must be able to block for an answer.
"""

from __future__ import annotations

import asyncio
import os
import select
import threading
from collections import deque
from collections.abc import Callable

MAX_LINE_BYTES = 256 * 1024 * 1024
"""The limit of a line: a longer one breaks the protocol."""

_READ_SIZE = 1 << 16


class LineTransport:
    """Reader and writer of lines on the running event loop.

    Args:
        read: The descriptor to read from; it is not closed here.
        write: The descriptor to write to; may be the same.
        arrived: Called after something was read; it takes lines from *waiting*.

    Attributes:
        waiting: The complete lines that were read and not taken.
        over: Nothing more can be read.
        too_long: A line was longer than `MAX_LINE_BYTES`.
    """

    def __init__(self, read: int, write: int, arrived: Callable[[], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._read_from, self._write_to, self._arrived = read, write, arrived
        self.waiting: deque[bytes] = deque()
        self.over = False
        self.too_long = False
        self._partial: list[bytes] = []
        self._partial_size = 0
        self._unsent = bytearray()
        self._closed = False
        os.set_blocking(read, False)
        os.set_blocking(write, False)
        self._loop.add_reader(read, self._readable)

    @property
    def own_thread(self) -> bool:
        """Whether this is called from the thread of the event loop."""
        return threading.get_ident() == self._thread

    def send(self, line: bytes) -> None:
        """Write a line, which ends in a newline; from any thread.

        It is sent in the next iteration of the event loop together with the lines written by then, so that everything
        that one event has caused reaches the other side at once.
        """
        if self.own_thread:
            self._write(line)
        else:
            self._loop.call_soon_threadsafe(self._write, line)

    def block(self, seconds: float) -> bool:
        """Move bytes without the event loop, until something was read or written.

        Returns:
            Whether anything was within *seconds*.
        """
        self._flush()
        waiting = select.poll()
        waiting.register(self._read_from, select.POLLIN)
        if self._unsent:
            waiting.register(self._write_to, select.POLLIN | select.POLLOUT)
        ready = waiting.poll(max(0.0, seconds) * 1000)
        if self._unsent and ready:
            self._writable()
        if ready:
            self._take_bytes()
            # Not at once: the blocked caller must return first, and other lines may not run inside its call.
            self._loop.call_soon(self._arrived)
        return bool(ready)

    def close(self) -> None:
        """Stop reading and writing; lines that were not taken or cannot be written at once are dropped."""
        self._flush()
        self._closed = True
        self.waiting.clear()
        self._loop.remove_reader(self._read_from)
        self._loop.remove_writer(self._write_to)

    # --- writing ---

    def _write(self, line: bytes) -> None:
        if self._closed:
            return
        if not self._unsent:
            self._loop.call_soon(self._write_out)
        self._unsent += line

    def _write_out(self) -> None:
        self._flush()
        if self._unsent and not self._closed:
            self._loop.add_writer(self._write_to, self._writable)

    def _writable(self) -> None:
        self._flush()
        if not self._unsent:
            self._loop.remove_writer(self._write_to)

    def _flush(self) -> None:
        try:
            while self._unsent:
                del self._unsent[: os.write(self._write_to, self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()  # the reader will report that the other side is gone

    # --- reading ---

    def _readable(self) -> None:
        self._take_bytes()
        self._arrived()

    def _take_bytes(self) -> None:
        try:
            piece = os.read(self._read_from, _READ_SIZE)
        except BlockingIOError:
            return
        except OSError:
            # A reset connection is an end like any other.
            piece = b""
        self.over = not piece
        *ends, rest = piece.split(b"\n")
        for end in ends:
            self.waiting.append(b"".join((*self._partial, end)))
            self._partial.clear()
            self._partial_size = 0
        self._partial.append(rest)
        self._partial_size += len(rest)
        self.too_long = self._partial_size > MAX_LINE_BYTES
