"""Serialization of neutral types and of plain values as JSON: exact and strict.

What is written is read back as an equal value, or writing it fails. Each type has one codec, made from its annotations:
a field that holds its default is left out, a field that is unknown, missing or of another type is an error that says
where. The same codecs give the JSON Schema, so that text and code cannot drift apart.

Agents and tools may hand over any value: there, what JSON cannot hold becomes a readable placeholder, so that recording
never fails. What the harness says must arrive unchanged: there, such a value is refused.
"""

from __future__ import annotations

import re
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Literal, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from ..contract.types import Attachment, Request

MAX_DEPTH = 60
"""How deep a value may be nested before the rest becomes a placeholder."""

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class SerializationError(ValueError):
    """A value does not fit its place in a message: *what* is wrong, and the *path* to it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what
        self.path: list[str] = []

    def within(self, step: str) -> SerializationError:
        """Return this error as seen from one level further out."""
        self.path.insert(0, step)
        return self

    def __str__(self) -> str:
        where = "".join(step if step.startswith("[") else f".{step}" for step in self.path).lstrip(".")
        return f"{where}: {self.what}" if where else self.what


def to_json_safe(value: Any) -> Any:
    """Return *value* as JSON: tuples and sets become lists, keys strings, and what JSON cannot hold a marker.

    >>> to_json_safe({"at": (1, 2), 3: {4j}})
    {'at': [1, 2], '3': ['<not JSON: 4j>']}
    """
    return _to_json_safe(value, MAX_DEPTH)


def placeholder(value: object) -> str:
    """Return a marker for a value that JSON cannot hold: its repr, without memory addresses.

    >>> placeholder(b"raw")
    "<not JSON: b'raw'>"
    """
    try:
        shown = _ADDRESS.sub("", repr(value))
    except Exception:
        shown = f"a {type(value).__qualname__} without a repr"
    return f"<not JSON: {shown}>"


def validate_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """Return *value* if JSON preserves it unchanged.

    Raises:
        SerializationError: JSON would change it.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    # Infinities and NaN are the only floats of which this difference is not 0.
    if type(value) is float and value - value == 0:
        return value
    if depth and type(value) is list:
        for position, part in enumerate(value):
            locate_errors(f"[{position}]", validate_json, part, depth - 1)
        return value
    if depth and isinstance(value, Mapping):
        for key, part in value.items():
            if type(key) is not str:
                raise SerializationError(f"the key {key!r} is not a string")
            locate_errors(key, validate_json, part, depth - 1)
        return value if type(value) is dict else dict(value)
    raise SerializationError(f"{short_repr(value)} is not a JSON value" if depth else f"nested deeper than {MAX_DEPTH}")


