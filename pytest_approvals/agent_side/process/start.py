"""Start of an agent process: it serves at once, or becomes a fork server."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

from .agent_server import serve
from .fork_server import run_fork_server
from .network_guard import GUARD_VARIABLE, guard_from_environment
from .process_exit import exit_with_parent


def start(options: dict[str, Any]) -> None:
    """Reserve the descriptors for the protocol, then serve or become a fork server.

    Args:
        options: With `control` (a descriptor) and `agent`, the process becomes a fork server of that agent.
    """
    if GUARD_VARIABLE in os.environ:
        guard_from_environment()
    if "control" in options:
        _redirect_stdout_to_stderr()
        with socket.socket(fileno=options["control"]) as control:
            run_fork_server(control, options["agent"])
        return
    # The protocol takes standard input and output for itself: what a framework prints goes to standard error.
    read, write = os.dup(0), os.dup(1)
    _redirect_stdout_to_stderr()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    with exit_with_parent(read):
        serve(read, write, "started")


def _redirect_stdout_to_stderr() -> None:
    os.dup2(2, 1)
    # A framework may have replaced `sys.stdout` by an object that cannot be reconfigured.
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(line_buffering=True)
