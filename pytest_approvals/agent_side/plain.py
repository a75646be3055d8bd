"""
What can cross a process boundary: plain JSON values.

Agents and tools may hand over anything: there, what JSON cannot hold becomes a readable marker, so that telling what
happened never fails. What the harness says must arrive as it was said: there, it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

DEPTH = 60
"""How deep a value may be nested before the rest becomes a marker."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class WireError(ValueError):
    """A value does not fit its place in a message: *what* is wrong, and the *path* to it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str] = []

    def within(self, step: str) -> WireError:
        """Gives this error as seen from one level further out."""
        self.path.insert(0, step)
        return self

    def __str__(self) -> str:
        where = "".join(step if step.startswith("[") else f".{step}" for step in self.path).lstrip(".")
        return f"{where}: {self.what}" if where else self.what


def plain(value: Any) -> Any:
    """
    Gives *value* as plain JSON: tuples and sets become lists, keys text, and all that JSON cannot hold a marker.

    >>> plain({"at": (1, 2), 3: {4j}})
    {'at': [1, 2], '3': ['<not JSON: 4j>']}
    """
    return _plain(value, DEPTH)


def marker(value: object) -> str:
    """
    Stands for a value that JSON cannot hold: its repr, without memory addresses.

    >>> marker(b"raw")
    "<not JSON: b'raw'>"
    """
    try:
        shown = _ADDRESS.sub("", repr(value))
    except Exception:
        shown = f"a {type(value).__qualname__} without a repr"
    return f"<not JSON: {shown}>"


def exact(value: Any, depth: int = DEPTH) -> Any:
    """
    Gives *value* as it is, if JSON gives it back unchanged.

    Errors:
        WireError: It does not.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and value - value == 0:
        return value
    if depth and type(value) is list:
        for position, part in enumerate(value):
            within(f"[{position}]", exact, part, depth - 1)
        return value
    if depth and isinstance(value, Mapping):
        for key, part in value.items():
            if type(key) is not str:
                raise WireError(f"the key {key!r} is no text")
            within(key, exact, part, depth - 1)
        return value if type(value) is dict else dict(value)
    raise WireError(f"{shown(value)} is no JSON value" if depth else f"nested deeper than {DEPTH}")


def within(step: str, action: Callable[..., Any], *arguments: Any) -> Any:
    """Does *action*; a mistake in it is told as seen from outside of *step*."""
    try:
        return action(*arguments)
    except WireError as mistake:
        raise mistake.within(step) from None


def shown(value: Any) -> str:
    """Gives a short text about *value* for a message: its repr and its type."""
    try:
        text = repr(value)
    except Exception:
        text = "something without a repr"
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else marker(float(value))
    if depth == 0:
        return f"<not JSON: nested deeper than {DEPTH}>"
    if isinstance(value, Mapping):
        return {_key(key): _plain(held, depth - 1) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(held, depth - 1) for held in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(held, depth - 1) for held in value), key=str)
    return marker(value)


def _key(key: object) -> str:
    if isinstance(key, str):
        return str(key)
    return str(key) if isinstance(key, (int, float)) else marker(key)
