"""Context-local world of the running turn, for adapters, also in blocking code.

Sessions share agents, models and tools, so none of these can hold a world. Frameworks run them in tasks of the turn
that needs them; a context variable follows them there.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from ..contract.agent import World
from ..contract.types import ModelAddress

T = TypeVar("T")

_WORLD: ContextVar[World] = ContextVar("pytest_approvals_world")

_LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("pytest_approvals_loop", default=None)
"""The event loop of the running turn."""


def current_world() -> World:
    """Return the world of the running turn."""
    return _WORLD.get()


def current_address() -> ModelAddress | None:
    """Return the model address of the running turn, or None outside a turn and if the world itself is asked."""
    world = _WORLD.get(None)
    return None if world is None else world.address()


@contextmanager
def use_world(world: World) -> Iterator[None]:
    """Make *world* the current world inside the block."""
    token, loop = _WORLD.set(world), _LOOP.set(_running_loop())
    try:
        yield
    finally:
        _LOOP.reset(loop)
        _WORLD.reset(token)


def run_blocking(work: Coroutine[Any, Any, T]) -> T:
    """Run *work* for blocking code in the turn, such as a tool that calls a model without awaiting it.

    It runs on the event loop of the turn. If that loop waits for this very code, it runs on another one.
    """
    loop = _LOOP.get()
    if loop is not None and loop is not _running_loop():
        return asyncio.run_coroutine_threadsafe(work, loop).result()
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        # The loop of the turn waits for this thread.
        _LOOP.set(None)
        try:
            results.append(asyncio.run(work))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=copy_context().run, args=(run,))
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return results[0]


async def run_in_own_thread(body: Callable[[], T]) -> T:
    """Run a blocking *body* in a thread that only this body uses.

    Bodies that wait for each other could fill the threads that the loop has in store.
    """
    with ThreadPoolExecutor(1) as pool:
        return await asyncio.get_running_loop().run_in_executor(pool, copy_context().run, body)


async def await_in_turn(work: Coroutine[Any, Any, T]) -> T:
    """Await *work* on the event loop of the turn, to which the world belongs.

    The body of a tool may run an agent on a loop of its own, as `asyncio.run` in a thread does.
    """
    loop = _LOOP.get()
    return await (work if loop is None else await_on(loop, work))


async def run_in_turn(
    tool: str,
    arguments: Mapping[str, Any],
    call_id: str | None,
    *,
    agent: str,
    real: Callable[[], Coroutine[Any, Any, Any]] | None,
) -> Any:
    """Call `World.run` on the event loop of the turn; *real* runs on the loop that calls."""
    world, caller = current_world(), _running_loop()

    def run_here() -> Awaitable[Any]:
        assert real is not None
        assert caller is not None
        return await_on(caller, real())

    return await await_in_turn(
        world.run(tool, arguments, call_id, agent=agent, real=None if real is None else run_here)
    )


async def await_on(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> T:
    """Await *work* on *loop*, which may be that of another thread."""
    if loop is _running_loop():
        return await work
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))


_BODY: ContextVar[Any] = ContextVar("pytest_approvals_body", default=None)


def body_owner() -> Any:
    """Return what `use_body` was given; None outside of the body of a tool."""
    return _BODY.get()


@contextmanager
def use_body(owner: object) -> Iterator[None]:
    """Mark the code inside the block as the body of a user's tool; *owner* probes the agents that it runs."""
    token = _BODY.set(owner)
    try:
        yield
    finally:
        _BODY.reset(token)


@contextmanager
def block_turn() -> Iterator[None]:
    """Mark the code inside the block as blocking: an event loop that runs in this thread waits for its end."""
    token = _LOOP.set(None) if _running_loop() is _LOOP.get() else None
    try:
        yield
    finally:
        if token is not None:
            _LOOP.reset(token)


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
