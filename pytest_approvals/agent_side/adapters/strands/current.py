"""
What the running turn needs: its world, and whether it is streamed.

Sessions share models, tools and gates, so none of these can hold a world. The framework runs them in tasks of the turn
that needs them; a context variable follows them there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from ...contract import World


@dataclass(frozen=True, slots=True, kw_only=True)
class _Running:
    world: World
    stream: bool


_RUNNING: ContextVar[_Running] = ContextVar("pytest_approvals_strands")


def world() -> World:
    """Gives the world of the running turn."""
    return _RUNNING.get().world


def streamed() -> bool:
    """Says whether the running turn is streamed."""
    return _RUNNING.get().stream


@contextmanager
def recorded_by(a_world: World, *, stream: bool) -> Iterator[None]:
    """Makes *a_world* the one that everything inside is recorded by."""
    token = _RUNNING.set(_Running(world=a_world, stream=stream))
    try:
        yield
    finally:
        _RUNNING.reset(token)
