"""Waiting for asynchronous work where a test is not asynchronous."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar

import pytest

from pytest_approvals.errors import UsageError
from pytest_approvals.runner.event_loops import require_asyncio, run_coroutine

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
