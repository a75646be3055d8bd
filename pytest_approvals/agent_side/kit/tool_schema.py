"""Schemas of tools and arguments of calls: neutral parameters as annotations, signatures and models, and back.

A framework infers the schema of a tool from these, which costs a hundred times what a copy costs; so models are made
once for equal fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial
from inspect import Parameter as Argument
from inspect import Signature, getsourcefile, getsourcelines, unwrap
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from ..contract.types import Parameter

if TYPE_CHECKING:
    from pydantic import BaseModel
import json

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
    """Parameters as a cache key, equal if they say the same.

    Args:
        parameters: The parameters by name; they must not change afterwards.
    """

    parameters: Mapping[str, Parameter] = field(compare=False)
    _text: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_text", repr(dict(self.parameters)))


def to_annotation(declared: Parameter) -> Any:
    """Return the Python annotation of a parameter; `Any` if its type has none."""
    return _PYTHON_TYPES.get(declared.type, Any)


def to_model_field(declared: Parameter) -> tuple[Any, Any]:
    """Return a field for `pydantic.create_model`: its type, and its default or `...`."""
    return to_annotation(declared), ... if declared.required else declared.default


def to_signature_parameters(parameters: Mapping[str, Parameter]) -> list[Argument]:
    """Return the keyword-only parameters of a function."""
    return [
        Argument(
            name,
            Argument.KEYWORD_ONLY,
            annotation=to_annotation(parameter),
            default=Argument.empty if parameter.required else parameter.default,
        )
        for name, parameter in parameters.items()
    ]


def set_signature(body: Body, *arguments: Argument) -> Body:
    """Give *body* the signature that a user would have written, and return it."""
    function: Any = body
    function.__signature__ = Signature(list(arguments))
    function.__annotations__ = {argument.name: argument.annotation for argument in arguments}
    return body


def build_fields_model(name: str, parameters: Mapping[str, Parameter], **further: Any) -> type[BaseModel]:
    """Return a pydantic model with a field for each parameter, the same one for equal fields.

    Args:
        name: The name of the model.
        parameters: The fields by name.
        **further: Types of more required fields, by name.
    """
    return _build_fields_model(name, HashableParameters(parameters), tuple(further.items()))


@lru_cache(maxsize=1024)
def _build_fields_model(name: str, fields: HashableParameters, further: tuple[tuple[str, Any], ...]) -> type[BaseModel]:
    # The folder must import with the standard library alone; every framework that takes a model brings pydantic.
    from pydantic import create_model

    model_fields: dict[str, Any] = {key: (kind, ...) for key, kind in further}
    model_fields |= {key: to_model_field(parameter) for key, parameter in fields.parameters.items()}
    model: type[BaseModel] = create_model(name, **model_fields)
    return model


def read_parameters(schema: Mapping[str, Any] | None) -> dict[str, Parameter]:
    """Return the parameters that the JSON Schema of a tool's arguments describes.

    >>> read_parameters({"properties": {"amount": {"type": "integer"}}, "required": ["amount"]})
    {'amount': Parameter(type='integer', required=True, default=None, constraints=None)}
    >>> read_parameters({"properties": {"to": {"type": "string", "enum": ["bank", "shop"]}}})["to"].constraints
    {'enum': ['bank', 'shop']}
    """
    described = schema or {}
    required = described.get("required", ())
    properties = {name: _resolve(part, described) for name, part in described.get("properties", {}).items()}
    return {
        name: Parameter(
            type=read_type(part),
            required=name in required,
            default=part.get("default"),
            constraints=_read_constraints(part),
        )
        for name, part in properties.items()
    }


_NO_CONSTRAINTS = frozenset({
    "type", "title", "description", "default", "example", "examples", "deprecated", "nullable", "readOnly", "writeOnly",
})  # fmt: skip
"""Keywords of JSON Schema that say nothing about values, and `type`, which stands by itself."""


def _read_constraints(schema: Mapping[str, Any]) -> dict[str, Any] | None:
    found = {name: value for name, value in schema.items() if name not in _NO_CONSTRAINTS}
    for name in ("items", "additionalProperties"):
        if found.get(name) in (True, {}):
            del found[name]
    if found.keys() == {"anyOf"} and not any(_read_constraints(choice) for choice in found["anyOf"]):
        return None
    return found or None


def _resolve(schema: Any, root: Mapping[str, Any], known: tuple[str, ...] = ()) -> Any:
    """Return a schema with the definitions of *root* in place of references; one to itself stays a reference."""
    if isinstance(schema, list):
        return [_resolve(part, root, known) for part in schema]
    if not isinstance(schema, Mapping):
        return schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference not in known:
        place, _, name = reference.rpartition("/")
        definitions = root.get(place.removeprefix("#/"))
        if isinstance(definitions, Mapping) and isinstance(definitions.get(name), Mapping):
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            return _resolve({**definitions[name], **beside}, root, (*known, reference))
    return {key: _resolve(value, root, known) for key, value in schema.items()}


_TYPE_NAMES: Mapping[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def read_type(schema: Mapping[str, Any]) -> str:
    """Return the type that a schema names first besides `null`, in lower case; `object` if it names none.

    >>> read_type({"type": "STRING"}), read_type({"anyOf": [{"type": "null"}, {"type": "integer"}]}), read_type({})
    ('string', 'integer', 'object')
    >>> read_type({"const": "bank"}), read_type({"enum": [1, 2]}), read_type({"enum": [1, "all"]})
    ('string', 'integer', 'object')
    """
    named = schema.get("type")
    if isinstance(named, str):
        return named.lower()
    kinds = [*(named or ()), *(choice.get("type") for choice in schema.get("anyOf", ()))]
    values = [schema["const"]] if "const" in schema else schema.get("enum", ())
    listed = {_TYPE_NAMES.get(type(value)) for value in values}
    if len(listed) == 1:
        kinds += listed
    return next((str(kind).lower() for kind in kinds if kind not in (None, "null")), "object")


def parse_arguments(arguments: Any) -> Any:
    """Return arguments parsed if they are the text of a JSON object, and unchanged otherwise.

    >>> parse_arguments('{"amount": 5}'), parse_arguments('[5]'), parse_arguments(None)
    ({'amount': 5}, '[5]', None)
    """
    try:
        value = json.loads(arguments)
    except (TypeError, ValueError, RecursionError):
        return arguments
    return value if isinstance(value, dict) else arguments


def is_object_text(text: Any) -> bool:
    """Return whether *text* is the text of a JSON object.

    >>> is_object_text('{"amount": 5}'), is_object_text('[5]')
    (True, False)
    """
    return isinstance(parse_arguments(text), dict)


def write_arguments(arguments: Mapping[str, Any] | str, *, ensure_ascii: bool = True) -> str:
    """Return arguments as the model writes them: an object as JSON, a raw text as it is."""
    return arguments if isinstance(arguments, str) else json.dumps(dict(arguments), ensure_ascii=ensure_ascii)


# --- annotations ------------------------------------------------------------------------------------------------------


def read_effects(annotations: Any) -> bool | None:
    """Return whether annotations of a tool say that it changes something; None if they do not say it.

    Args:
        annotations: Those of a tool of an MCP server, as a model or a mapping; or None. Source: the schema of the
            Model Context Protocol of 2025-06-18, `ToolAnnotations`.
    """
    # Versions of the protocol's package differ in the names of the fields, and agree in the names that are sent.
    dump = getattr(annotations, "model_dump", None)
    named = dump(by_alias=True) if callable(dump) else annotations
    if not isinstance(named, Mapping):
        return None
    if isinstance(named.get("readOnlyHint"), bool):
        return not named["readOnlyHint"]
    return True if named.get("destructiveHint") is True else None


# --- places -----------------------------------------------------------------------------------------------------------


def show_place(code: Any) -> str:
    """Return where a function or a class of the user's own code begins, as `shop/desk.py:12`.

    The path is relative to the current folder if it is below it. The result is empty for what has no source file, and
    for what an installed package defines.
    """
    while isinstance(code, partial):
        code = code.func
    try:
        code = unwrap(code)
        file = getsourcefile(code)
        line = code.__code__.co_firstlineno if hasattr(code, "__code__") else getsourcelines(code)[1]
    except (TypeError, ValueError, OSError):
        return ""
    path = Path(file or "")
    # What `exec` defines has a file such as `<string>`.
    if not path.is_file() or {"site-packages", "dist-packages"} & set(path.parts):
        return ""
    folder = Path.cwd()
    return f"{(path.relative_to(folder) if path.is_relative_to(folder) else path).as_posix()}:{line}"


def describe_arguments(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a body was entered with as the model wrote them.

    Frameworks build models of pydantic from them, which add the defaults of their fields.
    """
    return {name: _describe_value(value) for name, value in arguments.items()}


def _describe_value(value: Any) -> Any:
    if hasattr(value, "model_fields_set") and hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True, by_alias=True, fallback=repr)
    if isinstance(value, Mapping):
        return {str(key): _describe_value(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_describe_value(one) for one in value]
    return value
