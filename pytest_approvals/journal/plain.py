"""
What a journal can hold: plain JSON values.

Agents and tools may hand over anything. What JSON cannot hold becomes a readable marker, so that recording never fails
and a journal reads the same in memory and from its file.
"""

from __future__ import annotations

import re
from typing import Any

DEPTH = 60
"""How deep a value may be nested before the rest becomes a marker."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def plain(value: Any) -> Any:
    """
    Gives *value* as plain JSON: tuples and sets become lists, keys text, and all that JSON cannot hold a marker.

    >>> plain({"at": (1, 2), 3: {4j}})
    {'at': [1, 2], '3': ['<not JSON: 4j>']}
    """
    return _plain(value, DEPTH)


def marker(value: object) -> str:
    """
    Stands in a journal for a value that JSON cannot hold: its repr, without memory addresses.

    >>> marker(b"raw")
    "<not JSON: b'raw'>"
    """
    try:
        shown = _ADDRESS.sub("", repr(value))
    except Exception:
        shown = f"a {type(value).__qualname__} without a repr"
    return f"<not JSON: {shown}>"


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else marker(float(value))
    if depth == 0:
        return f"<not JSON: nested deeper than {DEPTH}>"
    if isinstance(value, dict):
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
