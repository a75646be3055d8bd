"""Clock for time limits that leaves out the time in which the machine was busy with something else.

On a loaded machine everything takes longer, and a limit in seconds of the wall clock would say so of the agent. Linux
counts for each thread how long it ran, and how long it was ready to run and had no processor (`schedstat`). A
`LoadClock` leaves the latter out, for this process and its descendants. What they do and what they wait for counts in
full, so a process that hangs reaches its limit as soon as on an idle machine. On other systems it is the wall clock.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import asyncio

SAMPLE_INTERVAL = 1.0
"""Seconds between two looks at the threads: often enough for processes that do not live long."""

_SAMPLE_AGE = 0.1
"""Seconds for which all clocks of a process share one look, which reads files of all its descendants."""

MIN_RATE = 0.05
"""The slowest that a clock goes, so that every limit ends."""


class ThreadTimes(NamedTuple):
    """Seconds for which threads have run, and for which they were ready to run and had no processor."""

    ran: float
    waited: float

    def __sub__(self, other: ThreadTimes) -> ThreadTimes:
        return ThreadTimes(self.ran - other.ran, self.waited - other.waited)


class LoadClock:
    """Clock that counts from its creation.

    Its first look at the threads comes with a `read`; until then the wall clock counts, since most of what has a limit
    is over before a look would pay.

    Args:
        from_start: Leave out what the calling thread waits until then. The clock must be read in the same thread.
        read_times: Returns the times of all threads of this process and its descendants, since any moment.
        read_wall: The wall clock.
    """

    def __init__(
        self,
        *,
        from_start: bool = False,
        read_times: Callable[[], ThreadTimes] | None = None,
        read_wall: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_times = read_times or _METER.read
        self._read_wall = read_wall
        self._counted = 0.0
        self._wall = read_wall()
        self._times: ThreadTimes | None = None
        self._own_times = read_own_times() if from_start else None

    def read(self) -> float:
        """Return the seconds that count."""
        wall = self._read_wall()
        passed = wall - self._wall
        if passed < _SAMPLE_AGE:
            return self._counted + passed
        times, since = self._read_times(), ThreadTimes(0.0, 0.0)
        if self._times is not None:
            since = times - self._times
        elif self._own_times is not None:
            since = read_own_times() - self._own_times
        # Threads that wait at the same time are added up, but so is what they do, which is as much under any load.
        self._counted += max(passed - since.waited, min(since.ran, passed), passed * MIN_RATE)
        self._wall, self._times = wall, times
        return self._counted


class LoadTimer:
    """Call a function on an event loop once *seconds* have passed on a `LoadClock`.

    Args:
        loop: The event loop.
        seconds: The limit.
        callback: What is called, once.
        on_tick: Called whenever the timer looks at the clock, as a sign that the event loop is alive.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        seconds: float,
        callback: Callable[[], object],
        on_tick: Callable[[], object] | None = None,
    ) -> None:
        self._loop = loop
        self._seconds = seconds
        self._interval = get_interval(seconds)
        self._callback = callback
        self._on_tick = on_tick
        self._clock = LoadClock()
        self._schedule(seconds)

    def cancel(self) -> None:
        """Stop the timer."""
        self._handle.cancel()

    def read(self) -> float:
        """Return the seconds that have counted."""
        return self._clock.read()

    def move_limit(self, seconds: float) -> None:
        """Call the function once *seconds* have counted, from the start of the timer, instead."""
        self._seconds = seconds
        left = seconds - self._clock.read()
        # Otherwise the next look at the clock comes in time.
        if left < self._interval:
            self._handle.cancel()
            self._schedule(left)

    def _schedule(self, left: float) -> None:
        self._handle = self._loop.call_later(min(left, self._interval), self._tick)

    def _tick(self) -> None:
        if self._on_tick is not None:
            self._on_tick()
        left = self._seconds - self._clock.read()
        if left > 0:
            self._schedule(left)
        else:
            self._callback()


def get_interval(seconds: float) -> float:
    """Return the time between two looks at the clock for a limit."""
    return max(min(SAMPLE_INTERVAL, seconds / 4), 0.001)


