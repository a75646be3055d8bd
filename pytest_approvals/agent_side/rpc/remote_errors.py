"""
How exceptions cross a process boundary.

What the two sides raise at each other (`failures.py`) comes out as the same type with the same fields. Any other
exception comes out as a `RemoteError` that has the name of its own type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..contract import exceptions
from ..contract.exceptions import ContractError
from .serialization import SerializationError, validate_json


class RemoteError(Exception):
    """
    An exception of a type that only the other process knows.

    Its class is made for it and has the name that the type has there, so that whatever names an exception by its type
    names this one rightly.

    Attributes:
        original_type: The name of its type in the other process.
    """

    original_type: str = "RemoteError"


class BrokenContract(Exception):
    """One side said what the contract or the protocol does not allow."""


class Kept(Exception):
    """The tool's own exception, which never left the process of the agent."""


class Stopped(Exception):
    """The answer to a call that was stopped on request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """
    An exception as it stands in an answer.

    Attributes:
        type: The name of its type.
        message: Its text.
        of: What it is to both sides: a name in `failures.py`, `BrokenContract`, `Kept`, or `Stopped` for a call that
            was stopped on request; None for all others.
        fields: The attributes of a failure in `failures.py`.
    """

    type: str
    message: str
    of: str | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


SHARED_ERRORS: dict[str, type[Exception]] = {
    name: kind for name, kind in vars(exceptions).items() if isinstance(kind, type) and issubclass(kind, ContractError)
} | {"BrokenContract": BrokenContract, "Kept": Kept, "Stopped": Stopped}
"""The exceptions that come out as what they went in, by name."""


def to_failure(error: BaseException) -> Failure:
    """Gives an exception as it crosses."""
    of = next((kind.__name__ for kind in type(error).__mro__ if SHARED_ERRORS.get(kind.__name__) is kind), None)
    return Failure(
        type=type(error).__name__,
        message=_error_text(error),
        of=of,
        fields=_json_fields(error) if isinstance(error, ContractError) else {},
    )


def to_exception(failure: Failure) -> Exception:
    """Gives the exception that crossed; it is never raised twice, so it carries no traceback of another place."""
    kind = SHARED_ERRORS.get(failure.of or "", RemoteError)
    if failure.of is None or kind.__name__ != failure.type:
        kind = _remote_type(failure.type, kind)
    error = kind.__new__(kind, failure.message)
    error.args = (failure.message,)
    for name, value in failure.fields.items():
        setattr(error, name, value)
    return error


def _remote_type(name: str, base: type[Exception]) -> type[Exception]:
    key = (name, base.__name__)
    if key not in _REMOTE_TYPES:
        _REMOTE_TYPES[key] = type(name, (base,), {"original_type": name, "__module__": "elsewhere"})
    return _REMOTE_TYPES[key]


_REMOTE_TYPES: dict[tuple[str, str], type[Exception]] = {}


def _error_text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as broken:
        return f"(its text cannot be had: {type(broken).__name__})"


def _json_fields(error: BaseException) -> dict[str, Any]:
    given = {}
    for name, value in vars(error).items():
        try:
            given[name] = validate_json(value)
        except SerializationError:
            continue
    return given
