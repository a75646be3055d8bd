"""
How each type is written as JSON: one codec a type, made from its annotations.

A field that holds its default is left out; a field that is unknown, missing or of another type is a mistake, and the
error says where. The same codecs give the JSON Schema, so that text and code cannot drift apart.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Any, Literal, Protocol, Union, get_args, get_origin, get_type_hints

from .neutral import Attachment, Request
from .plain import WireError, shown, within

AnyWriter = Callable[[Any], Any]
"""What is done with values that may be anything: `exact` refuses what JSON would change, `plain` marks it."""


@dataclass(frozen=True, slots=True)
class Handle:
    """Stands for a framework's own object outside its process: the process' number and the object's number there."""

    process: int
    number: int


class Codec(Protocol):
    """Writes and reads one type, and says what its JSON looks like."""

    def write(self, value: Any, anything: AnyWriter) -> Any:
        """Gives *value* as JSON."""

    def read(self, written: Any) -> Any:
        """Gives the value that was written."""

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        """Gives the JSON Schema; records put theirs into *named* and refer to it."""


class _Anything:
    def write(self, value: Any, anything: AnyWriter) -> Any:
        return anything(value)

    def read(self, written: Any) -> Any:
        return written

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class _Scalar:
    kind: type
    name: str

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self.read(value)

    def read(self, written: Any) -> Any:
        if isinstance(written, self.kind) and isinstance(written, bool) is (self.kind is bool):
            return written
        if self.kind is float and type(written) is int:
            return written
        raise _expected(self.name, written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": self.name}


@dataclass(frozen=True, slots=True)
class _Choice:
    words: tuple[str, ...]

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self.read(value)

    def read(self, written: Any) -> Any:
        if isinstance(written, str) and written in self.words:
            return written
        raise _expected(f"one of {', '.join(self.words)}", written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"enum": list(self.words)}


@dataclass(frozen=True, slots=True)
class _Either:
    options: tuple[Codec, ...]

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self._first(value, lambda option: option.write(value, anything))

    def read(self, written: Any) -> Any:
        return self._first(written, lambda option: option.read(written))

    def _first(self, value: Any, attempt: Callable[[Codec], Any]) -> Any:
        mistakes = []
        for option in self.options:
            try:
                return attempt(option)
            except WireError as mistake:
                mistakes.append(mistake)
        raise max(mistakes, key=lambda mistake: (len(mistake.path), not mistake.what.startswith("expected")))

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"anyOf": [option.schema(named) for option in self.options]}


class _Nothing:
    def write(self, value: Any, anything: AnyWriter) -> Any:
        return self.read(value)

    def read(self, written: Any) -> Any:
        if written is None:
            return None
        raise _expected("null", written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": "null"}


@dataclass(frozen=True, slots=True)
class _Sequence:
    """A tuple, or with *unordered* a set, of which the order is made up."""

    part: Codec
    unordered: bool = False

    def write(self, value: Any, anything: AnyWriter) -> Any:
        if not isinstance(value, frozenset if self.unordered else tuple):
            raise _expected("a frozenset" if self.unordered else "a tuple", value)
        parts = sorted(value) if self.unordered else value
        return [within(f"[{n}]", self.part.write, part, anything) for n, part in enumerate(parts)]

    def read(self, written: Any) -> Any:
        if not isinstance(written, list):
            raise _expected("array", written)
        parts = (within(f"[{n}]", self.part.read, part) for n, part in enumerate(written))
        return frozenset(parts) if self.unordered else tuple(parts)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": "array", "items": self.part.schema(named)}


@dataclass(frozen=True, slots=True)
class _Object:
    part: Codec

    def write(self, value: Any, anything: AnyWriter) -> Any:
        if not isinstance(value, Mapping):
            raise _expected("a mapping", value)
        if isinstance(self.part, _Anything):
            return anything(value)
        return {name: within(name, self.part.write, part, anything) for name, part in value.items()}

    def read(self, written: Any) -> Any:
        if not isinstance(written, dict):
            raise _expected("object", written)
        return {name: within(name, self.part.read, part) for name, part in written.items()}

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "additionalProperties": self.part.schema(named)}


