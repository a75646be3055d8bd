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


BUILD_SECONDS = 300.0
"""Seconds that building agents may take, so that a framework that hangs while it is imported ends, too."""


class Deadline:
    """Time limit of one run; *seconds* counts from `running`, on a `LoadClock`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._timeout: asyncio.Timeout | None = None
        self._timer: LoadTimer | None = None
        self._watchdog: Watchdog | None = None
        self._builds = 0

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
        from asyncio import get_running_loop, timeout

        # The watchdog comes later than the timeout, which is the better end: it leaves the event loop usable.
        with watchdog(self.seconds * 2 + 1) as self._watchdog:
            async with timeout(None) as self._timeout:
                self._timer = LoadTimer(get_running_loop(), self.seconds, self._expire, self._watchdog.restart)
                try:
                    yield
                finally:
                    self._timer.cancel()

    @contextlib.asynccontextmanager
    async def not_counted(self) -> AsyncIterator[None]:
        """Leave out the time that is spent inside; it has a limit of its own."""
        if self._timer is None or self._watchdog is None:
            yield
            return
        # Two sessions may build their agents at the same time.
        self._builds += 1
        self._timer.pause(BUILD_SECONDS)
        self._watchdog.seconds = max(BUILD_SECONDS, self._watchdog.seconds)
        self._watchdog.restart()
        try:
            yield
        finally:
            self._builds -= 1
            if not self._builds:
                self._timer.resume()
                self._watchdog.seconds = self.seconds * 2 + 1
                self._watchdog.restart()

    def _expire(self) -> None:
        from asyncio import get_running_loop

        if self._timeout is not None:
            self._timeout.reschedule(get_running_loop().time())


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


class Watchdog:
    """Limit of the time for which the event loop may be held; *seconds* counts from the latest `restart`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._clock = LoadClock()
        self._counted = 0.0

    def restart(self) -> None:
        """Count from now: the event loop is alive."""
        self._clock.skip()
        self._counted = 0.0

    def seconds_left(self) -> float:
        """Return the seconds that are left; 0 or less if it was held for too long."""
        return self.seconds - self._clock.read()


@contextlib.contextmanager
def watchdog(seconds: float) -> Iterator[Watchdog]:
    """Raise `AgentBlocks` in the code that blocks the event loop after that many seconds.

    An idle loop is not blocked: processes may take long to start. It needs the alarm signal: outside the main thread,
    and if the alarm is already set, it does nothing.
    """
    watch = Watchdog(seconds)
    if threading.current_thread() is not threading.main_thread() or signal.getitimer(signal.ITIMER_REAL)[0]:
        yield watch
        return

    def on_alarm(number: int, frame: FrameType | None) -> None:
        if _is_loop_idle():
            watch.restart()
        left = watch.seconds_left()
        if left <= 0:
            raise AgentBlocks(f"the agent held the event loop for {watch.seconds:g} s")
        signal.setitimer(signal.ITIMER_REAL, max(left, 0.001))

    before = signal.signal(signal.SIGALRM, on_alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield watch
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
