"""Base of the border models of a scenario file: strictness, and errors that name the valid words."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from pytest_approvals.errors import suggest_name
from pytest_approvals.yaml_files import Diagnostic, KeyPath, format_key_path
from pytest_approvals.yaml_files.document import AmbiguousScalar


class FilePart(BaseModel):
    """A mapping in a scenario file.

    Attributes:
        noun: What such a mapping is called in errors.
        one_of: Groups of keys of which exactly one must be given.
        nullable: The keys whose value may be null; every other key is left out instead.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)

    noun: ClassVar[str] = "a scenario"
    one_of: ClassVar[tuple[tuple[str, ...], ...]] = ()
    nullable: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, mapping: Any) -> Any:
        if not isinstance(mapping, Mapping):
            raise shape_error(f"{cls.noun} is a mapping, not {describe_value(mapping)}")
        valid = [field.alias or name for name, field in cls.model_fields.items()]
        for key, value in mapping.items():
            if key not in valid:
                raise key_error(key, f"{cls.noun} has no key {key!r}{suggest_name(key, valid)}")
            if value is None and key not in cls.nullable:
                raise key_error(key, f"the key {key!r} of {cls.noun} is empty; fill it or leave it out")
        cls._check_groups(mapping)
        return mapping

    @classmethod
    def _check_groups(cls, mapping: Mapping[str, Any]) -> None:
        for group in cls.one_of:
            present = [key for key in mapping if key in group]
            if len(present) == 1:
                continue
            if present:
                both = " and ".join(map(repr, present))
                raise key_error(present[1], f"{cls.noun} has {both}; only one of them can be meant")
            raise shape_error(f"{cls.noun} needs one of: {', '.join(group)}")

    def has_key(self, name: str) -> bool:
        """Return whether the file has that key."""
        return name in self.model_fields_set


_OWN_ERROR = "approvals"
"""Type of the errors whose text is complete, in contrast to those of pydantic."""


def shape_error(text: str) -> PydanticCustomError:
    """Return the error of a value that is invalid as a whole."""
    return PydanticCustomError(_OWN_ERROR, "{text}", {"text": text})


def key_error(key: str, text: str) -> PydanticCustomError:
    """Return the error of one key in a mapping."""
    return PydanticCustomError(_OWN_ERROR, "{text}", {"text": text, "key": key})


def describe_value(value: Any) -> str:
    """Return a value as errors name it."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {str(value)!r}"
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "a mapping"
    return "a list"


def shape_tag(value: Any) -> str:
    """Return the tag of a value's kind, which selects a branch of a union."""
    match value:
        case None:
            return "=null"
        case bool():
            return "=bool"
        case str():
            return "=text"
        case int() | float():
            return "=number"
        case Mapping():
            return "=mapping"
    return "=list"


def discriminate_by_shape(expected: str) -> Discriminator:
    """Return the discriminator of a union by `shape_tag`; *expected* names the valid kinds in errors."""
    return Discriminator(shape_tag, custom_error_type="shape", custom_error_message=f"expects {expected}")


def _refuse_ambiguous(value: Any) -> Any:
    match value:
        case AmbiguousScalar():
            word = str(value)
            raise shape_error(f"versions of YAML differ about {word}; write '{word}' for text, or a JSON value")
        case Mapping():
            for inner in value.values():
                _refuse_ambiguous(inner)
        case list():
            for inner in value:
                _refuse_ambiguous(inner)
    return value


Json = Annotated[Any, BeforeValidator(_refuse_ambiguous)]
"""Any JSON value; a word that versions of YAML read differently must be quoted."""

Name = Annotated[str, StringConstraints(min_length=1)]
"""Text that names something."""

Count = Annotated[int, Field(ge=1)]
"""A whole number from 1."""


def translate_errors(error: ValidationError) -> list[Diagnostic]:
    """Return a diagnostic for each error of pydantic."""
    return [_translate_error(detail) for detail in error.errors(include_url=False)]


def _translate_error(detail: ErrorDetails) -> Diagnostic:
    path = _clean_path(detail["loc"])
    facts = detail.get("ctx", {})
    if detail["type"] == _OWN_ERROR:
        return Diagnostic((*path, facts["key"]) if "key" in facts else path, facts["text"])
    if detail["type"] == "missing":
        return Diagnostic(path[:-1], f"{format_key_path(path[:-1]) or 'the scenario'} lacks the key {str(path[-1])!r}")
    return Diagnostic(path, f"{format_key_path(path) or 'the scenario'} {_describe_error(detail, facts)}")


def _clean_path(location: tuple[int | str, ...]) -> KeyPath:
    """Drop what pydantic adds to a location: tags of unions and the mark of an invalid mapping key."""
    return tuple(part for part in location if isinstance(part, int) or not part.startswith(("=", "[key]")))


def _describe_error(detail: ErrorDetails, facts: Mapping[str, Any]) -> str:
    value = detail["input"]
    match detail["type"]:
        case "literal_error":
            return _describe_literal_error(str(facts["expected"]), value)
        case "string_type":
            quotes = f"; write it in quotes: '{_to_yaml_scalar(value)}'" if _is_keyword_or_number(value) else ""
            return f"expects text, not {describe_value(value)}{quotes}"
        case "greater_than_equal":
            return f"must be at least {facts['ge']}, not {value}"
        case "too_short" if facts["min_length"] > 1:
            return f"needs {facts['min_length']} elements or more, not {facts['actual_length']}"
        case "string_too_short" | "too_short":
            return "must not be empty"
        case "string_pattern_mismatch":
            return f"expects OWNER/REPO#NUMBER or a URL, not {value!r}"
        case "shape":
            return f"{detail['msg']}, not {describe_value(value)}"
    expected = _EXPECTED_KINDS.get(detail["type"])
    return f"expects {expected}, not {describe_value(value)}" if expected else detail["msg"]


_EXPECTED_KINDS = {
    "bool_type": "true or false",
    "int_type": "a whole number",
    "float_type": "a number",
    "list_type": "a list",
    "dict_type": "a mapping",
    "none_required": "null",
}


def _describe_literal_error(expected: str, value: Any) -> str:
    words = re.findall(r"'([^']*)'", expected)
    hint = suggest_name(value, words) if isinstance(value, str) else ""
    # Without a near word `suggest_name` lists all of them, as *expected* does already.
    hint = hint if "did you mean" in hint else ""
    valid = expected.replace("True", "true").replace("'", "")
    return f"expects {valid}, not {describe_value(value)}{hint}"


def _is_keyword_or_number(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float))


def _to_yaml_scalar(value: Any) -> str:
    return json.dumps(value)
