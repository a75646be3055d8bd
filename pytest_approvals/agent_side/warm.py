"""
A warm process: it has imported an agent's framework and driven one flow, and forks agent processes on command.

A command is one byte on the control socket with two descriptors: the protocol's and standard error's of the process to
be. Nothing is answered; the process that was forked answers on its own connection. A warm process has no event loop and
no threads when it forks. It ends with the harness, and so do those that it has forked, at the latest by its hand.
"""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import socket
import threading
import time
import traceback
from contextlib import suppress
from itertools import chain
from typing import NoReturn

from .codecs import codec_of
from .crossing import Failure
from .facts import agent_class, facts_of
from .messages import CALLBACKS, COMMANDS, NOTICES
from .practice import practise
from .process import PATIENCE, complain, gone_with_the_harness
from .serve import serve

FORK = b"F"
"""The command to fork a process."""

CANNOT_FORK = 75
"""The exit code of a process that cannot be forked, because something in it has started threads."""

PRACTICE_LIMIT = 20.0
THREADS_LIMIT = 1.0
"""How many seconds threads may take to end after the flow."""


def keep_warm(control: socket.socket, agent: str) -> None:
    """Gets warm with that agent, then forks on command until the harness is gone."""
    with gone_with_the_harness(control.fileno()):
        _practise(agent)
    threads = _lasting_threads()
    if threads:
        complain(f"a process with threads cannot be forked: {', '.join(threads)}")
        raise SystemExit(CANNOT_FORK)
    gc.collect()
    gc.freeze()
    _Forking(control).run()
    os._exit(0)  # nothing here needs an orderly end


def _lasting_threads() -> list[str]:
    """Names the threads that are not about to end."""
    deadline = time.monotonic() + THREADS_LIMIT
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    for thread in others:
        thread.join(max(0.0, deadline - time.monotonic()))
    return sorted(thread.name for thread in others if thread.is_alive())


def _practise(agent: str) -> None:
    """Drives a flow, so that what a framework builds on first use is there; if that fails, it will fail again later."""
    for kind in (Failure, *chain.from_iterable([*COMMANDS.values(), *CALLBACKS.values()]), *NOTICES.values()):
        codec_of(kind)
    try:
        adapter = agent_class(agent)
        facts_of(adapter)
        asyncio.run(asyncio.wait_for(practise(adapter), PRACTICE_LIMIT))
    except Exception:
        traceback.print_exc()


class _Forking:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._children: dict[int, int] = {}
        self._child_ended, self._wake = os.pipe()
        for end in (self._child_ended, self._wake):
            os.set_blocking(end, False)

    def run(self) -> None:
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake)
        while True:
            ready, _, _ = select.select([self._control.fileno(), self._child_ended], [], [])
            if self._child_ended in ready:
                self._bury()
            if self._control.fileno() in ready:
                command, descriptors, _, _ = socket.recv_fds(self._control, 1, 2)
                if command != FORK:
                    break
                self._fork(*descriptors)
        self._end_all()

    def _fork(self, protocol: int, stderr: int) -> None:
        for received in (protocol, stderr):
            os.set_inheritable(received, False)
        pid = os.fork()
        if pid == 0:
            self._become_agent(protocol, stderr)
        os.close(protocol)
        self._children[pid] = stderr

    def _become_agent(self, protocol: int, stderr: int) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            os.dup2(stderr, 1)
            os.dup2(stderr, 2)
            for inherited in (stderr, self._child_ended, self._wake, *self._children.values()):
                os.close(inherited)
            self._control.close()
            serve(protocol, protocol, "forked")
        finally:
            os._exit(1)

    def _bury(self) -> None:
        """Reaps the processes that have ended, tells on their standard error how, and ends what they have left."""
        _drain(self._child_ended)
        for pid, stderr in list(self._children.items()):
            if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
                continue
            _kill_group(pid)
            _, status = os.waitpid(pid, 0)
            os.set_blocking(stderr, False)
            with suppress(OSError):  # nobody has to read it
                os.write(stderr, b"\0" + how_it_ended(os.waitstatus_to_exitcode(status)).encode())
            os.close(stderr)
            del self._children[pid]

    def _end_all(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._children and (left := deadline - time.monotonic()) > 0:
            select.select([self._child_ended], [], [], left)
            self._bury()
        for pid in self._children:
            _kill_group(pid)
            os.waitpid(pid, 0)


def how_it_ended(code: int) -> str:
    """
    Says how a process ended: its exit code, or the signal that ended it.

    >>> how_it_ended(3), how_it_ended(-9)
    ('exit code 3', 'signal SIGKILL')
    """
    return f"exit code {code}" if code >= 0 else f"signal {signal.Signals(-code).name}"


def _kill_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):  # it may not be the leader of a group yet
        os.killpg(pid, signal.SIGKILL)


def _drain(descriptor: int) -> None:
    with suppress(BlockingIOError):
        while os.read(descriptor, 4096):
            pass
