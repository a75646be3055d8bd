"""
Whether arguments fit a tool.

Lenient where no meaning can be lost (the text "5" for the number 5), strict elsewhere: an argument that nobody declared
is not dropped in silence, because the human would be shown something else than the model meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import Parameter, ToolSpec


class Misfit(Exception):
    """Arguments do not fit a tool; the text says why."""


def fit_arguments(spec: ToolSpec, arguments: Any) -> dict[str, Any]:
    """
    Gives *arguments* as the tool's body gets them: coerced to the declared types, defaults filled in. A tool that
    declares no parameters takes what it gets, and an empty text is how some providers send no arguments.

    Errors:
        Misfit: They are no object, lack something, hold something undeclared, or something of another type.
    """
    if arguments == "":
        arguments = {}
    if not isinstance(arguments, Mapping):
        raise Misfit("they are not a JSON object")
    if not spec.parameters:
        return dict(arguments)
    for name in arguments:
        if name not in spec.parameters:
            raise Misfit(f"there is no parameter {name!r}")
    return {name: _fit_value(name, parameter, arguments) for name, parameter in spec.parameters.items()}


def _fit_value(name: str, parameter: Parameter, arguments: Mapping[str, Any]) -> Any:
    if name not in arguments and parameter.required:
        raise Misfit(f"{name!r} is missing")
    given = arguments.get(name, parameter.default)
    if given is None and parameter.default is None and not parameter.required:
        return None
    return _coerce(name, parameter.type, given)


def _coerce(name: str, declared: str, value: Any) -> Any:
    try:
        return _COERCIONS.get(declared, _accept_anything)(value)
    except (TypeError, ValueError):
        raise Misfit(f"{name!r} is {value!r}, not of type {declared}") from None


def _accept_anything(value: Any) -> Any:
    return value


def _require_type(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, types):
            raise TypeError
        return value

    return check


def _to_integer(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _to_number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return value if isinstance(value, int | float) else float(value)


def _to_boolean(value: Any) -> bool:
    written = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(written, bool):
        raise TypeError
    return written


_COERCIONS: dict[str, Callable[[Any], Any]] = {
    "string": _require_type(str),
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_boolean,
    "array": _require_type(list, tuple),
    "object": _require_type(dict, Mapping),
    "null": _require_type(type(None)),
}
