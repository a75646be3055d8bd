"""Context-local world of the running turn, for adapters.

Sessions share agents, models and tools, so none of these can hold a world. Frameworks run them in tasks of the turn
that needs them; a context variable follows them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from ..contract.agent import World
from ..contract.types import ModelAddress

_WORLD: ContextVar[World] = ContextVar("pytest_approvals_world")


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
    token = _WORLD.set(world)
    try:
        yield
    finally:
        _WORLD.reset(token)
