"""Time limits of a run: a deadline, and a watchdog for agents that block.

Building agents is not counted: importing a framework or starting a process can take longer than any turn, and says
nothing about the agent.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


# Raised wherever the agent is then, and not an Exception, because agents catch those. Its name is written into journals
# as the error of the run.
class AgentBlocks(BaseException):
    """The agent blocked the event loop past the run's time limit."""


class Deadline:
    """Time limit of one run; *seconds* counts from `running`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._timeout: asyncio.Timeout | None = None

    @property
    def has_expired(self) -> bool:
        """Whether what was running was stopped."""
        return self._timeout is not None and self._timeout.expired()

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Limit the time of what is inside.

        Raises:
            TimeoutError: It took too long.
            AgentBlocks: It blocked the event loop for too long.
        """
        from asyncio import timeout

        # The watchdog comes later than the timeout, which is the better end: it leaves the event loop usable.
        with watchdog(self.seconds * 2 + 1):
            async with timeout(self.seconds) as self._timeout:
                yield

    @contextlib.asynccontextmanager
    async def not_counted(self) -> AsyncIterator[None]:
        """Move the deadline by the time that is spent inside."""
        from asyncio import get_running_loop

        clock = get_running_loop().time
        began = clock()
        try:
            yield
        finally:
            when = self._timeout.when() if self._timeout is not None else None
            if self._timeout is not None and when is not None and not self._timeout.expired():
                self._timeout.reschedule(when + clock() - began)


MIN_STEP_SECONDS = 0.5
"""The time that a step has if those before it have used up all of a shared deadline."""


class SharedDeadline:
    """Time limit that several steps share, one after the other.

    Args:
        seconds: The time that all of them may take, from now.

    Attributes:
        seconds: As given.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._began = time.monotonic()

    @contextlib.asynccontextmanager
    async def next_step(self) -> AsyncIterator[StepTime]:
        """Stop what is inside when its time is over, and let no exception say so."""
        step = StepTime()
        deadline = Deadline(max(self._began + self.seconds - time.monotonic(), MIN_STEP_SECONDS))
        try:
            async with deadline.running():
                yield step
        except AgentBlocks:
            step.is_over = True
        except TimeoutError:
            if not deadline.has_expired:
                raise
        finally:
            # What is stopped may raise something else.
            step.is_over = step.is_over or deadline.has_expired


@dataclass(slots=True)
class StepTime:
    """Time of one step of several; *is_over* says whether it was stopped."""

    is_over: bool = False


@contextlib.contextmanager
def watchdog(seconds: float) -> Iterator[None]:
    """Raise `AgentBlocks` in the code that blocks the event loop after that many seconds.

    An idle loop is not blocked: processes may take long to start. It needs the alarm signal: outside the main thread,
    and if the alarm is already set, it does nothing.
    """
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield
        return

    def on_alarm(number: int, frame: FrameType | None) -> None:
        if _is_loop_idle():
            signal.setitimer(signal.ITIMER_REAL, seconds)
        else:
            raise AgentBlocks(f"the agent held the event loop for {seconds:g} s")

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_loop_idle() -> bool:
    """Return whether an event loop runs and no task of it does."""
    from asyncio import current_task

    try:
        return current_task() is None
    except RuntimeError:
        return False
