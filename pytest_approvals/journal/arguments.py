"""Arguments of calls: when two are the same, and when they fit the parameters of a tool.

A model may send text where a number is declared, and leave defaults out; frameworks validate before they run a tool.
What was shown, what was approved and what ran are compared after parsing, coercion to the declared types, and filling
of defaults. This is the one place that answers "do these arguments fit": the reference agent alone has its own answer,
on purpose.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from datetime import date, datetime, time
from typing import Any
from uuid import UUID

from pytest_approvals.agent_side.contract.types import Parameter

Parameters = Mapping[str, Mapping[str, Any]]
"""Declared parameters as in a journal's header: name to `{type, required, default}` and `constraints` if any."""


def describe_parameters(parameters: Mapping[str, Parameter]) -> dict[str, dict[str, Any]]:
    """Return parameters as a journal's header declares them."""
    return {
        name: {"type": parameter.type, "required": parameter.required}
        | ({} if parameter.required and parameter.default is None else {"default": parameter.default})
        | ({} if parameter.constraints is None else {"constraints": parameter.constraints})
        for name, parameter in parameters.items()
    }


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
    values = {name: _normalize_value(value, parameters.get(name, {})) for name, value in parsed.items()}
    defaults = {
        name: declared["default"]
        for name, declared in parameters.items()
        # A strict schema demands all arguments, and a tool takes its default for one that is left out all the same.
        if name not in values and (not declared.get("required", True) or "default" in declared)
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
    # Most values are texts, and the abstract types below take longer to ask than these are to compare.
    if type(first) is str and type(second) is str:
        return first == second
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


def _normalize_value(value: Any, declared: Mapping[str, Any]) -> Any:
    """Return a value as a parameter that is *declared* so takes it."""
    constraints = declared.get("constraints")
    coerced = _coerce_value(value, declared.get("type"))
    return coerced if constraints is None else _normalize_part(coerced, constraints)


def _normalize_part(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value with what a JSON Schema says about its parts: their types, formats and defaults."""
    if isinstance(value, Mapping):
        parts = _find_schema(schema, "properties").get("properties") or {}
        given = {name: _normalize_typed(one, parts.get(name)) for name, one in value.items()}
        missing = {name for name, part in parts.items() if isinstance(part, Mapping) and "default" in part}
        return {**{name: parts[name]["default"] for name in sorted(missing - given.keys())}, **given}
    if isinstance(value, list | tuple):
        items = _find_schema(schema, "items").get("items")
        parts = [_normalize_typed(one, items) for one in value]
        if _find_schema(schema, "uniqueItems").get("uniqueItems") is True:
            # The tool takes it as a set, which has no order and nothing twice.
            unique = {json.dumps(part, sort_keys=True): part for part in parts}
            return [unique[text] for text in sorted(unique)]
        return parts
    if isinstance(value, str):
        return _normalize_format(value, _find_schema(schema, "format").get("format"))
    return value


def _normalize_typed(value: Any, schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return value
    declared = _find_schema(schema, "type").get("type")
    return _normalize_part(_coerce_value(value, declared if isinstance(declared, str) else None), schema)


def _find_schema(schema: Mapping[str, Any], keyword: str) -> Mapping[str, Any]:
    """Return a schema, or the first of its alternatives, that says *keyword*; an empty one if none does."""
    if keyword in schema:
        return schema
    choices = (choice for name in ("anyOf", "oneOf", "allOf") for choice in schema.get(name, ()))
    return next((choice for choice in choices if isinstance(choice, Mapping) and keyword in choice), {})


def _normalize_format(value: str, name: Any) -> str:
    """Return a text in the one way of writing that its format has for it; one that does not fit stays as it is."""
    try:
        match name:
            case "date-time":
                return datetime.fromisoformat(value).isoformat()
            case "time":
                return time.fromisoformat(value).isoformat()
            case "uuid":
                return str(UUID(value))
            case "uri" if value.count("/") == 2:
                # A host without a path has the path `/`.
                return f"{value}/"
    except ValueError:
        return value
    return value


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
    given = [(parsed[name], declared) for name, declared in parameters.items() if name in parsed]
    strict = all(
        _is_instance(value, declared.get("type")) and meets_constraints(value, declared.get("constraints"))
        for value, declared in given
    )
    return strict and set(parsed) <= set(parameters)


def _is_instance(value: Any, declared: str | None) -> bool:
    if declared is None or declared not in _JSON_TYPES:
        return True
    if isinstance(value, bool):
        return declared == "boolean"
    return isinstance(value, _JSON_TYPES[declared])


# --- constraints ------------------------------------------------------------------------------------------------------


def meets_constraints(value: Any, constraints: Mapping[str, Any] | None) -> bool:
    """Return whether *value* surely meets what a JSON Schema demands besides its type.

    A keyword or a format that is not known here is not met, because nobody can say that a framework takes the value.

    Args:
        value: A JSON value.
        constraints: Keywords of JSON Schema 2020-12 without references; None for no demand.

    >>> meets_constraints(5, {"maximum": 9}), meets_constraints(5, {"enum": [1, 2]}), meets_constraints(5, {"new": 1})
    (True, False, False)
    """
    return all(
        keyword in _KEYWORDS and _KEYWORDS[keyword](value, demand, constraints or {})
        for keyword, demand in (constraints or {}).items()
    )


def find_unmet_constraint(value: Any, constraints: Mapping[str, Any] | None) -> tuple[str, Any] | None:
    """Return a keyword and its demand that *value* surely does not meet; None if there is none.

    What nobody can say is left open here: keywords and formats that are not known, and text that a framework may read
    as a value of another type.

    >>> find_unmet_constraint(25, {"minimum": 0, "maximum": 23}), find_unmet_constraint(5, {"new": 1})
    (('maximum', 23), None)
    >>> find_unmet_constraint({"days": 40}, {"properties": {"days": {"maximum": 30}}})
    ('maximum', 30)
    """
    for keyword, demand in (constraints or {}).items():
        for part, wanted in _list_parts(value, keyword, demand):
            if (unmet := find_unmet_constraint(part, wanted)) is not None:
                return unmet
        if keyword in ("anyOf", "oneOf"):
            is_unmet = all(not _can_be_of_type(value, part) or find_unmet_constraint(value, part) for part in demand)
        elif keyword == "allOf":
            is_unmet = any(find_unmet_constraint(value, part) for part in demand)
        else:
            is_unmet = keyword in _PLAIN_KEYWORDS and not _KEYWORDS[keyword](value, demand, constraints or {})
        if is_unmet:
            return keyword, demand
    return None


def _list_parts(value: Any, keyword: str, demand: Any) -> Iterator[tuple[Any, Mapping[str, Any]]]:
    """Yield the parts of a value that a keyword is about, with what it demands of each."""
    if keyword == "properties" and isinstance(value, Mapping):
        yield from ((value[name], wanted) for name, wanted in demand.items() if name in value)
    elif keyword == "items" and isinstance(value, list) and isinstance(demand, Mapping):
        yield from ((part, demand) for part in value)


def _can_be_of_type(value: Any, constraints: Mapping[str, Any]) -> bool:
    demand = constraints.get("type")
    if demand is None or _is_of_type(value, demand, constraints):
        return True
    return isinstance(value, str) and demand not in ("null", "array", "object")


def _is_known_format(value: Any, demand: Any, _: Mapping[str, Any]) -> bool:
    if demand not in _FORMATS or not isinstance(value, str):
        return demand in _FORMATS
    read = _FORMATS[demand]
    try:
        if read is not None:
            read(value)
    except ValueError:
        return False
    return True


def _matches_pattern(value: Any, demand: Any, _: Mapping[str, Any]) -> bool:
    if not isinstance(value, str):
        return True
    try:
        return re.search(demand, value) is not None
    # Patterns are of ECMA-262, and some of them cannot be read by Python.
    except re.error:
        return False


def _has_fitting_properties(value: Any, demand: Any, _: Mapping[str, Any]) -> bool:
    return not isinstance(value, Mapping) or all(
        meets_constraints(value[name], part) for name, part in demand.items() if name in value
    )


def _has_fitting_rest(value: Any, demand: Any, constraints: Mapping[str, Any]) -> bool:
    if demand is True or not isinstance(value, Mapping):
        return True
    rest = [value[name] for name in value if name not in constraints.get("properties", {})]
    return not rest if demand is False else all(meets_constraints(part, demand) for part in rest)


def _is_of_type(value: Any, demand: Any, _: Mapping[str, Any]) -> bool:
    names = [demand] if isinstance(demand, str) else demand
    return any(value is None if name.lower() == "null" else _is_instance(value, name.lower()) for name in names)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_FORMATS: Mapping[Any, Callable[[str], Any] | None] = {
    "date-time": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "uuid": UUID,
    "path": None,
    "password": None,
    "int32": None,
    "int64": None,
    "float": None,
    "double": None,
}

_PLAIN_KEYWORDS = frozenset(
    (
        "enum", "const", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength",
        "maxLength", "pattern", "minItems", "maxItems", "uniqueItems",
    )
)  # fmt: skip
"""Keywords that judge a value by itself."""

_KEYWORDS: Mapping[str, Callable[[Any, Any, Mapping[str, Any]], bool]] = {
    "type": _is_of_type,
    "enum": lambda value, demand, _: any(are_same_values(value, choice) for choice in demand),
    "const": lambda value, demand, _: are_same_values(value, demand),
    "minimum": lambda value, demand, _: not _is_number(value) or value >= demand,
    "maximum": lambda value, demand, _: not _is_number(value) or value <= demand,
    "exclusiveMinimum": lambda value, demand, _: not _is_number(value) or value > demand,
    "exclusiveMaximum": lambda value, demand, _: not _is_number(value) or value < demand,
    "multipleOf": lambda value, demand, _: not _is_number(value) or value % demand == 0,
    "minLength": lambda value, demand, _: not isinstance(value, str) or len(value) >= demand,
    "maxLength": lambda value, demand, _: not isinstance(value, str) or len(value) <= demand,
    "pattern": _matches_pattern,
    "format": _is_known_format,
    "minItems": lambda value, demand, _: not isinstance(value, list) or len(value) >= demand,
    "maxItems": lambda value, demand, _: not isinstance(value, list) or len(value) <= demand,
    "uniqueItems": lambda value, demand, _: (
        not demand or not isinstance(value, list) or len(set(map(arguments_key, value))) == len(value)
    ),
    "items": lambda value, demand, _: (
        not isinstance(value, list) or all(meets_constraints(part, demand) for part in value)
    ),
    "properties": _has_fitting_properties,
    "additionalProperties": _has_fitting_rest,
    "required": lambda value, demand, _: not isinstance(value, Mapping) or all(name in value for name in demand),
    "anyOf": lambda value, demand, _: any(meets_constraints(value, choice) for choice in demand),
    "oneOf": lambda value, demand, _: sum(meets_constraints(value, choice) for choice in demand) == 1,
    "allOf": lambda value, demand, _: all(meets_constraints(value, part) for part in demand),
    **dict.fromkeys(
        ("title", "description", "default", "example", "examples", "deprecated", "nullable", "propertyOrdering"),
        lambda value, demand, _: True,
    ),
}
