"""JSON text, read strictly and written as .NET does: compact, relaxed escaping, numbers digit by digit."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Self

from pytest_approvals.errors import ContentError

MAX_DEPTH = 64
"""Maximum depth of Microsoft.Extensions.AI, the default of its serializer."""

_ESCAPED = re.compile('["\\\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class ExactNumber(float):
    """A number that keeps its digits, which Python would write differently: `1.0`, `1e5`, `-0`, a thousand digits."""

    __slots__ = ("digits",)

    digits: str

    def __new__(cls, digits: str) -> Self:
        """Keep the digits."""
        number = super().__new__(cls, digits)
        number.digits = digits
        return number


def read_json(text: str | bytes) -> Any:
    """Return the document.

    Raises:
        ContentError: Invalid UTF-8 or JSON, a repeated name in an object, or too deep nesting.
    """
    decoded = text if isinstance(text, str) else _decode(text)
    try:
        document = json.loads(
            # Python's parser refuses a byte order mark.
            decoded.removeprefix("\ufeff"),
            object_pairs_hook=_build_object,
            parse_int=_parse_integer,
            parse_float=ExactNumber,
            parse_constant=_reject_constant,
        )
    except json.JSONDecodeError as error:
        raise ContentError("", f"invalid JSON: line {error.lineno}, column {error.colno}: {error.msg}") from None
    except RecursionError:
        raise _depth_error("") from None
    _check_depth(document)
    return document


def write_json(value: Any) -> str:
    """Return the document in one line."""
    return "".join(_format_value(value))


def _decode(text: bytes) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ContentError("", f"invalid UTF-8 at byte {error.start}") from None


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        duplicate = next(name for name in names if names.count(name) > 1)
        raise ContentError("", f"duplicate name {duplicate!r} in an object")
    return document


def _parse_integer(digits: str) -> int | ExactNumber:
    # Python would lose the sign of `-0`, and limits the digits that it converts.
    return int(digits) if len(digits) < 20 and digits != "-0" else ExactNumber(digits)


def _reject_constant(word: str) -> Any:
    raise ContentError("", f"invalid JSON number {word}")


def _depth_error(where: str) -> ContentError:
    return ContentError(where, f"nested deeper than {MAX_DEPTH} levels, which Microsoft.Extensions.AI does not read")


def _check_depth(document: Any) -> None:
    """Check the depth without recursion."""
    waiting = [(document, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping | list):
            if depth >= MAX_DEPTH:
                raise _depth_error("")
            inner = value.values() if isinstance(value, Mapping) else value
            waiting.extend((part, depth + 1) for part in inner)


def _format_value(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield from _format_parts("{", "}", [(_format_text(str(name)) + ":", part) for name, part in value.items()])
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from _format_parts("[", "]", [("", part) for part in value])
    else:
        yield _format_scalar(value)


def _format_parts(opening: str, closing: str, parts: list[tuple[str, Any]]) -> Iterator[str]:
    yield opening
    for place, (label, part) in enumerate(parts):
        yield f",{label}" if place else label
        yield from _format_value(part)
    yield closing


def _format_scalar(value: Any) -> str:
    if isinstance(value, str):
        return _format_text(value)
    return value.digits if isinstance(value, ExactNumber) else json.dumps(value)


def _format_text(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda match: _SHORT.get(match[0]) or f"\\u{ord(match[0]):04X}", text) + '"'