def locate_errors(step: str, action: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of *action*; put *step* in front of the path of an error in it."""
    try:
        return action(*arguments)
    except SerializationError as error:
        raise error.within(step) from None


def short_repr(value: Any) -> str:
    """Return the shortened repr of *value* and its type, for an error message."""
    try:
        text = repr(value)
    except Exception:
        text = "something without a repr"
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


def _to_json_safe(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if value - value == 0 else placeholder(float(value))
    if depth == 0:
        return f"<not JSON: nested deeper than {MAX_DEPTH}>"
    if isinstance(value, Mapping):
        return {_json_key(key): _to_json_safe(held, depth - 1) for key, held in value.items()}
    if isinstance(value, (list, tuple)):
        return [_to_json_safe(held, depth - 1) for held in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_to_json_safe(held, depth - 1) for held in value), key=str)
    return placeholder(value)


def _json_key(key: object) -> str:
    if isinstance(key, str):
        return str(key)
    return str(key) if isinstance(key, (int, float)) else placeholder(key)


AnyWriter = Callable[[Any], Any]
"""Writer of values that may be anything: `validate_json` refuses what JSON would change, `to_json_safe` replaces it."""


@dataclass(frozen=True, slots=True)
class Handle:
    """Reference to a framework's own object in another process: the numbers of the process and of the object."""

    process: int
    number: int


class Codec(Protocol):
    """Writer and reader of one type, with the schema of its JSON."""

    def write(self, value: Any, anything: AnyWriter) -> Any:
        """Return *value* as JSON."""

    def read(self, written: Any) -> Any:
        """Return the value that was written."""

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON Schema; records put theirs into *named* and refer to it."""


class _AnyCodec:
    def write(self, value: Any, anything: AnyWriter) -> Any:
        return anything(value)

    def read(self, written: Any) -> Any:
        return written

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class _ScalarCodec:
    kind: type
    name: str

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self.read(value)

    def read(self, written: Any) -> Any:
        if isinstance(written, self.kind) and isinstance(written, bool) is (self.kind is bool):
            return written
        # JSON of other languages has no decimal point in whole numbers.
        if self.kind is float and type(written) is int:
            return written
        raise _type_error(self.name, written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": self.name}


@dataclass(frozen=True, slots=True)
class _LiteralCodec:
    words: tuple[str, ...]

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self.read(value)

    def read(self, written: Any) -> Any:
        if isinstance(written, str) and written in self.words:
            return written
        raise _type_error(f"one of {', '.join(self.words)}", written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class _UnionCodec:
    options: tuple[Codec, ...]

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self._first(value, lambda option: option.write(value, anything))

    def read(self, written: Any) -> Any:
        return self._first(written, lambda option: option.read(written))

    def _first(self, value: Any, attempt: Callable[[Codec], Any]) -> Any:
        errors = []
        for option in self.options:
            try:
                return attempt(option)
            except SerializationError as error:
                errors.append(error)
        # The option that got furthest is the one that was meant.
        raise max(errors, key=lambda error: (len(error.path), not error.what.startswith("expected")))

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [option.schema(named) for option in self.options]}


class _NullCodec:
    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self.read(value)

    def read(self, written: Any) -> Any:
        if written is None:
            return None
        raise _type_error("null", written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": "null"}


@dataclass(frozen=True, slots=True)
class _SequenceCodec:
    """A tuple or, with *unordered*, a set, which is written in sorted order."""

    part: Codec
    unordered: bool = False

    def write(self, value: Any, anything: AnyWriter) -> Any:
        if not isinstance(value, frozenset if self.unordered else tuple):
            raise _type_error("a frozenset" if self.unordered else "a tuple", value)
        parts = sorted(value) if self.unordered else value
        return [locate_errors(f"[{n}]", self.part.write, part, anything) for n, part in enumerate(parts)]

    def read(self, written: Any) -> Any:
        if not isinstance(written, list):
            raise _type_error("array", written)
        parts = (locate_errors(f"[{n}]", self.part.read, part) for n, part in enumerate(written))
        return frozenset(parts) if self.unordered else tuple(parts)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": "array", "items": self.part.schema(named)}


@dataclass(frozen=True, slots=True)
class _MappingCodec:
    part: Codec

    def write(self, value: Any, anything: AnyWriter) -> Any:
        if not isinstance(value, Mapping):
            raise _type_error("a mapping", value)
        if isinstance(self.part, _AnyCodec):
            return anything(value)
        return {name: locate_errors(name, self.part.write, part, anything) for name, part in value.items()}

    def read(self, written: Any) -> Any:
        if not isinstance(written, dict):
            raise _type_error("object", written)
        return {name: locate_errors(name, self.part.read, part) for name, part in written.items()}

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.part.schema(named)}


class _HandleCodec:
    """A framework's object, which stays in its process: only its handle crosses."""

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return [value.process, value.number] if isinstance(value, Handle) else None

    def read(self, written: Any) -> Any:
        if written is None:
            return None
        if isinstance(written, list) and len(written) == 2 and all(type(part) is int for part in written):
            return Handle(*written)
        raise _type_error("null or [process, number]", written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        pair = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
        return {"anyOf": [pair, {"type": "null"}]}


class _RecordCodec:
    """A frozen dataclass, as an object without the fields that hold their defaults."""

    def __init__(self, kind: type[Any]) -> None:
        hints = get_type_hints(kind)
        self.kind = kind
        self._parts = {
            part.name: (_FIELD_CODECS.get((kind, part.name)) or get_codec(hints[part.name]), _field_default(part))
            for part in fields(kind)
        }
        self._required = [name for name, (_, default) in self._parts.items() if default is MISSING]

    def write(self, value: Any, anything: AnyWriter) -> Any:
        if not isinstance(value, self.kind):
            raise _type_error(f"a {self.kind.__name__}", value)
        written = {}
        for name, (codec, default) in self._parts.items():
            held = getattr(value, name)
            # The types too: 0, 0.0 and False are equal, but not the same JSON.
            if held is default or (type(held) is type(default) and held == default):
                continue
            shape = locate_errors(name, codec.write, held, anything)
            if shape is not None or default is not None:
                written[name] = shape
        return written

    def read(self, written: Any) -> Any:
        if not isinstance(written, dict):
            raise _type_error(f"object ({self.kind.__name__})", written)
        for name in self._required:
            if name not in written:
                raise SerializationError(f"{name!r} is missing in {self.kind.__name__}")
        values = {}
        for name, part in written.items():
            if name not in self._parts:
                raise SerializationError(f"{self.kind.__name__} has no field {name!r}")
            values[name] = locate_errors(name, self._parts[name][0].read, part)
        return self.kind(**values)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        name = self.kind.__name__
        if name not in named:
            shape: dict[str, Any] = {"type": "object", "additionalProperties": False}
            # Before the fields: a record may contain itself.
            named[name] = shape
            shape["properties"] = {part: codec.schema(named) for part, (codec, _) in self._parts.items()}
            shape["required"] = self._required
        return {"$ref": f"#/$defs/{name}"}


def get_codec(kind: Any) -> Codec:
    """Return the codec of a type: a scalar, `Any`, a literal, a union, a tuple, frozenset or mapping, or a dataclass.

    Raises:
        TypeError: It is none of these.
    """
    if kind not in _CODECS:
        _CODECS[kind] = _build_codec(kind)
    return _CODECS[kind]


def _build_codec(kind: Any) -> Codec:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _LiteralCodec(parts)
    if origin in (Union, types.UnionType):
        return _UnionCodec(tuple(get_codec(part) for part in parts))
    if origin is tuple:
        return _SequenceCodec(get_codec(parts[0]))
    if origin is frozenset:
        return _SequenceCodec(get_codec(parts[0]), unordered=True)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _MappingCodec(get_codec(parts[1]))
    if is_dataclass(kind) and isinstance(kind, type):
        return _RecordCodec(kind)
    raise TypeError(f"{kind!r} cannot cross a process boundary")


_CODECS: dict[Any, Codec] = {
    Any: _AnyCodec(),
    None: _NullCodec(),
    types.NoneType: _NullCodec(),
    str: _ScalarCodec(str, "string"),
    int: _ScalarCodec(int, "integer"),
    float: _ScalarCodec(float, "number"),
    bool: _ScalarCodec(bool, "boolean"),
}

_FIELD_CODECS: dict[tuple[type, str], Codec] = {
    (Request, "handle"): _HandleCodec(),
    (Attachment, "subject"): _ScalarCodec(str, "string"),
}


def _field_default(part: Any) -> Any:
    return part.default_factory() if part.default_factory is not MISSING else part.default


def _type_error(what: str, value: Any) -> SerializationError:
    return SerializationError(f"expected {what}, got {short_repr(value)}")


T = TypeVar("T")


def to_json(value: Any, kind: Any = None, *, anything: AnyWriter | None = None) -> Any:
    """Return *value* as JSON.

    Args:
        value: A value of a neutral type.
        kind: The type to write it as; by default its own.
        anything: How values are written that may be anything; by default `validate_json`.

    Raises:
        SerializationError: A part of it does not have its declared type.
    """
    return get_codec(kind or type(value)).write(value, anything or validate_json)


def from_json(kind: type[T], written: Any) -> T:
    """Return the value that was written.

    Raises:
        SerializationError: *written* is not a value of *kind*.
    """
    value: T = get_codec(kind).read(written)
    return value
