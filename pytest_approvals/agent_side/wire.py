"""
Neutral types as JSON and back: exact and strict.

What is written is read back as an equal value, or writing it fails.
"""

from __future__ import annotations

from typing import Any, TypeVar

from .codecs import AnyWriter, Handle, codec_of
from .plain import WireError, exact, plain

__all__ = ["AnyWriter", "Handle", "WireError", "exact", "from_json", "plain", "to_json"]

T = TypeVar("T")


def to_json(value: Any, kind: Any = None, *, anything: AnyWriter | None = None) -> Any:
    """
    Gives *value* as JSON.

    Arguments:
        kind: The type to write it as; by default its own.
        anything: How values are written that may be anything; by default `exact`.

    Errors:
        WireError: It does not have the type that it should have.
    """
    return codec_of(kind or type(value)).write(value, anything or exact)


def from_json(kind: type[T], written: Any) -> T:
    """
    Gives the value that was written.

    Errors:
        WireError: *written* is no such value.
    """
    value: T = codec_of(kind).read(written)
    return value
