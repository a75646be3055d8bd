"""
The world of the running turn, for adapters.

Sessions share agents, models and tools, so none of these can hold a world. Frameworks run them in tasks of the turn
that needs them; a context variable follows them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..contract import ModelAddress
from ..contract.agent import World

_WORLD: ContextVar[World] = ContextVar("pytest_approvals_world")


def current_world() -> World:
    """Gives the world of the running turn."""
    return _WORLD.get()


def current_address() -> ModelAddress | None:
    """Gives where the model of the running turn is reached; None outside of a turn, and where the world is asked."""
    running = _WORLD.get(None)
    return None if running is None else running.address()


@contextmanager
def use_world(a_world: World) -> Iterator[None]:
    """Makes *a_world* the one that everything inside is recorded by."""
    token = _WORLD.set(a_world)
    try:
        yield
    finally:
        _WORLD.reset(token)
