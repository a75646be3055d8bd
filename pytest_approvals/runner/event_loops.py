"""Event loops for asynchronous work in tests and in threads of servers, which are not asynchronous."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextvars import copy_context
from functools import cache
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_approvals.agent_side.contract.exceptions import ModelDown
from pytest_approvals.errors import UsageError

if TYPE_CHECKING:
    from pytest_approvals.protocols.endpoint import HttpResponse

T = TypeVar("T")


def run_coroutine(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* to its end in an event loop of its own, without touching a loop that is set or running here.

    It runs in this thread. Only if an event loop is running here already, it runs in another thread, while this loop
    is blocked.
    """
    # Not in the handler of the error, which would be the context of what the work raises.
    return _run_in_thread(work) if _is_loop_running() else _run_in_new_loop(work)


def _is_loop_running() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class SessionLoop:
    """Event loop that outlives the coroutines that run on it, as do the agent processes that they start."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=asyncio.new_event_loop)
        self._thread = threading.get_ident()
        atexit.register(self.close)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* to its end on this loop, or on one of its own if this loop cannot run."""
        if _is_loop_running() or self._thread != threading.get_ident():
            return run_coroutine(work)
        return self._runner.run(work)

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop itself."""
        return self._runner.get_loop()

    def close(self) -> None:
        """Close the loop."""
        atexit.unregister(self.close)
        self._runner.close()


@cache
def get_session_loop() -> SessionLoop:
    """Return the loop that all runs on agents in environments share."""
    return SessionLoop()


class ReusedLoop:
    """Event loop for one coroutine after the other, replaced whenever one of them leaves something on it.

    So each of them runs as on a loop of its own, and most are spared the making of one.
    """

    def __init__(self) -> None:
        self._runner: asyncio.Runner | None = None
        self._thread = threading.get_ident()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run *work* to its end on this loop, or on one of its own if this loop cannot run."""
        if _is_loop_running() or self._thread != threading.get_ident():
            return run_coroutine(work)
        if self._runner is None:
            self._runner = asyncio.Runner(loop_factory=_create_loop)
            atexit.register(self.close)
        is_unused = False
        try:
            result = self._runner.run(work, context=copy_context())
            is_unused = is_unused_loop(self._runner.get_loop())
        finally:
            if not is_unused:
                self.close()
        return result

    def close(self) -> None:
        """Close the loop; the next coroutine gets another one."""
        if self._runner is not None:
            atexit.unregister(self.close)
            runner, self._runner = self._runner, None
            runner.close()


class _CountingExecutor(ThreadPoolExecutor):
    """Executor that knows which of its work has not ended."""

    def __init__(self) -> None:
        super().__init__(thread_name_prefix="asyncio")
        self.working: set[Future[Any]] = set()

    def submit(self, fn: Callable[..., T], /, *args: Any, **kwargs: Any) -> Future[T]:
        future = super().submit(fn, *args, **kwargs)
        self.working.add(future)
        future.add_done_callback(self.working.discard)
        return future


def _create_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    loop.set_default_executor(_CountingExecutor())
    return loop


@cache
def get_reused_loop() -> ReusedLoop:
    """Return the loop that all runs on agents in this process share."""
    return ReusedLoop()


def is_unused_loop(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether a loop of a `ReusedLoop` has nothing left of what ran on it, nor of how that set it up.

    There is no public way to ask for most of that. A loop that does not keep it as those of asyncio do counts as used.
    """
    timers: Any = getattr(loop, "_scheduled", None)
    selector: Any = getattr(loop, "_selector", None)
    executor = getattr(loop, "_default_executor", None)
    return (
        timers is not None
        and selector is not None
        and isinstance(executor, _CountingExecutor)
        and not executor.working
        and all(timer.cancelled() for timer in timers)
        and not any(getattr(loop, name, True) for name in ("_ready", "_asyncgens", "_signal_handlers"))
        # The loop itself waits for what wakes it up.
        and len(selector.get_map()) == 1
        and loop.get_task_factory() is None
        and loop.get_exception_handler() is None
        and not asyncio.all_tasks(loop)
    )


def require_asyncio() -> None:
    """Check that asyncio runs this code.

    Raises:
        UsageError: Another library does, such as trio.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError(
            "arun needs a running asyncio event loop; under anyio let the fixture anyio_backend return 'asyncio'"
        ) from None


def _run_in_new_loop(work: Coroutine[Any, Any, T]) -> T:
    # With a factory, the runner does not touch the event loop that is set for this thread.
    with asyncio.Runner(loop_factory=asyncio.new_event_loop) as runner:
        return runner.run(work)


class _WorkerThread(threading.Thread):
    """Runs a function in another thread and keeps its result or its error."""

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

    async def run_cancellable() -> T:
        task = asyncio.current_task()
        assert task is not None
        started.append((asyncio.get_running_loop(), task))
        return await work

    context = copy_context()
    thread = _WorkerThread(lambda: context.run(_run_in_new_loop, run_cancellable()))
    thread.start()
    try:
        thread.join()
    # An interrupt is raised in this thread only; the work must be told, or its thread would not end.
    except BaseException:
        for loop, task in started:
            loop.call_soon_threadsafe(task.cancel)
        thread.join()
        raise
    if thread.error is not None:
        raise thread.error
    result: T = thread.result
    return result


class BackgroundLoop:
    """Event loop in its own thread, for the responses of a model server that have to wait; all connections share it."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, name="loopback-worlds", daemon=True)
        self._thread.start()

    def run(self, response: Coroutine[Any, Any, HttpResponse]) -> HttpResponse:
        """Return a response, waiting for it.

        Raises:
            ModelDown: It was cancelled.
        """
        try:
            return asyncio.run_coroutine_threadsafe(response, self._loop).result()
        except CancelledError:
            raise ModelDown(0) from None

    def cancel_all(self) -> None:
        """Cancel the responses that wait for something, so that no thread waits for them."""
        asyncio.run_coroutine_threadsafe(_cancel_all_tasks(), self._loop).result()

    def close(self) -> None:
        """End the loop and its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _cancel_all_tasks() -> None:
    for task in asyncio.all_tasks() - {asyncio.current_task()}:
        task.cancel()
