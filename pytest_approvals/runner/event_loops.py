"""Waiting for asynchronous work where a test is not asynchronous."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from contextvars import copy_context
from functools import cache
from typing import Any, TypeVar

from pytest_approvals.errors import UsageError

T = TypeVar("T")


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """
    Waits for *work* in an event loop of its own, and leaves alone whichever loop is set or running here.

    It runs in this thread; only where an event loop is running here already, it runs in another thread, while this
    loop stands still.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run_in_new_loop(work)
    return _run_in_thread(work)


class SessionLoop:
    """An event loop that outlives what is waited for on it, and so do the agent processes that were started there."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._thread = threading.get_ident()
        atexit.register(self.close)

    def wait_for(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for *work* on this loop; on one of its own where this loop cannot run."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._runner.run(work) if self._thread == threading.get_ident() else run_coroutine(work)
        return run_coroutine(work)

    def close(self) -> None:
        """Closes the loop, for good."""
        atexit.unregister(self.close)
        self._runner.close()


@cache
def get_session_loop() -> SessionLoop:
    """Gives the loop that all runs on agents in environments share."""
    return SessionLoop()


def require_asyncio() -> None:
    """
    Sees that asyncio runs this code.

    Errors:
        UsageError: Another library does, trio say.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        what = "arun needs a running asyncio event loop; under anyio let the fixture anyio_backend return 'asyncio'"
        raise UsageError(what) from None


def _run_in_new_loop(work: Coroutine[Any, Any, T]) -> T:
    # With a factory, the runner does not touch the event loop that is set for this thread.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)


class _WorkerThread(threading.Thread):
    """Runs something in another thread and keeps what came of it."""

    def __init__(self, work: Callable[[], Any]) -> None:
        super().__init__(name="approvals", daemon=True)
        self.work = work
        self.result: Any = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result = self.work()
        except BaseException as error:
            self.error = error


def _run_in_thread(work: Coroutine[Any, Any, T]) -> T:
    started: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any]]] = []

    async def noted() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        return await work

    context = copy_context()
    thread = _WorkerThread(lambda: context.run(_run_in_new_loop, noted()))
    thread.start()
    try:
        thread.join()
    except BaseException:
        for loop, task in started:
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if thread.error is not None:
        raise thread.error
    result: T = thread.result
    return result
