"""Positions of values in the text of a JSON document that was parsed before.

All positions that are wanted of one document are found in one pass over its text, which skips what leads to none of
them. So the time is that of parsing the document once more, however many there are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from pytest_approvals.conversations.histories.conversation import JsonPath

_SPACE = re.compile(r"[ \t\r\n]*")
_TOKEN = re.compile(r'["{}\[\],]')

# The scanners in C, which return a value and where it ends.
_scan_value: Callable[[str, int], tuple[Any, int]] = vars(json.JSONDecoder(parse_constant=str))["scan_once"]
_scan_string: Callable[[str, int], tuple[str, int]] = vars(json.decoder)["scanstring"]


class _WantedValue:
    """A value whose position is wanted, or that leads to one.

    Attributes:
        inner: What is wanted inside of it, by name or number.
        offset: Where it begins; None if the document has no such value.
    """

    __slots__ = ("inner", "offset")

    def __init__(self) -> None:
        self.inner: dict[str | int, _WantedValue] = {}
        self.offset: int | None = None


def find_offsets(text: str, start: int, paths: Sequence[JsonPath]) -> list[int]:
    """Return where the values at *paths* begin, in a document that begins at *start*.

    Of a path that leads to no value, it is where the deepest existing parent begins.
    """
    root = _WantedValue()
    for path in paths:
        wanted = root
        for step in path:
            wanted = wanted.inner.setdefault(step, _WantedValue())
    _locate(text, start, root)
    return [_deepest_offset(root, path, start) for path in paths]


def _deepest_offset(wanted: _WantedValue, path: JsonPath, start: int) -> int:
    offset = start
    for step in path:
        wanted = wanted.inner[step]
        if wanted.offset is None:
            break
        offset = wanted.offset
    return offset


def _locate(text: str, at: int, wanted: _WantedValue) -> int:
    """Set the offsets of what is wanted in the value at *at*; return where the value ends.

    The depth of the recursion is the length of the longest path.
    """
    wanted.offset = at
    if not wanted.inner or text[at] not in "{[":
        return _skip_value(text, at)
    at = _skip_space(text, at + 1)
    members = _locate_members if text[wanted.offset] == "{" else _locate_elements
    return at + 1 if text[at] in "}]" else members(text, at, wanted.inner)


def _locate_members(text: str, at: int, inner: dict[str | int, _WantedValue]) -> int:
    """Locate the values of an object whose first name is at *at*; return where the object ends."""
    while True:
        name, at = _scan_string(text, at + 1)
        at = _skip_space(text, _skip_space(text, at) + 1)
        found = inner.get(name)
        at = _skip_space(text, _locate(text, at, found) if found is not None else _skip_value(text, at))
        if text[at] == "}":
            return at + 1
        at = _skip_space(text, at + 1)


def _locate_elements(text: str, at: int, inner: dict[str | int, _WantedValue]) -> int:
    """Locate the elements of a list whose first one is at *at*; return where the list ends."""
    number = 0
    while True:
        found = inner.get(number)
        at = _skip_space(text, _locate(text, at, found) if found is not None else _skip_value(text, at))
        if text[at] == "]":
            return at + 1
        at = _skip_space(text, at + 1)
        number += 1


def _skip_space(text: str, at: int) -> int:
    # A call of the pattern takes longer than this comparison, and most texts have no space here.
    return at if text[at] > " " else _SPACE.match(text, at).end()  # type: ignore[union-attr]


def _skip_value(text: str, at: int) -> int:
    """Return where the value at *at* ends."""
    try:
        return _scan_value(text, at)[1]
    # It is called from deeper in the stack than the parser, or the parser was another one with another limit.
    except RecursionError:
        return _skip_container(text, at)


def _skip_container(text: str, at: int) -> int:
    depth = 0
    for offset, token, _ in _iter_tokens(text, at):
        depth += (token in "{[") - (token in "}]")
        if not depth:
            return offset + 1
    return len(text)


def _iter_tokens(text: str, at: int) -> Iterator[tuple[int, str, str]]:
    """Yield brackets, commas and strings with their offsets; a string is a quotation mark, and its value follows."""
    while (token := _TOKEN.search(text, at)) is not None:
        offset, value = token.start(), ""
        at = offset + 1
        if text[offset] == '"':
            value, at = _scan_string(text, at)
        yield offset, text[offset], value


def count_lines(text: str, start: int, offsets: Iterable[int]) -> dict[int, int]:
    """Return the number of line feeds between *start* and each of the offsets."""
    counts: dict[int, int] = {}
    at, count = start, 0
    for offset in sorted(set(offsets)):
        count += text.count("\n", at, offset)
        counts[offset] = count
        at = offset
    return counts


def find_duplicate_name(text: str, start: int) -> tuple[str, int] | None:
    """Return the first name that one object has twice, with its offset; None if there is none."""
    # The names of each open object; None for a list.
    stack: list[set[str] | None] = []
    expects_name = False
    for offset, token, value in _iter_tokens(text, start):
        if token in "{[":
            stack.append(set() if token == "{" else None)
            expects_name = token == "{"
        elif token == ",":
            expects_name = stack[-1] is not None
        elif token != '"':
            stack.pop()
            if not stack:
                break
        elif expects_name:
            expects_name = False
            names = stack[-1]
            assert names is not None
            if value in names:
                return value, offset
            names.add(value)
    return None
