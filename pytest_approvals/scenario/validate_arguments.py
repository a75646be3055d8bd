"""Mistakes in arguments: whether they fit the parameters that a tool declares."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.errors import nearest
from pytest_approvals.scenario.mistakes import Mistake, Path, unless_meant
from pytest_approvals.scenario.parts import Tool


def fits(kind: str, value: Any) -> bool:
    """Says whether *value* is of that JSON Schema type."""
    match kind:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, (int, float)) and not isinstance(value, bool)
        case "array":
            return isinstance(value, (list, tuple))
    return isinstance(value, Mapping)


def kind_of(value: Any) -> str:
    """Gives a value with its type, as an error names it."""
    match value:
        case None:
            return "null"
        case bool():
            return f"the boolean {str(value).lower()}"
        case int() | float():
            return f"the number {value}"
        case str():
            return f"the string {value!r}"
        case Mapping():
            return "an object"
    return "an array"


def misfits(arguments: Mapping[str, Any], tool: Tool, path: Path) -> Iterator[Mistake]:
    """Gives what does not fit the parameters of *tool*."""
    for name, value in arguments.items():
        parameter = tool.parameters.get(name)
        if parameter is None:
            what = f"{name!r} is no parameter of {tool.name}{nearest(name, tool.parameters)}"
            yield Mistake((*path, name), what)
        elif not fits(parameter.type, value):
            what = f"{name!r} of {tool.name} is of type {parameter.type}, not {kind_of(value)}"
            yield Mistake((*path, name), what)
    for name, parameter in tool.parameters.items():
        if parameter.required and name not in arguments:
            yield Mistake(path, f"the argument {name!r} of {tool.name} is missing")


def judged(arguments: Mapping[str, Any], tool: Tool, path: Path, *, invalid: bool) -> Iterator[Mistake]:
    """Gives the misfits of arguments, or the one mistake of calling fitting ones *invalid*."""
    found = list(misfits(arguments, tool, path))
    if invalid and not found:
        yield Mistake(path, f"these arguments fit {tool.name}; leave out `invalid: true`")
    elif found and not invalid:
        yield Mistake(found[0].path, unless_meant(found[0].what, "invalid"))


def comparable(arguments: Mapping[str, Any] | str, tool: Tool | None) -> str:
    """Gives arguments as text that is equal for equal arguments, defaults filled in."""
    if isinstance(arguments, str):
        return arguments
    parameters = tool.parameters if tool is not None else {}
    defaults = {name: one.default for name, one in parameters.items() if one.default is not None}
    return json.dumps({**defaults, **arguments}, sort_keys=True, default=repr)
