"""
What a scenario declares of parameters and fields, as a person writes it in Python: annotations, signatures, models.

A framework infers the schema of a tool from these, which costs a hundred times what a copy costs; so models are made
once for equal fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Any, TypeVar

from ..contract.types import Parameter

if TYPE_CHECKING:
    from pydantic import BaseModel

Body = TypeVar("Body", bound=Callable[..., Any])

_PYTHON_TYPES: Mapping[str, Any] = {
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "array": list[Any],
    "object": dict[str, Any],
    "null": None,
}


@dataclass(frozen=True, slots=True)
class HashableParameters:
    """
    Parameters by name, which are equal where they say the same.

    Arguments:
        parameters: They stay as they are.
    """

    parameters: Mapping[str, Parameter] = field(compare=False)
    _said: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_said", repr(dict(self.parameters)))


def to_annotation(declared: Parameter) -> Any:
    """Gives the type that a person annotates the parameter with; `Any` for one that has no type of its own."""
    return _PYTHON_TYPES.get(declared.type, Any)


def to_model_field(declared: Parameter) -> tuple[Any, Any]:
    """Gives a field for `pydantic.create_model`: its type, and its default or `...`."""
    return to_annotation(declared), ... if declared.required else declared.default


def to_signature_parameters(parameters: Mapping[str, Parameter]) -> list[Argument]:
    """Gives the parameters of a function that is called with keywords."""
    return [
        Argument(
            name,
            Argument.KEYWORD_ONLY,
            annotation=to_annotation(one),
            default=Argument.empty if one.required else one.default,
        )
        for name, one in parameters.items()
    ]


def set_signature(body: Body, *given: Argument) -> Body:
    """Gives *body* the signature that a person would have written."""
    described: Any = body
    described.__signature__ = Signature(list(given))
    described.__annotations__ = {one.name: one.annotation for one in given}
    return body


def build_fields_model(name: str, parameters: Mapping[str, Parameter], **further: Any) -> type[BaseModel]:
    """
    Gives a pydantic model with a field for each parameter, the same one for equal fields.

    Arguments:
        further: Types of more fields that are needed, by their names.
    """
    return _build_fields_model(name, HashableParameters(parameters), tuple(further.items()))


@lru_cache(maxsize=1024)
def _build_fields_model(name: str, fields: HashableParameters, further: tuple[tuple[str, Any], ...]) -> type[BaseModel]:
    # Every framework that takes a model brings pydantic; what stands beside an agent is the standard library's.
    from pydantic import create_model

    own: dict[str, Any] = {key: (kind, ...) for key, kind in further}
    own |= {key: to_model_field(one) for key, one in fields.parameters.items()}
    made: type[BaseModel] = create_model(name, **own)
    return made
