"""Time limits of a run: a deadline, and a watchdog for agents that block.

Building agents is not counted: importing a framework or starting a process can take longer than any turn, and says
nothing about the agent. Nor is the time that the machine takes for other programs: a verdict must not depend on it.
"""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterator
from dataclasses import dataclass
from functools import partial
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from pytest_approvals.agent_side.process.load_clock import LoadClock, LoadTimer

if TYPE_CHECKING:
    import asyncio

T = TypeVar("T")


# Raised wherever the agent is then, and not an Exception, because agents catch those. Its name is written into journals
# as the error of the run.
class AgentBlocks(BaseException):
    """The agent blocked the event loop past the run's time limit."""


BUILD_SECONDS = 300.0
"""Seconds that building agents may take, so that a framework that hangs while it is imported ends, too."""


class Deadline:
    """Time limit of one run; *seconds* counts from `running`, on a `LoadClock`.

    Args:
        seconds: How long the run may take.
        on_expiry: Called when the time is over, before what is running is stopped.
    """

    def __init__(self, seconds: float, on_expiry: Callable[[], None] | None = None) -> None:
        self._on_expiry = on_expiry
        self.seconds = seconds
        self._watchdog_seconds = seconds * 2 + 1
        self._limit = self._left = seconds
        self._builds = 0
        self._timeout: asyncio.Timeout | None = None
        self._timer: LoadTimer | None = None
        self._watchdog: Watchdog | None = None
        self._is_stopping = False

    @property
    def is_stopping(self) -> bool:
        """Whether the time is over."""
        return self._is_stopping

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
        with watchdog(self._watchdog_seconds) as watch:
            async with timeout(None) as self._timeout:
                timer = LoadTimer(get_running_loop(), self.seconds, self._expire, watch.restart)
                self._timer, self._watchdog = timer, watch
                try:
                    yield
                finally:
                    timer.cancel()
                    self._timer = self._watchdog = None

    @contextlib.asynccontextmanager
    async def not_counted(self) -> AsyncIterator[None]:
        """Leave out the time that is spent inside; it has a limit of its own, `BUILD_SECONDS`."""
        # Two sessions may build their agents at the same time.
        self._builds += 1
        if self._builds == 1 and self._timer is not None and self._watchdog is not None:
            begin = self._timer.read()
            self._left = self._limit - begin
            self._timer.move_limit(begin + BUILD_SECONDS)
            self._watchdog.seconds = max(BUILD_SECONDS, self._watchdog_seconds)
        try:
            yield
        finally:
            self._builds -= 1
            if not self._builds and self._timer is not None and self._watchdog is not None:
                self._limit = self._timer.read() + self._left
                self._timer.move_limit(self._limit)
                self._watchdog.restart(self._watchdog_seconds)

    def _expire(self) -> None:
        from asyncio import get_running_loop

        self._is_stopping = True
        if self._on_expiry is not None:
            self._on_expiry()
        if self._timeout is not None:
            self._timeout.reschedule(get_running_loop().time())


STOP_SECONDS = 3.0
"""Seconds for which what was cancelled at the end of its time is waited for."""


async def run_stoppable(work: Awaitable[T], deadline: Deadline) -> T:
    """Await *work*, and give it up if it does not end after its cancellation at the end of *deadline*.

    The same task runs it, because frameworks leave in the task in which they have entered.

    Raises:
        asyncio.CancelledError: It was cancelled or given up.
    """
    return await _Stoppable(_await(work), deadline)


async def _await(work: Awaitable[T]) -> T:
    return await work


class _Stoppable(Generic[T]):
    """Coroutine between whose futures and its task this object stands, so that it can be woken without them."""

    def __init__(self, work: Coroutine[Any, Any, T], deadline: Deadline) -> None:
        self._work = work
        self._deadline = deadline
        self._timer: LoadTimer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._is_given_up = False

    def __await__(self) -> Generator[Any, None, T]:
        error: BaseException | None = None
        try:
            while True:
                try:
                    future = self._work.throw(error) if error is not None else self._work.send(None)
                except StopIteration as end:
                    result: T = end.value
                    return result
                error = yield from self._wait(future)
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _wait(self, future: Any) -> Generator[Any, None, BaseException | None]:
        """Wait for a future of the work as its task would, and return what is to be raised in the work."""
        from asyncio import CancelledError, get_running_loop, isfuture

        loop = get_running_loop()
        # A pause of one turn of the loop, or a mistake, which the task reports.
        if not isfuture(future) or future.get_loop() is not loop:
            try:
                yield future
            except BaseException as raised:
                self._begin_to_stop()
                error: BaseException | None = raised
            else:
                error = None
            if self._is_given_up:
                self._give_up()
            return error
        future._asyncio_future_blocking = False
        while not future.done():
            self._waiter = waiter = loop.create_future()
            future.add_done_callback(partial(_wake_up, waiter))
            try:
                yield from waiter
            except CancelledError as raised:
                if self._is_given_up:
                    self._give_up()
                self._begin_to_stop()
                if not future.cancel(*raised.args):
                    return raised
            finally:
                self._waiter = None
        return None

    def _begin_to_stop(self) -> None:
        from asyncio import get_running_loop

        if self._timer is None and self._deadline.is_stopping:
            self._timer = LoadTimer(get_running_loop(), STOP_SECONDS, self._wake)

    def _wake(self) -> None:
        self._is_given_up = True
        if self._waiter is not None:
            self._waiter.cancel()

    def _give_up(self) -> NoReturn:
        from asyncio import CancelledError

        # It may refuse this end, too.
        with contextlib.suppress(Exception):
            self._work.close()
        raise CancelledError


def _wake_up(waiter: asyncio.Future[None], _: object) -> None:
    if not waiter.done():
        waiter.set_result(None)


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
        self._clock = LoadClock(from_start=True)

    @property
    def has_time(self) -> bool:
        """Whether a step would not have to be given more time than is left."""
        return self.seconds - self._clock.read() >= MIN_STEP_SECONDS

    @contextlib.asynccontextmanager
    async def next_step(self) -> AsyncIterator[StepTime]:
        """Stop what is inside when its time is over, and let no exception say so."""
        deadline = Deadline(max(self.seconds - self._clock.read(), MIN_STEP_SECONDS))
        step = StepTime(deadline)
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
    """Time of one step of several, with a deadline of its own; *is_over* says whether it was stopped."""

    deadline: Deadline
    is_over: bool = False


class Watchdog:
    """Limit of the time for which the event loop may be held; *seconds* counts from the latest `restart`."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.restart()

    def restart(self, seconds: float | None = None) -> None:
        """Count from now, with another limit if one is given: the event loop is alive."""
        self.seconds = seconds or self.seconds
        self._clock = LoadClock(from_start=True)

    def seconds_left(self) -> float:
        """Return the seconds that are left; 0 or less if the event loop was held for too long."""
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
