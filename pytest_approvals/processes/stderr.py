"""Standard error of agent processes: drained, so that it never blocks; its end is kept.

A forked process is reaped by the fork server, which appends a zero byte and how the process ended.
"""

from __future__ import annotations

import asyncio
import os
import threading

TAIL_SIZE = 16_384
"""Number of bytes that are kept."""

_READ_SIZE = 65_536


class StderrTail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self._kept = bytearray()

    def add(self, data: bytes) -> None:
        """Add the next bytes."""
        self._kept += data
        # Cut at twice the size only, so that the tail is not moved at every read.
        if len(self._kept) > 2 * TAIL_SIZE:
            del self._kept[:-TAIL_SIZE]

    @property
    def text(self) -> str:
        """The text that was printed last."""
        return self._printed.decode(errors="replace")

    @property
    def status(self) -> str | None:
        """How the process ended, if the fork server has written it; None otherwise."""
        _, zero, after = bytes(self._kept).rpartition(b"\0")
        return after.decode(errors="replace") if zero else None

    @property
    def _printed(self) -> bytes:
        kept = bytes(self._kept[-TAIL_SIZE:])
        return kept.rpartition(b"\0")[0] if b"\0" in kept else kept


class LoopStderrTail(StderrTail):
    """Tail that drains a descriptor on the running event loop, and closes it at its end."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._over = self._loop.create_future()
        os.set_blocking(descriptor, False)
        self._loop.add_reader(descriptor, self._readable)

    @property
    def is_on_running_loop(self) -> bool:
        """Whether its event loop is the running one."""
        return asyncio.get_running_loop() is self._loop

    @property
    def is_loop_closed(self) -> bool:
        """Whether its event loop is closed."""
        return self._loop.is_closed()

    @property
    def is_over(self) -> bool:
        """Whether the end of the stream was reached."""
        return self._over.done()

    async def wait_until_over(self, seconds: float) -> bool:
        """Wait for the end of the stream; return whether it came within *seconds*."""
        # Not `wait_for`, which cancels the future at its timeout.
        await asyncio.wait([self._over], timeout=seconds)
        return self._over.done()

    def close(self) -> None:
        """Stop draining."""
        if self._descriptor >= 0:
            self._loop.remove_reader(self._descriptor)
            os.close(self._descriptor)
            self._descriptor = -1

    def _readable(self) -> None:
        try:
            data = os.read(self._descriptor, _READ_SIZE)
        except BlockingIOError:
            return
        self.add(data)
        if not data:
            self.close()
            self._over.set_result(None)


class ThreadStderrTail(StderrTail):
    """Tail that drains a descriptor in a thread, for a process that outlives event loops."""

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        self._thread = threading.Thread(target=self._drain, name="stderr of a fork server", daemon=True)
        self._thread.start()

    def wait_until_over(self, seconds: float) -> bool:
        """Wait for the end of the stream; return whether it came within *seconds*."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _drain(self) -> None:
        with os.fdopen(self._descriptor, "rb", buffering=0) as stream:
            while data := stream.read(_READ_SIZE):
                self.add(data)
