"""
How long a run may take: a deadline that does not count the building of agents, and a watchdog for agents that block.

Importing a framework or starting a process can take longer than any turn, and says nothing about the agent.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class AgentBlocks(BaseException):
    """
    The agent held the event loop for longer than the run may take.

    Raised by the watchdog wherever the agent is then, so it is none of the exceptions that agents catch.
    """


class Deadline:
    """The time that one run has; *seconds* counts from `running`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._timeout: asyncio.Timeout | None = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """
        Limits what is inside.

        Errors:
            TimeoutError: It took too long.
            AgentBlocks: It held the event loop for too long.
        """
        from asyncio import timeout

        with watchdog(self.seconds * 2 + 1):
            async with timeout(self.seconds) as self._timeout:
                yield

    @contextlib.asynccontextmanager
    async def not_counted(self) -> AsyncIterator[None]:
        """Moves the deadline by the time that is spent inside."""
        from asyncio import get_running_loop

        clock = get_running_loop().time
        began = clock()
        try:
            yield
        finally:
            when = self._timeout.when() if self._timeout is not None else None
            if self._timeout is not None and when is not None and not self._timeout.expired():
                self._timeout.reschedule(when + clock() - began)


@contextlib.contextmanager
def watchdog(seconds: float) -> Iterator[None]:
    """
    Raises `AgentBlocks` inside after so many seconds of real time, in whatever holds the event loop then.

    A loop that waits is not held: processes may take long to start. It needs the alarm signal: outside the main
    thread, and where somebody else has set the alarm, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def bark(number: int, frame: FrameType | None) -> None:
        if _is_loop_idle():
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:
            raise AgentBlocks(f"the agent held the event loop for {seconds:g} s")

    before = signal.signal(signal.SIGALRM, bark)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_loop_idle() -> bool:
    """Says whether an event loop runs and no task of it does."""
    from asyncio import current_task

    try:
        return current_task() is None
    except RuntimeError:
        return False
