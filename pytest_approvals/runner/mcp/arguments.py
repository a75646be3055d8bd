"""Validation of the arguments of MCP calls, which the specification demands of servers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_approvals.agent_side.contract.types import Parameter


def find_argument_errors(arguments: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> Iterator[str]:
    """Yield what the schema of a tool forbids in the arguments of a call, in the words of JSON Schema's validator.

    Values that are not declared are accepted, as the schema does.

    >>> list(find_argument_errors({"amount": "five"}, {"amount": Parameter(type="integer"), "to": Parameter()}))
    ["'five' is not of type 'integer'", "'to' is a required property"]
    """
    for name, parameter in parameters.items():
        if name in arguments:
            if not _has_type(arguments[name], parameter.type):
                yield f"{arguments[name]!r} is not of type {parameter.type!r}"
        elif parameter.required:
            yield f"{name!r} is a required property"


def _has_type(value: Any, kind: str) -> bool:
    # Python takes a truth for a number, which it is not in JSON.
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer":
        return isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return isinstance(value, _TYPES.get(kind, object))


_TYPES: Mapping[str, type | tuple[type, ...]] = {
    "array": list,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "object": Mapping,
    "string": str,
}
