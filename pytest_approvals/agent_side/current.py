"""
The world of the running turn, for adapters.

Sessions share agents, models and tools, so none of these can hold a world. Frameworks run them in tasks of the turn
that needs them; a context variable follows them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .contract import World

_WORLD: ContextVar[World] = ContextVar("pytest_approvals_world")


def world() -> World:
    """Gives the world of the running turn."""
    return _WORLD.get()


@contextmanager
def recorded_by(a_world: World) -> Iterator[None]:
    """Makes *a_world* the one that everything inside is recorded by."""
    token = _WORLD.set(a_world)
    try:
        yield
    finally:
        _WORLD.reset(token)
