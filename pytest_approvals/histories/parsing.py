"""
JSON text, parsed strictly, and where in it something stands.

A name that one object says twice is refused, because programs disagree about which of the two is meant. A document on
a line of its own, which most are that come in great numbers, is parsed faster than the standard library does it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from pytest_approvals.errors import HistoryError

from .conversation import Path

TOO_DEEP = "nested too deep to be a conversation"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_TRUNCATED = 16
"""How near to the end of a piece of text a mistake may only mean that the text goes on."""


class Incomplete(Exception):
    """The text may end before the document does: parsing stopped *offset* characters into it, near the end."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset

    def at_the_end_of(self, text: str) -> Mistake:
        """Gives the mistake that it is where no more text comes."""
        said = f"{self.what[0].lower()}{self.what[1:]}"
        end = len(text.rstrip())
        if self.offset >= end or said.startswith("unterminated"):
            return Mistake(f"truncated: the text ends within a document ({said})", min(self.offset, end - 1))
        return Mistake(f"no JSON: {said}", self.offset)


class _SaidTwice(Exception):
    pass


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _SaidTwice
    return found


Scan = Callable[[str, int], tuple[Any, int]]

_SCAN: Scan = vars(json.JSONDecoder(parse_constant=str))["scan_once"]
"""The scanner in C, which says where a value ends, and does not skip space before it."""

_STRICT: Scan = vars(json.JSONDecoder(parse_constant=str, object_pairs_hook=_object))["scan_once"]
"""The same, which refuses a name that is said twice, and takes nearly twice as long."""


def parse_line(text: str, start: int, end: int) -> Any:
    """
    Gives the document that a line is; None where it is none, or where there may be something odd about it, which
    `parse_at` has to look at.
    """
    line = text[start:end]
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return value if _is_said_once(value, line, 0, len(line)) else None


def parse_at(text: str, start: int) -> tuple[Any, int]:
    """
    Parses the JSON value that begins at *start*; gives it, and where it ends. A constant that is no JSON, such as NaN,
    becomes a text.

    Errors:
        Incomplete: The text ends within the value.
        Mistake: It is no JSON, says a name twice in one object, or is nested too deep.
    """
    try:
        value, end = _SCAN(text, start)
        return (value, end) if _is_said_once(value, text, start, end) else _STRICT(text, start)
    except StopIteration as stop:
        raise _mistake("Expecting value", stop.value, text) from None
    except json.JSONDecodeError as error:
        raise _mistake(error.msg, error.pos, text) from None
    except _SaidTwice:
        raise _twice(text, start) from None
    except RecursionError:
        raise Mistake(TOO_DEEP, start) from None
    except ValueError:
        raise Mistake("it holds a number of more digits than any program reads", start) from None


def _is_said_once(value: Any, text: str, start: int, end: int) -> bool:
    """
    Says whether each object says each of its names once, at a third of what it costs to ask each object; may say no
    where only something is odd. What was parsed is written again: a name that was said twice is written once, and its
    colon is missing.
    """
    if text.find("\\", start, end) >= 0 and text.find("\\u003", start, end) >= 0:
        return False
    try:
        written = msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return False
    return written.count(b":") == text.count(":", start, end)


class Mistake(HistoryError):
    """A mistake in JSON text, *offset* characters into it."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def _mistake(what: str, offset: int, text: str) -> Exception:
    if what.startswith("Unterminated string") or offset >= len(text) - _TRUNCATED:
        return Incomplete(what, offset)
    return Mistake(f"no JSON: {what[0].lower()}{what[1:]}", offset)


def _twice(text: str, start: int) -> Mistake:
    for place in places(text, start):
        if place.again:
            what = f"one object says {place.path[-1]!r} twice; only one of them can be meant"
            return Mistake(what, place.offset)
    return Mistake("one object says a name twice; only one of them can be meant", start)


@dataclass(slots=True)
class Place:
    """A value in a JSON text: its path and where it begins; *again* where its object has said the name before."""

    path: Path
    offset: int
    again: bool = False


@dataclass(slots=True)
class _Open:
    """An object or a list that was not closed yet."""

    names: set[str] | None
    step: str | int = 0
    waits_for_name: bool = field(default=True)


def places(text: str, start: int = 0) -> Iterator[Place]:
    """Gives every value of a document that parses, in order; without recursion."""
    stack: list[_Open] = []
    for token in _TOKEN.finditer(text, start):
        word = token[0]
        if word in ("}", "]"):
            stack.pop()
            if not stack:
                return
        elif word == ",":
            _next(stack[-1])
        elif word != ":":
            top = stack[-1] if stack else None
            if top is not None and top.names is not None and top.waits_for_name:
                yield from _named(top, word, token.start(), stack)
                continue
            yield Place(tuple(each.step for each in stack), token.start())
            if word in ("{", "["):
                stack.append(_Open(set() if word == "{" else None))


def _next(top: _Open) -> None:
    if top.names is not None:
        top.waits_for_name = True
    elif isinstance(top.step, int):
        top.step += 1


def _named(top: _Open, word: str, offset: int, stack: list[_Open]) -> Iterator[Place]:
    name = json.loads(word)
    assert top.names is not None
    top.step, top.waits_for_name = name, False
    if name in top.names:
        yield Place(tuple(each.step for each in stack), offset, again=True)
    top.names.add(name)


def offset_of(text: str, path: Path) -> int:
    """Gives where the value at a path begins; for a path that leads nowhere, the last value on the way."""
    found, length = 0, -1
    for place in places(text):
        depth = len(place.path)
        if depth > length and path[:depth] == place.path:
            found, length = place.offset, depth
            if depth == len(path):
                break
    return found
