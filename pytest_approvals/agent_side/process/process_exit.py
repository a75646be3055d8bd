"""End of an agent process whose harness is gone, and its log on standard error."""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

EXIT_TIMEOUT = 3.0
"""The seconds that a process may go on after the harness is gone."""


def log_to_stderr(text: str) -> None:
    """Write to standard error what no answer can carry."""
    sys.stderr.write(f"{text}\n")


@contextmanager
def exit_with_parent(connection: int) -> Iterator[None]:
    """End this process when the other end of *connection* is closed, even if the main thread hangs.

    A thread waits for that and for nothing else; it ends with the block.
    """
    stop_reading, stop = os.pipe()
    watching = threading.Thread(target=_watch_connection, args=(connection, stop_reading), daemon=True)
    watching.start()
    try:
        yield
    finally:
        os.close(stop)
        watching.join()
        os.close(stop_reading)


def _watch_connection(connection: int, stop: int) -> None:
    waiting = select.poll()
    waiting.register(connection, 0)  # nothing asked for: what is reported is that the other end was closed
    waiting.register(stop, 0)
    if stop in dict(waiting.poll()):
        return
    waiting.unregister(connection)
    if not waiting.poll(EXIT_TIMEOUT * 1000):
        os._exit(1)
