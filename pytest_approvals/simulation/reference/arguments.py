"""
Whether arguments fit a tool.

Lenient where no meaning can be lost (the text "5" for the number 5), strict elsewhere: an argument that nobody declared
is not dropped in silence, because the human would be shown something else than the model meant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pytest_approvals.agent_side.neutral import Parameter, ToolSpec


class Misfit(Exception):
    """Arguments do not fit a tool; the text says why."""


def fitted(spec: ToolSpec, arguments: Any) -> dict[str, Any]:
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
    return {name: _value(name, parameter, arguments) for name, parameter in spec.parameters.items()}


def _value(name: str, parameter: Parameter, arguments: Mapping[str, Any]) -> Any:
    if name not in arguments and parameter.required:
        raise Misfit(f"{name!r} is missing")
    given = arguments.get(name, parameter.default)
    if given is None and parameter.default is None and not parameter.required:
        return None
    return _coerced(name, parameter.type, given)


def _coerced(name: str, declared: str, value: Any) -> Any:
    try:
        return _COERCIONS.get(declared, _anything)(value)
    except (TypeError, ValueError):
        raise Misfit(f"{name!r} is {value!r}, not of type {declared}") from None


def _anything(value: Any) -> Any:
    return value


def _instance_of(*types: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if not isinstance(value, types):
            raise TypeError
        return value

    return check


def _integer(value: Any) -> int:
    if isinstance(value, bool) or (isinstance(value, float) and not value.is_integer()):
        raise TypeError
    return int(value)


def _number(value: Any) -> float:
    if isinstance(value, bool):
        raise TypeError
    return value if isinstance(value, int | float) else float(value)


def _boolean(value: Any) -> bool:
    written = {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else value
    if not isinstance(written, bool):
        raise TypeError
    return written


_COERCIONS: dict[str, Callable[[Any], Any]] = {
    "string": _instance_of(str),
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "array": _instance_of(list, tuple),
    "object": _instance_of(dict, Mapping),
    "null": _instance_of(type(None)),
}
