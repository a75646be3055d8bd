"""What an agent process begins with: its descriptors, and what ends it when the harness is gone."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

LEAKS = "PYTEST_APPROVALS_LEAKS"
"""The environment variable that tells a process to watch itself; see `leaks.py`."""

PATIENCE = 3.0
"""How many seconds a process may go on after the harness is gone."""


def begin(options: dict[str, Any]) -> None:
    """Takes the descriptors away from whatever else wants to print, then serves or keeps warm."""
    if LEAKS in os.environ:
        from .leaks import watch_as_told

        watch_as_told()
    if "control" in options:
        from .warm import keep_warm

        _point_output_at_stderr()
        with socket.socket(fileno=options["control"]) as control:
            keep_warm(control, options["agent"])
        return
    read, write = os.dup(0), os.dup(1)
    _point_output_at_stderr()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    from .serve import serve

    with gone_with_the_harness(read):
        serve(read, write, "started")


def complain(text: str) -> None:
    """Tells on standard error what no answer can tell."""
    sys.stderr.write(f"{text}\n")


def _point_output_at_stderr() -> None:
    os.dup2(2, 1)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)


@contextmanager
def gone_with_the_harness(connection: int) -> Iterator[None]:
    """
    Ends this process when the other end of *connection* is closed, even where the main thread hangs.

    It is a thread that waits for nothing else; it is over when the block is.
    """
    stop_reading, stop = os.pipe()
    watching = threading.Thread(target=_watch, args=(connection, stop_reading), daemon=True)
    watching.start()
    try:
        yield
    finally:
        os.close(stop)
        watching.join()
        os.close(stop_reading)


def _watch(connection: int, stop: int) -> None:
    waiting = select.poll()
    waiting.register(connection, 0)  # nothing asked for: what is reported is that the other end was closed
    waiting.register(stop, 0)
    if stop in dict(waiting.poll()):
        return
    waiting.unregister(connection)
    if not waiting.poll(PATIENCE * 1000):
        os._exit(1)
