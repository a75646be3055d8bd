"""Whether arguments fit a tool.

Lenient if no meaning can be lost (the text "5" for the number 5), strict elsewhere: an undeclared argument is not
dropped silently, because the human would see something else than the model meant.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import Parameter, ToolSpec


class Misfit(Exception):
    """Arguments do not fit a tool; the text says why."""


def fit_arguments(spec: ToolSpec, arguments: Any) -> dict[str, Any]:
    """Return *arguments* as the tool's body gets them: coerced to the declared types, with defaults.

    A tool without declared parameters accepts anything. Some providers send an empty text for no arguments.

    Raises:
        Misfit: The arguments are not an object, are incomplete, undeclared or of another type.
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
    value = arguments.get(name, parameter.default)
    if value is None and parameter.default is None and not parameter.required:
        return None
    return _coerce(name, parameter.type, value)


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
    # `bool` is a subclass of `int`, but a different type in JSON.
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _to_number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return value if isinstance(value, int | float) else float(value)


def _to_boolean(value: Any) -> bool:
    parsed = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(parsed, bool):
        raise TypeError
    return parsed


_COERCIONS: dict[str, Callable[[Any], Any]] = {
    "string": _require_type(str),
    "integer": _to_integer,
    "number": _to_number,
    "boolean": _to_boolean,
    "array": _require_type(list, tuple),
    "object": _require_type(dict, Mapping),
    "null": _require_type(type(None)),
}


def parse_arguments(text: str) -> dict[str, Any] | str:
    """Return arguments as an object, or as text if they are not a JSON object."""
    try:
        # Python's parser accepts NaN and Infinity, which are not JSON.
        value = json.loads(text, parse_constant=_reject_constant)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text


def _reject_constant(name: str) -> None:
    raise ValueError(f"invalid JSON constant {name}")