async def wait_until_done(future: asyncio.Future[Any], seconds: float) -> bool:
    """Wait for *future* without cancelling it; return whether it was done within *seconds* of a `LoadClock`."""
    # Importing asyncio takes longer than the model server's first answer may, and its clock is this one.
    import asyncio

    loop = asyncio.get_running_loop()
    late: asyncio.Future[None] = loop.create_future()
    timer = LoadTimer(loop, seconds, late.cancel)
    try:
        await asyncio.wait([future, late], return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()
        late.cancel()
    return future.done()


def join_thread(thread: threading.Thread, seconds: float) -> bool:
    """Wait for the end of a thread; return whether it came within *seconds* of a `LoadClock`."""
    clock = LoadClock()
    left = seconds
    while thread.is_alive() and left > 0:
        thread.join(min(left, get_interval(seconds)))
        left = seconds - clock.read()
    return not thread.is_alive()


# --- what the kernel counts -------------------------------------------------------------------------------------------


class _ThreadMeter:
    """Sum of the times of the threads of this process and its descendants.

    It grows with each look, also by what threads that have ended since had counted until the look before.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._threads: dict[int, ThreadTimes] = {}
        self._earlier: dict[int, ThreadTimes] = {}
        self._total = ThreadTimes(0.0, 0.0)
        self._pid = os.getpid()
        self._latest = float("-inf")

    def read(self) -> ThreadTimes:
        """Return the sum; always 0 where the kernel does not count."""
        # A signal handler may read while the thread that it interrupts does.
        if self._lock.acquire(blocking=False):
            try:
                self._take_sample()
            finally:
                self._lock.release()
        return self._total

    def _take_sample(self) -> None:
        if self._pid == os.getpid() and time.monotonic() < self._latest + _SAMPLE_AGE:
            return
        self._latest = time.monotonic()
        if self._pid != os.getpid():
            # A fork has threads and descendants of its own.
            self._pid, self._threads, self._earlier = os.getpid(), {}, {}
        before, self._threads = self._threads, dict(_read_family(self._pid))
        # The first look does not say when what it finds happened.
        if before:
            none = ThreadTimes(0.0, 0.0)
            # The kernel may leave out a process whose sibling ends just then, so one look may have missed it.
            known, self._earlier = self._earlier | before, before
            since = [times - known.get(thread, none) for thread, times in self._threads.items()]
            ran, waited = self._total
            self._total = ThreadTimes(
                ran + sum(max(times.ran, 0.0) for times in since),
                waited + sum(max(times.waited, 0.0) for times in since),
            )


class _OwnCounts:
    """The kernel's counts of one thread, opened once: opening the file takes ten times as long as reading it."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._descriptor = os.open("/proc/thread-self/schedstat", os.O_RDONLY | os.O_CLOEXEC)

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):
            os.close(self._descriptor)

    def read(self) -> ThreadTimes:
        """Return the times of the thread."""
        return _parse_schedstat(os.pread(self._descriptor, 128, 0))


_THREAD = threading.local()


def read_own_times() -> ThreadTimes:
    """Return the times of this thread; always 0 where the kernel does not count."""
    with suppress(OSError, ValueError):
        counts: _OwnCounts | None = getattr(_THREAD, "counts", None)
        # What a fork inherits are the counts of its parent.
        if counts is None or counts.pid != os.getpid():
            counts = _THREAD.counts = _OwnCounts()
        return counts.read()
    return ThreadTimes(0.0, 0.0)


def _read_family(root: int) -> Iterator[tuple[int, ThreadTimes]]:
    """Yield the threads of a process and of its descendants, with their times."""
    for pid in _list_family(root):
        # Processes and threads end while they are looked at.
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with suppress(OSError, ValueError):
                    yield int(thread), _read_schedstat(f"{pid}/task/{thread}")


def _read_schedstat(thread: str) -> ThreadTimes:
    with open(f"/proc/{thread}/schedstat", "rb") as file:
        return _parse_schedstat(file.read())


def _parse_schedstat(text: bytes) -> ThreadTimes:
    ran, waited, _ = map(int, text.split())
    return ThreadTimes(ran / 1e9, waited / 1e9)


def _list_family(root: int) -> set[int]:
    """Return a process and its descendants; empty where there is no `/proc`."""
    family: set[int] = set()
    below = [root]
    while below:
        pid = below.pop()
        # Processes end while they are looked at.
        with suppress(OSError):
            for thread in os.listdir(f"/proc/{pid}/task"):
                try:
                    children = _read_children(f"{pid}/task/{thread}")
                except FileNotFoundError:
                    if os.path.exists(f"/proc/{pid}/task/{thread}"):
                        return _search_family(root)
                    continue
                below += [child for child in children if child not in family]
            family.add(pid)
    return family


def _read_children(thread: str) -> list[int]:
    """Return the processes that a thread has started and that still run."""
    with open(f"/proc/{thread}/children", "rb") as file:
        return [*map(int, file.read().split())]


def _search_family(root: int) -> set[int]:
    """Return a process and its descendants by looking at all processes, for kernels that do not list children."""
    parents: dict[int, int] = {}
    with suppress(OSError):
        for name in filter(str.isdigit, os.listdir("/proc")):
            with suppress(OSError, ValueError, IndexError), open(f"/proc/{name}/stat", "rb") as file:
                # The name of the program, in parentheses, may contain anything.
                parents[int(name)] = int(file.read().rpartition(b")")[2].split()[1])
    family = {root} & parents.keys()
    grown = True
    while grown:
        children = {pid for pid, parent in parents.items() if parent in family} - family
        family |= children
        grown = bool(children)
    return family


_METER = _ThreadMeter()
