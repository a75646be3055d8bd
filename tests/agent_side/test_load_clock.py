"""Time limits count what this process does and waits for, not what the machine does for others."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest

from pytest_approvals.agent_side.process import load_clock
from pytest_approvals.agent_side.process.load_clock import (
    MIN_RATE,
    LoadClock,
    LoadTimer,
    ThreadTimes,
    _ThreadMeter,
    join_thread,
    wait_until_done,
)


def make_clock(walls: list[float], *times: ThreadTimes) -> LoadClock:
    wall, looks = iter(walls), iter(times)
    return LoadClock(read_wall=lambda: next(wall), read_times=lambda: next(looks))


def test_time_without_a_processor_does_not_count() -> None:
    """Of ten seconds in which the process was ready to run for eight, two count."""
    clock = make_clock([0, 1, 11], ThreadTimes(0, 5), ThreadTimes(1, 13))

    assert [1, 3] == [clock.read(), clock.read()]


def test_time_of_waiting_for_something_else_counts() -> None:
    """A process that hangs uses no processor and wants none, so its clock is that of the wall."""
    clock = make_clock([0, 1, 31], ThreadTimes(0, 5), ThreadTimes(0, 5))

    assert [1, 31] == [clock.read(), clock.read()]


def test_what_is_done_counts() -> None:
    """Processes that wait at the same time wait for longer than there is time; they do no more than without load."""
    clock = make_clock([0, 1, 11], ThreadTimes(0, 0), ThreadTimes(4, 400))

    assert [1, 5] == [clock.read(), clock.read()]


def test_every_clock_goes_on() -> None:
    """A limit ends, however little is done."""
    clock = make_clock([0, 1, 11], ThreadTimes(0, 0), ThreadTimes(0, 400))

    assert [1, 1 + 10 * MIN_RATE] == [clock.read(), clock.read()]


def test_a_clock_follows_the_work_and_not_the_load(shared_processor: None) -> None:
    """Work of 0.2 s takes several times as long beside others; the clock counts little more than the work."""
    clock, began, used = LoadClock(from_start=True), time.monotonic(), time.thread_time()
    while time.thread_time() - used < 0.2:
        pass
    passed, counted = time.monotonic() - began, clock.read()

    assert counted < (0.2 + passed) / 2


def test_waits_of_descendants_are_seen(shared_processor: None) -> None:
    """What an agent's process has waited for is left out of the limit of the one that waits for it."""
    meter = _ThreadMeter()
    meter.read()
    child = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        while not meter.read().waited:
            time.sleep(0.02)
    finally:
        child.kill()
        child.wait()

    assert 0 < meter.read().waited


@pytest.fixture
def grandchild() -> Iterator[int]:
    """A process below this one's child, which a thread other than the main one has started."""
    started: list[subprocess.Popen[str]] = []
    script = (
        "import subprocess, sys; below = subprocess.Popen([sys.executable, '-c', 'input()']); "
        "print(below.pid, flush=True); below.wait()"
    )

    def start() -> None:
        # The end of the pipe ends both.
        command = [sys.executable, "-c", script]
        started.append(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))

    release = threading.Event()
    thread = threading.Thread(target=lambda: (start(), release.wait()))
    thread.start()
    while not started:
        thread.join(0.01)
    (child,) = started
    assert child.stdout is not None
    with child:
        yield int(child.stdout.readline())
        child.communicate("over\n")
    release.set()
    thread.join()


def test_descendants_of_all_threads_are_found(grandchild: int) -> None:
    """A process, its children and theirs are the family, whichever thread started them; others are not."""
    family = load_clock._list_family(os.getpid())

    assert {os.getpid(), grandchild} <= family
    assert os.getppid() not in family
    assert {os.getpid(), grandchild} <= load_clock._search_family(os.getpid())


def test_a_kernel_that_lists_no_children_is_searched(grandchild: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All processes of the machine are looked at then."""

    def read_nothing(thread: str) -> list[int]:
        raise FileNotFoundError(thread)

    monkeypatch.setattr(load_clock, "_read_children", read_nothing)

    assert {os.getpid(), grandchild} <= load_clock._list_family(os.getpid())


def test_a_process_that_is_gone_has_no_family() -> None:
    """No process has so high a number."""
    assert set() == load_clock._list_family(2**30)


def test_a_process_that_one_look_missed_counts_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has waited for before is not added a second time when it is found again."""
    looks = iter([{1: 1.0, 2: 5.0}, {1: 1.0}, {1: 1.0, 2: 6.0}])
    monkeypatch.setattr(
        load_clock,
        "_read_family",
        lambda root: [(thread, ThreadTimes(0.0, waited)) for thread, waited in next(looks).items()],
    )
    monkeypatch.setattr(load_clock, "_SAMPLE_AGE", 0.0)
    meter = _ThreadMeter()

    assert [0.0, 0.0, 1.0] == [meter.read().waited for _ in range(3)]


def test_a_timer_that_is_over_calls_once() -> None:
    """At its limit, not before, and no second time."""
    calls: list[float] = []

    async def run() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        LoadTimer(loop, 0.05, lambda: calls.append(loop.time() - began))
        await asyncio.wait([loop.create_future()], timeout=0.2)
        return calls[0]

    assert 0.05 <= asyncio.run(run()) + 0.001
    assert 1 == len(calls)


def test_the_limit_of_a_timer_can_be_moved() -> None:
    """Nearer, so that it is over sooner than its next look at the clock, and away, so that it is not over yet."""

    async def run() -> list[bool]:
        loop = asyncio.get_running_loop()
        nearer, away = loop.create_future(), loop.create_future()
        timers = [LoadTimer(loop, 60, lambda: nearer.set_result(None)), LoadTimer(loop, 0.01, away.cancel)]
        timers[0].move_limit(0.01)
        timers[1].move_limit(60)
        await nearer
        await asyncio.sleep(0.02)
        return [nearer.done(), away.done()]

    assert [True, False] == asyncio.run(asyncio.wait_for(run(), 30))


def test_a_future_is_waited_for_without_being_cancelled() -> None:
    """It says whether it was done in time, and the future lives on."""

    async def run() -> list[bool]:
        loop = asyncio.get_running_loop()
        never, soon = loop.create_future(), loop.create_future()
        loop.call_soon(soon.set_result, None)
        return [await wait_until_done(never, 0.01), never.cancelled(), await wait_until_done(soon, 60)]

    assert [False, False, True] == asyncio.run(run())


def test_a_thread_is_waited_for() -> None:
    """It says whether the thread ended in time."""
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    in_time = [join_thread(thread, 0.01)]
    over.set()

    assert [False, True] == [*in_time, join_thread(thread, 60)]
