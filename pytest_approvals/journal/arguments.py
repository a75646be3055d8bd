"""
When the arguments of a call are the same: after parsing, coercion to the declared types, and filling of defaults.

A model may send text where a number is declared, and leave defaults out; frameworks validate before they run a tool.
What was shown, what was approved and what ran are compared after all of that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

Parameters = Mapping[str, Mapping[str, Any]]
"""Declared parameters as they stand in a journal's header: name to `{type, required, default}`."""


def parsed(arguments: Any) -> Any:
    """Gives arguments as an object: JSON text parsed, None and an empty text as none; anything else as it is."""
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def settled(arguments: Any, parameters: Parameters) -> Any:
    """Gives parsed arguments with each value coerced to its declared type and missing defaults filled in."""
    given = parsed(arguments)
    if not isinstance(given, Mapping):
        return given
    values = {name: _coerced(value, parameters.get(name, {}).get("type")) for name, value in given.items()}
    defaults = {
        name: declared["default"]
        for name, declared in parameters.items()
        if name not in values and not declared.get("required", True)
    }
    return {**defaults, **values}


def same_arguments(one: Any, other: Any, parameters: Parameters | None = None) -> bool:
    """Says whether two arguments are equal for a tool with these *parameters*."""
    if one == other:
        return True
    if parameters is None:
        return bool(parsed(one) == parsed(other))
    return bool(settled(one, parameters) == settled(other, parameters))


def _coerced(value: Any, declared: str | None) -> Any:
    """Coerces as lenient validators do; a value that does not fit stays as it is."""
    try:
        if declared == "integer" and isinstance(value, str | float) and not isinstance(value, bool):
            return int(value) if float(value).is_integer() else value
        if declared == "number" and isinstance(value, str | int) and not isinstance(value, bool):
            return float(value)
    except ValueError:
        return value
    if declared == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return value
