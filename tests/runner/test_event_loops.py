"""Waiting for asynchronous work where a test is not asynchronous."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import Any

import pytest

from pytest_approvals.errors import UsageError
from pytest_approvals.runner.event_loops import ReusedLoop, require_asyncio, run_coroutine

NAME = ContextVar("NAME", default="nobody")


async def who() -> tuple[str, bool]:
    """Return what the context holds, and whether this is the main thread."""
    await asyncio.sleep(0)
    return NAME.get(), threading.current_thread() is threading.main_thread()


def test_without_a_loop_it_runs_in_this_thread() -> None:
    """What a test has opened in this thread can be used."""
    assert ("nobody", True) == run_coroutine(who())


def test_it_leaves_the_loop_of_this_thread_alone() -> None:
    """A loop that somebody has set is still set afterwards."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        run_coroutine(who())
        assert asyncio.get_event_loop_policy().get_event_loop() is loop
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_inside_a_loop_it_runs_in_another_thread() -> None:
    """With the context of the caller."""

    async def inside() -> tuple[str, bool]:
        NAME.set("Ann")
        return run_coroutine(who())

    assert ("Ann", False) == asyncio.run(inside())


def test_errors_come_out_of_the_other_thread() -> None:
    """As they are."""

    async def fails() -> None:
        raise ValueError("as it is")

    async def inside() -> None:
        run_coroutine(fails())

    with pytest.raises(ValueError, match="as it is"):
        asyncio.run(inside())


def test_an_interrupt_ends_the_work_in_the_other_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits is interrupted, and the work is cancelled before that is passed on."""
    ended = threading.Event()
    began = threading.Event()

    async def endless() -> None:
        began.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    join = threading.Thread.join

    def interrupted(thread: threading.Thread, timeout: float | None = None) -> None:
        if thread.name == "approvals" and not ended.is_set() and not monkeypatched:
            monkeypatched.append(True)
            began.wait()
            raise KeyboardInterrupt
        join(thread, timeout)

    monkeypatched: list[bool] = []
    monkeypatch.setattr(threading.Thread, "join", interrupted)

    async def inside() -> None:
        run_coroutine(endless())

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(inside())
    assert ended.is_set()


def test_another_library_than_asyncio_is_refused() -> None:
    """With what to do about it."""
    with pytest.raises(UsageError) as error:
        require_asyncio()

    assert "arun needs a running asyncio event loop; under anyio let the fixture anyio_backend return 'asyncio'" == str(
        error.value
    )


async def get_loop() -> asyncio.AbstractEventLoop:
    """Return the loop that runs this, after a look at another thread."""
    await asyncio.to_thread(time.monotonic)
    return asyncio.get_running_loop()


def test_a_loop_is_reused_if_nothing_is_left_on_it() -> None:
    """Nor does the context of one coroutine reach the next."""

    async def rename() -> asyncio.AbstractEventLoop:
        NAME.set("Ann")
        asyncio.get_running_loop().call_later(60, print).cancel()
        return await get_loop()

    reused = ReusedLoop()
    first = reused.run(rename())

    assert first is reused.run(get_loop())
    assert ("nobody", True) == reused.run(who())
    reused.close()
    assert first.is_closed()


def leave_work_in_a_thread(loop: Any, kept: list[Any]) -> None:
    """It goes on until the loop is closed."""
    release, executor = threading.Event(), loop._default_executor
    shut_down = executor.shutdown

    def release_and_shut_down(**words: Any) -> None:
        release.set()
        shut_down(**words)

    executor.shutdown = release_and_shut_down
    loop.run_in_executor(None, release.wait)


def leave_reader(loop: Any, kept: list[Any]) -> None:
    """A connection is waited for."""
    kept.extend(socket.socketpair())
    loop.add_reader(kept[0], print)


LEFT: dict[str, Callable[[Any, list[Any]], object]] = {
    "task": lambda loop, kept: loop.create_task(asyncio.Event().wait()),
    "timer": lambda loop, kept: loop.call_later(60, print),
    "callback": lambda loop, kept: loop.call_soon(loop.call_soon, int),
    "thread": leave_work_in_a_thread,
    "executor": lambda loop, kept: loop.set_default_executor(ThreadPoolExecutor()),
    "reader": leave_reader,
    "signal handler": lambda loop, kept: loop.add_signal_handler(signal.SIGUSR1, print),
    "task factory": lambda loop, kept: loop.set_task_factory(lambda loop, work: asyncio.Task(work, loop=loop)),
    "exception handler": lambda loop, kept: loop.set_exception_handler(lambda loop, context: None),
}
"""What a coroutine can leave on its loop."""


@pytest.mark.parametrize("leave", LEFT.values(), ids=list(LEFT))
def test_a_loop_on_which_something_is_left_is_replaced(leave: Callable[[Any, list[Any]], object]) -> None:
    """It is closed, and the next coroutine runs on another one."""
    kept: list[Any] = []

    async def run() -> asyncio.AbstractEventLoop:
        loop = asyncio.get_running_loop()
        leave(loop, kept)
        return loop

    reused = ReusedLoop()
    try:
        first = reused.run(run())
        assert first.is_closed()
        assert reused.run(get_loop()) is not first
    finally:
        reused.close()
        for left in kept:
            left.close()


def test_a_loop_with_an_open_generator_is_replaced() -> None:
    """Its generator is closed with it."""
    ended: list[str] = []

    async def generate() -> AsyncIterator[int]:
        try:
            yield 1
        finally:
            ended.append("closed")

    async def run() -> tuple[asyncio.AbstractEventLoop, AsyncIterator[int]]:
        generator = generate()
        await anext(generator)
        return asyncio.get_running_loop(), generator

    first, generator = ReusedLoop().run(run())

    assert ["closed"] == ended
    assert first.is_closed()
    del generator


def test_a_loop_on_which_a_coroutine_failed_is_replaced() -> None:
    """With the error as it is."""
    loops: list[asyncio.AbstractEventLoop] = []

    async def fail() -> None:
        loops.append(asyncio.get_running_loop())
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        ReusedLoop().run(fail())
    assert loops[0].is_closed()
