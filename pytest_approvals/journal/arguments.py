"""Arguments of calls: when two are the same, and when they fit the parameters of a tool.

A model may send text where a number is declared, and leave defaults out; frameworks validate before they run a tool.
What was shown, what was approved and what ran are compared after parsing, coercion to the declared types, and filling
of defaults. This is the one place that answers "do these arguments fit": the reference agent alone has its own answer,
on purpose.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any

Parameters = Mapping[str, Mapping[str, Any]]
"""Declared parameters as in a journal's header: name to `{type, required, default}`."""


def parse_arguments(arguments: Any) -> Any:
    """Return arguments as an object: JSON text parsed, None and an empty text as none; anything else as it is."""
    if arguments is None or arguments == "":
        return {}
    if not isinstance(arguments, str):
        return arguments
    try:
        return json.loads(arguments)
    # Text that is nested deeper than Python can parse is no object either.
    except (ValueError, RecursionError):
        return arguments


def normalize_arguments(arguments: Any, parameters: Parameters) -> Any:
    """Return parsed arguments with each value coerced to its declared type and missing defaults filled in."""
    parsed = parse_arguments(arguments)
    if not isinstance(parsed, Mapping):
        return parsed
    values = {name: _coerce_value(value, parameters.get(name, {}).get("type")) for name, value in parsed.items()}
    defaults = {
        name: declared["default"]
        for name, declared in parameters.items()
        if name not in values and not declared.get("required", True)
    }
    return {**defaults, **values}


def arguments_match(first: Any, second: Any, parameters: Parameters | None = None) -> bool:
    """Return whether two arguments are equal for a tool with these *parameters*."""
    if are_same_values(first, second):
        return True
    if parameters is None:
        return are_same_values(parse_arguments(first), parse_arguments(second))
    return are_same_values(normalize_arguments(first, parameters), normalize_arguments(second, parameters))


def are_same_values(first: Any, second: Any) -> bool:
    """Return whether two JSON values are the same. Python takes a truth for a number, which it is not in JSON.

    >>> are_same_values([True], [1]), are_same_values(1, 1.0)
    (False, True)
    """
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(are_same_values(first[name], second[name]) for name in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(are_same_values, first, second))
    return bool(first == second)


def arguments_key(arguments: Any) -> Hashable:
    """Return a key that is the same for arguments that match.

    >>> arguments_key('{"to": "bob", "amount": 5}') == arguments_key({"amount": 5.0, "to": "bob"})
    True
    """
    return _hashable(parse_arguments(arguments))


def _hashable(value: Any) -> Hashable:
    match value:
        case str() | None:
            return value
        case Mapping():
            return frozenset(zip(value, map(_hashable, value.values()), strict=True))
        case list() | tuple():
            return tuple(map(_hashable, value))
        # Numbers and truths become bytes, because everybody can find numbers with equal hashes.
        case float() if value.is_integer():
            return str(int(value)).encode()
        case _:
            return str(value).encode()


def _coerce_value(value: Any, declared: str | None) -> Any:
    """Coerce as lenient validators do; a value that does not fit stays as it is."""
    try:
        if declared == "integer" and isinstance(value, str | float):
            return int(value) if float(value).is_integer() else value
        # A number that Python holds exactly is not rounded.
        if declared == "number" and isinstance(value, str):
            return int(value) if value.removeprefix("-").isdecimal() else float(value)
    except ValueError:
        return value
    if declared == "boolean" and isinstance(value, str):
        return {"true": True, "false": False}.get(value.lower(), value)
    return value


def arguments_satisfy(ran: Any, wanted: Any, parameters: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether a tool that got *ran* got what *wanted* means.

    They are equal after coercion and defaults; values that are not declared may have been left out.
    """
    if are_same_values(ran, wanted):
        return True
    first, second = normalize_arguments(ran, parameters), normalize_arguments(wanted, parameters)
    if are_same_values(first, second):
        return True
    if not parameters or not isinstance(first, Mapping) or not isinstance(second, Mapping):
        return False
    return all(are_same_values(first.get(name), second.get(name)) for name in parameters)


_JSON_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": Mapping,
}


def arguments_fit(arguments: Any, parameters: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether *arguments* are an object with all required parameters, each of its type after coercion."""
    parsed = normalize_arguments(arguments, parameters)
    if not isinstance(parsed, Mapping):
        return False
    for name, declared in parameters.items():
        if name not in parsed:
            if declared.get("required", True):
                return False
        elif not _is_coercible(parsed[name], declared.get("type")):
            return False
    return True


def _is_coercible(value: Any, declared: str | None) -> bool:
    if declared is None or declared not in _JSON_TYPES or value is None:
        return True
    if isinstance(value, bool):
        return declared in ("boolean", "string")
    return isinstance(value, _JSON_TYPES[declared]) or declared == "string"


def arguments_fit_exactly(arguments: Any, parameters: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether *arguments* fit as they are: without coercion, and with no value that is not declared.

    Frameworks differ in what they coerce and in which extra values they accept; only if arguments fit exactly must
    all of them run the call.
    """
    parsed = parse_arguments(arguments)
    if not isinstance(parsed, Mapping) or not arguments_fit(parsed, parameters):
        return False
    strict = all(
        _is_instance(parsed[name], declared.get("type")) for name, declared in parameters.items() if name in parsed
    )
    return strict and set(parsed) <= set(parameters)


def _is_instance(value: Any, declared: str | None) -> bool:
    if declared is None or declared not in _JSON_TYPES:
        return True
    if isinstance(value, bool):
        return declared == "boolean"
    return isinstance(value, _JSON_TYPES[declared])
