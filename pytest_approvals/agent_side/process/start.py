"""To be described."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from .network_guard import GUARD_VARIABLE, guard_from_environment
from .process_exit import exit_with_parent


def start(options: dict[str, Any]) -> None:
    """Takes the descriptors away from whatever else wants to print, then serves or keeps warm."""
    if GUARD_VARIABLE in os.environ:
        guard_from_environment()
    if "control" in options:
        from .fork_server import run_fork_server

        _redirect_stdout_to_stderr()
        with socket.socket(fileno=options["control"]) as control:
            run_fork_server(control, options["agent"])
        return
    read, write = os.dup(0), os.dup(1)
    _redirect_stdout_to_stderr()
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    from .agent_server import serve

    with exit_with_parent(read):
        serve(read, write, "started")


def _redirect_stdout_to_stderr() -> None:
    os.dup2(2, 1)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
