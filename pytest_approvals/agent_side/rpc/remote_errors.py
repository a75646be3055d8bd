"""Serialization of exceptions that cross a process boundary.

The exceptions of the contract (`contract/exceptions.py`) arrive as the same type with the same fields. Any other
exception arrives as a `RemoteError` with the name of its own type.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..contract import exceptions
from ..contract.exceptions import ContractError
from .serialization import SerializationError, validate_json


class RemoteError(Exception):
    """An exception whose type only the other process knows.

    Its class is made for it and has the name of the type there, so that reports name it correctly.

    Attributes:
        original_type: The name of its type in the other process.
        trace: Where it was raised there, as `RemoteFailure.trace`.
    """

    original_type: str = "RemoteError"
    trace: tuple[TraceLine, ...] = ()


class BrokenContract(Exception):
    """One side did what the contract or the protocol does not allow."""


class Kept(Exception):
    """The tool's own exception, which never left the process of the agent."""


class Stopped(Exception):
    """The answer to a call that was stopped on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceLine:
    """One line of a traceback: the file, its line, and the function there."""

    file: str
    line: int
    function: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFailure:
    """An exception in an answer.

    Attributes:
        type: The name of its type.
        message: Its text.
        of: The type that both sides know: an exception of the contract, `BrokenContract`, `Kept`, or `Stopped` for a
            call that was stopped on request; None for all others.
        fields: The attributes of an exception of the contract.
        trace: The traceback of an exception that is none of the contract, without the lines of this package, from the
            outermost to where it was raised; at most the last `MAX_TRACE_LINES`.
    """

    type: str
    message: str
    of: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)
    trace: tuple[TraceLine, ...] = ()


SHARED_ERRORS: dict[str, type[Exception]] = {
    name: kind for name, kind in vars(exceptions).items() if isinstance(kind, type) and issubclass(kind, ContractError)
} | {"BrokenContract": BrokenContract, "Kept": Kept, "Stopped": Stopped}
"""The exceptions that keep their type, by their name on the wire."""


def to_failure(error: BaseException) -> RemoteFailure:
    """Return an exception in the form that crosses."""
    of = next((kind.__name__ for kind in type(error).__mro__ if SHARED_ERRORS.get(kind.__name__) is kind), None)
    return RemoteFailure(
        type=type(error).__name__,
        message=read_message(error),
        of=of,
        fields=_json_fields(error) if isinstance(error, ContractError) else {},
        trace=() if of is not None else _trace_lines(error),
    )


def to_exception(failure: RemoteFailure) -> Exception:
    """Return the exception that crossed, as a new object each time, so that it has no traceback yet."""
    kind = SHARED_ERRORS.get(failure.of or "", RemoteError)
    if failure.of is None or kind.__name__ != failure.type:
        kind = _remote_type(failure.type, kind)
    # Not `kind(…)`: the constructors of the contract's exceptions take other arguments than a message.
    error = kind.__new__(kind, failure.message)
    error.args = (failure.message,)
    for name, value in failure.fields.items():
        # What every exception has, such as `args`, takes certain types only.
        if not hasattr(Exception, name):
            setattr(error, name, value)
    if isinstance(error, RemoteError):
        error.trace = failure.trace
    return error


MAX_TRACE_LINES = 30
"""How many lines of a traceback cross."""

_PACKAGE = str(Path(__file__).parents[1])


def _trace_lines(error: BaseException) -> tuple[TraceLine, ...]:
    raised = traceback.extract_tb(error.__traceback__)
    return tuple(
        TraceLine(file=_printable(frame.filename), line=frame.lineno or 0, function=_printable(frame.name))
        for frame in raised
        if not frame.filename.startswith(_PACKAGE)
    )[-MAX_TRACE_LINES:]


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _remote_type(name: str, base: type[Exception]) -> type[Exception]:
    # One class per name, so that equal errors have equal types.
    key = (name, base.__name__)
    if key not in _REMOTE_TYPES:
        # The name of a class must be text without null characters.
        printable = name.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")
        _REMOTE_TYPES[key] = type(printable, (base,), {"original_type": name, "__module__": "elsewhere"})
    return _REMOTE_TYPES[key]


_REMOTE_TYPES: dict[tuple[str, str], type[Exception]] = {}


def read_message(error: BaseException) -> str:
    """Return the message of an exception, also of one whose `__str__` raises in turn."""
    try:
        return str(error)
    except Exception as broken:
        return f"(its text is unavailable: {type(broken).__name__})"


def _json_fields(error: BaseException) -> dict[str, Any]:
    fields = {}
    for name, value in vars(error).items():
        try:
            fields[name] = validate_json(value)
        except SerializationError:
            continue
    return fields
