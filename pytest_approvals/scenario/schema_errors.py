"""What pydantic says about a scenario file, in the words of this language."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pytest_approvals.errors import nearest
from pytest_approvals.scenario.mistakes import Mistake, Path, place
from pytest_approvals.scenario.schema_base import described


def mistakes_in(error: ValidationError) -> list[Mistake]:
    """Gives a mistake for each error that pydantic found."""
    return [_mistake(detail) for detail in error.errors(include_url=False)]


def _mistake(detail: ErrorDetails) -> Mistake:
    path = _path(detail["loc"])
    facts = detail.get("ctx", {})
    if detail["type"] == "said":
        return Mistake((*path, facts["key"]) if "key" in facts else path, facts["text"])
    if detail["type"] == "missing":
        return Mistake(path[:-1], f"{place(path[:-1]) or 'the scenario'} lacks the key {str(path[-1])!r}")
    return Mistake(path, f"{place(path) or 'the scenario'} {_complaint(detail, facts)}")


def _path(location: tuple[int | str, ...]) -> Path:
    """Leaves out what pydantic adds to a location: the tags of unions, and the mark of a wrong mapping key."""
    return tuple(part for part in location if isinstance(part, int) or not part.startswith(("=", "[key]")))


def _complaint(detail: ErrorDetails, facts: Mapping[str, Any]) -> str:
    given = detail["input"]
    match detail["type"]:
        case "literal_error":
            return _not_one_of(str(facts["expected"]), given)
        case "string_type":
            quotes = f"; write it in quotes: '{_as_written(given)}'" if _is_word(given) else ""
            return f"expects text, not {described(given)}{quotes}"
        case "greater_than_equal":
            return f"must be at least {facts['ge']}, not {given}"
        case "too_short" if facts["min_length"] > 1:
            return f"needs {facts['min_length']} elements or more, not {facts['actual_length']}"
        case "string_too_short" | "too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return f"expects OWNER/REPO#NUMBER or an address, not {given!r}"
        case "shape":
            return f"{detail['msg']}, not {described(given)}"
    expected = _KINDS.get(detail["type"])
    return f"expects {expected}, not {described(given)}" if expected else detail["msg"]


_KINDS = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "none_required": "null",
}


def _not_one_of(expected: str, given: Any) -> str:
    words = re.findall(r"'([^']*)'", expected)
    hint = nearest(given, words) if isinstance(given, str) and "did you mean" in nearest(given, words) else ""
    valid = expected.replace("True", "true").replace("'", "")
    return f"expects {valid}, not {described(given)}{hint}"


def _is_word(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float))


def _as_written(value: Any) -> str:
    return json.dumps(value)
