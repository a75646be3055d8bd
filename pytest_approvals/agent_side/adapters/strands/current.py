"""Whether the running turn is streamed: the framework asks its models for streams only."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_STREAM: ContextVar[bool] = ContextVar("pytest_approvals_strands_stream")


def streamed() -> bool:
    """Says whether the running turn is streamed."""
    return _STREAM.get()


@contextmanager
def streaming(stream: bool) -> Iterator[None]:
    """Makes everything inside a turn that is streamed, or one that is not."""
    token = _STREAM.set(stream)
    try:
        yield
    finally:
        _STREAM.reset(token)