class _HandleCodec:
    """An object of the framework stays where it is: only its handle crosses."""

    def write(self, value: Any, anything: AnyWriter) -> Any:
        return [value.process, value.number] if isinstance(value, Handle) else None

    def read(self, written: Any) -> Any:
        if written is None:
            return None
        if isinstance(written, list) and len(written) == 2 and all(type(part) is int for part in written):
            return Handle(*written)
        raise _expected("null or [process, number]", written)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        pair = {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2}
        return {"anyOf": [pair, {"type": "null"}]}


class _Record:
    """A frozen dataclass, as an object without the fields that hold their defaults."""

    def __init__(self, kind: type[Any]) -> None:
        hints = get_type_hints(kind)
        self.kind = kind
        self._parts = {
            part.name: (_SPECIAL.get((kind, part.name)) or codec_of(hints[part.name]), _default(part))
            for part in fields(kind)
        }
        self._required = [name for name, (_, default) in self._parts.items() if default is MISSING]

    def write(self, value: Any, anything: AnyWriter) -> Any:
        if not isinstance(value, self.kind):
            raise _expected(f"a {self.kind.__name__}", value)
        written = {}
        for name, (codec, default) in self._parts.items():
            held = getattr(value, name)
            if held is default or (type(held) is type(default) and held == default):
                continue
            shape = within(name, codec.write, held, anything)
            if shape is not None or default is not None:
                written[name] = shape
        return written

    def read(self, written: Any) -> Any:
        if not isinstance(written, dict):
            raise _expected(f"object ({self.kind.__name__})", written)
        for name in self._required:
            if name not in written:
                raise WireError(f"{name!r} is missing in {self.kind.__name__}")
        given = {}
        for name, part in written.items():
            if name not in self._parts:
                raise WireError(f"{self.kind.__name__} has no field {name!r}")
            given[name] = within(name, self._parts[name][0].read, part)
        return self.kind(**given)

    def schema(self, named: dict[str, Any]) -> dict[str, Any]:
        name = self.kind.__name__
        if name not in named:
            shape: dict[str, Any] = {"type": "object", "additionalProperties": False}
            named[name] = shape
            shape["properties"] = {part: codec.schema(named) for part, (codec, _) in self._parts.items()}
            shape["required"] = self._required
        return {"$ref": f"#/$defs/{name}"}


def codec_of(kind: Any) -> Codec:
    """
    Gives the codec of a type: a scalar, `Any`, a literal, a union, a tuple, frozenset or mapping, or a dataclass.

    Errors:
        TypeError: The type is none of these.
    """
    if kind not in _CODECS:
        _CODECS[kind] = _made(kind)
    return _CODECS[kind]


def _made(kind: Any) -> Codec:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Literal:
        return _Choice(parts)
    if origin in (Union, types.UnionType):
        return _Either(tuple(codec_of(part) for part in parts))
    if origin is tuple:
        return _Sequence(codec_of(parts[0]))
    if origin is frozenset:
        return _Sequence(codec_of(parts[0]), unordered=True)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Object(codec_of(parts[1]))
    if is_dataclass(kind) and isinstance(kind, type):
        return _Record(kind)
    raise TypeError(f"{kind!r} cannot cross a process boundary")


_CODECS: dict[Any, Codec] = {
    Any: _Anything(),
    None: _Nothing(),
    types.NoneType: _Nothing(),
    str: _Scalar(str, "string"),
    int: _Scalar(int, "integer"),
    float: _Scalar(float, "number"),
    bool: _Scalar(bool, "boolean"),
}

_SPECIAL: dict[tuple[type, str], Codec] = {
    (Request, "handle"): _HandleCodec(),
    (Attachment, "subject"): _Scalar(str, "string"),
}


def _default(part: Any) -> Any:
    return part.default_factory() if part.default_factory is not MISSING else part.default


def _expected(what: str, value: Any) -> WireError:
    return WireError(f"expected {what}, got {shown(value)}")
