"""What databases of frameworks hold, as documents of the formats that readers know, and the values in their columns.

Values in MessagePack are decoded without making the objects that they name, and pickles are left alone.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import msgspec

from pytest_approvals.errors import HistoryError


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """One conversation of a database; *name* says which."""

    name: str
    format: str
    value: Any


def parse_json(text: Any, where: str) -> Any:
    """Return the value of a JSON text.

    Raises:
        HistoryError: It is none.
    """
    if text is None:
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise HistoryError(f"{where} is not JSON") from None


def has_messages(snapshot: dict[str, Any]) -> bool:
    """Return whether a snapshot of LangGraph holds messages."""
    checkpoint = snapshot["checkpoint"]
    values = checkpoint.get("channel_values") if type(checkpoint) is dict else None
    return type(values) is dict and bool(values.get("messages"))


def load_value(kind: str | None, value: Any) -> Any:
    """Return a value that LangGraph serialized, without making objects; None for a pickle."""
    if value is None or kind in (None, "null", "empty"):
        return None
    data = value.encode() if type(value) is str else value
    try:
        if kind == "msgpack":
            return _decode(data)
        if kind == "json":
            return json.loads(data)
    except (ValueError, msgspec.DecodeError, RecursionError):
        raise HistoryError(f"a value of type {kind} cannot be decoded") from None
    return None


def _decode(data: bytes | memoryview) -> Any:
    return msgspec.msgpack.decode(data, ext_hook=_decode_extension)


def _decode_extension(code: int, data: memoryview) -> Any:
    """Return what an object was made of: module, name and arguments are stored, and only the arguments are taken."""
    made = _decode(data)
    return made[2] if type(made) is list and len(made) > 2 else None
