"""What all border models of a scenario file share: strictness, and errors that name the valid words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, model_validator
from pydantic_core import PydanticCustomError

from pytest_approvals.errors import nearest
from pytest_approvals.scenario.nodes import Ambiguous


class FilePart(BaseModel):
    """
    A mapping in a scenario file.

    Attributes:
        what: What such a mapping is called in errors.
        one_of: Groups of keys of which exactly one must be given.
        nullable: The keys whose value may be null; every other key is left out instead.
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)

    what: ClassVar[str] = "a scenario"
    one_of: ClassVar[tuple[tuple[str, ...], ...]] = ()
    nullable: ClassVar[tuple[str, ...]] = ()

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise wrong_shape(f"{cls.what} is a mapping, not {described(given)}")
        valid = [field.alias or name for name, field in cls.model_fields.items()]
        for key, value in given.items():
            if key not in valid:
                raise wrong_key(key, f"{cls.what} has no key {key!r}{nearest(key, valid)}")
            if value is None and key not in cls.nullable:
                raise wrong_key(key, f"the key {key!r} of {cls.what} is empty; fill it or leave it out")
        cls._check_groups(given)
        return given

    @classmethod
    def _check_groups(cls, given: Mapping[str, Any]) -> None:
        for group in cls.one_of:
            found = [key for key in given if key in group]
            if len(found) == 1:
                continue
            if found:
                both = " and ".join(map(repr, found))
                raise wrong_key(found[1], f"{cls.what} has {both}; only one of them can be meant")
            raise wrong_shape(f"{cls.what} needs one of: {', '.join(group)}")

    def given(self, name: str) -> bool:
        """Says whether the file has that key."""
        return name in self.model_fields_set


def wrong_shape(text: str) -> PydanticCustomError:
    """Makes the error of a value that is wrong as a whole."""
    return PydanticCustomError("said", "{text}", {"text": text})


def wrong_key(key: str, text: str) -> PydanticCustomError:
    """Makes the error of one key in a mapping."""
    return PydanticCustomError("said", "{text}", {"text": text, "key": key})


def described(value: Any) -> str:
    """Gives a value as an error names it."""
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


def shape(value: Any) -> str:
    """Names the kind of a value; the tag of a branch where a key may hold different things."""
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


def by_shape(what: str) -> Discriminator:
    """Tells the branches of a union apart by `shape`; *what* says in an error what would be right."""
    return Discriminator(shape, custom_error_type="shape", custom_error_message=f"expects {what}")


def _refuse_ambiguous(value: Any) -> Any:
    match value:
        case Ambiguous():
            word = str(value)
            raise wrong_shape(f"versions of YAML differ about {word}; write '{word}' for text, or a JSON value")
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
