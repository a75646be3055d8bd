"""
JSON text, read strictly and written as .NET writes it: compact, relaxed escaping, numbers digit by digit.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from pytest_approvals.errors import ContentError

DEEPEST = 64
"""How deep Microsoft.Extensions.AI reads, by the default of its serializer."""

_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Number(float):
    """A number whose digits would not come out of Python as they went in: `1.0`, `1e5`, `-0`, a thousand digits."""

    __slots__ = ("digits",)

    digits: str

    def __new__(cls, digits: str) -> Self:
        number = super().__new__(cls, digits)
        number.digits = digits
        return number


def read_json(text: str | bytes) -> Any:
    """
    Gives the document.

    Errors:
        ContentError: It is no UTF-8, no JSON, says a name twice in one object, or is nested too deep.
    """
    decoded = text if isinstance(text, str) else _decoded(text)
    try:
        document = json.loads(
            decoded.removeprefix("\ufeff"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=Number,
            parse_constant=_no_number,
        )
    except json.JSONDecodeError as error:
        raise ContentError("", f"no JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _too_deep("") from None
    _check_depth(document)
    return document


def write_json(value: Any) -> str:
    """Gives the document as one line."""
    return "".join(_pieces(value))


def _decoded(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContentError("", f"byte {error.start} is no UTF-8; store the document as UTF-8") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ContentError("", f"one object says {twice!r} twice; only one of them can be meant")
    return found


def _integer(digits: str) -> int | Number:
    return int(digits) if len(digits) < 20 and digits != "-0" else Number(digits)


def _no_number(word: str) -> Any:
    raise ContentError("", f"{word} is no JSON number; write it as text, or leave it out")


def _too_deep(where: str) -> ContentError:
    return ContentError(where, f"nested deeper than {DEEPEST} levels, which Microsoft.Extensions.AI does not read")


def _check_depth(document: Any) -> None:
    """Goes through the document without recursion."""
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping | list):
            if depth >= DEEPEST:
                raise _too_deep("")
            inner = value.values() if isinstance(value, Mapping) else value
            waiting.extend((part, depth + 1) for part in inner)


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _inside("{", "}", [(_text(str(name)) + ":", part) for name, part in value.items()])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from _inside("[", "]", [("", part) for part in value])
    else:
        yield _scalar(value)


def _inside(opening: str, closing: str, parts: list[tuple[str, Any]]) -> Iterator[str]:
    yield opening
    for place, (label, part) in enumerate(parts):
        yield f",{label}" if place else label
        yield from _pieces(part)
    yield closing


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return _text(value)
    return value.digits if isinstance(value, Number) else json.dumps(value)


def _text(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda found: _SHORT.get(found[0]) or f"\\u{ord(found[0]):04X}", text) + '"'
