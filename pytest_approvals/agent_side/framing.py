"""Messages as lines: how they are written and read, and what makes a line one kind of message or another."""

from __future__ import annotations

import json
from typing import Any

from .crossing import Failure, error_of
from .wire import from_json


def _refuse(word: str) -> None:
    raise ValueError(word)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=_refuse).decode

_CALLS_AND_NOTICES = ({"id", "m", "p"}, {"id", "m", "p", "blocks"}, {"m", "p"})


def line_of(message: dict[str, Any]) -> bytes:
    """Gives the line that says it."""
    return _encode(message).encode("ascii") + b"\n"


def message_of(line: bytes) -> Any:
    """Gives the message, or None where the line is not JSON."""
    try:
        return _decode(line.decode())
    except (ValueError, RecursionError):
        return None


def is_call_or_notice(message: dict[str, Any]) -> bool:
    """Says whether it has what one of them must have, and nothing else."""
    known = message.keys() in _CALLS_AND_NOTICES and message.get("blocks", True) is True
    return known and isinstance(message["m"], str)


def names_a_call(params: Any) -> bool:
    """Says whether the parameters of a notice are the number of a call."""
    return isinstance(params, dict) and params.keys() == {"call"} and type(params["call"]) is int


def waits(message: dict[str, Any], number: int) -> bool:
    """Says whether it tells who called that the call has to wait."""
    return message.get("m") == "waits" and message.get("p") == {"call": number}


def outcome_of(answer: dict[str, Any]) -> Any:
    """Gives what a call returned, or raises what it raised."""
    if "ok" in answer:
        return answer["ok"]
    raise error_of(from_json(Failure, answer["err"]))


def excerpt(line: bytes) -> str:
    """Gives a line as it is quoted in a complaint."""
    text = line.decode(errors="backslashreplace")
    return text if len(text) <= 200 else f"{text[:200]}... ({len(line)} bytes)"
