"""JSON text, parsed strictly, and where in it something stands.

A name that one object says twice is refused, because programs disagree about which of the two is meant. A document on
a line of its own, which most are that come in great numbers, is parsed faster than the standard library does it.

The JSON documents of a text that may be larger than memory: one document, one on each line, or a list of many.

Text is taken in pieces. A document that is not whole in what was taken is parsed again with twice as much; a list that
is not whole, and whose first element is a document of its own, is taken element by element.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from pytest_approvals.conversations.histories.conversation import JsonPath
from pytest_approvals.errors import HistoryError

TOO_DEEP = "nested too deep to be a conversation"

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]:,]|[^\s{}\[\]:,"]+', re.DOTALL)
_TRUNCATION_MARGIN = 16
"""How near to the end of a piece of text a mistake may only mean that the text goes on."""


class IncompleteDocument(Exception):
    """The text may end before the document does: parsing stopped *offset* characters into it, near the end."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset

    def at_the_end_of(self, text: str) -> JsonSyntaxError:
        """Gives the mistake that it is where no more text comes."""
        said = f"{self.what[0].lower()}{self.what[1:]}"
        end = len(text.rstrip())
        if self.offset >= end or said.startswith("unterminated"):
            return JsonSyntaxError(f"truncated: the text ends within a document ({said})", min(self.offset, end - 1))
        return JsonSyntaxError(f"no JSON: {said}", self.offset)


class _DuplicateName(Exception):
    pass


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise _DuplicateName
    return found


Scan = Callable[[str, int], tuple[Any, int]]

_SCAN: Scan = vars(json.JSONDecoder(parse_constant=str))["scan_once"]
"""The scanner in C, which says where a value ends, and does not skip space before it."""

_STRICT: Scan = vars(json.JSONDecoder(parse_constant=str, object_pairs_hook=_build_object))["scan_once"]
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
    return value if _has_unique_names(value, line, 0, len(line)) else None


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
        return (value, end) if _has_unique_names(value, text, start, end) else _STRICT(text, start)
    except StopIteration as stop:
        raise _syntax_error("Expecting value", stop.value, text) from None
    except json.JSONDecodeError as error:
        raise _syntax_error(error.msg, error.pos, text) from None
    except _DuplicateName:
        raise _duplicate_name_error(text, start) from None
    except RecursionError:
        raise JsonSyntaxError(TOO_DEEP, start) from None
    except ValueError:
        raise JsonSyntaxError("it holds a number of more digits than any program reads", start) from None


def _has_unique_names(value: Any, text: str, start: int, end: int) -> bool:
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


class JsonSyntaxError(HistoryError):
    """A mistake in JSON text, *offset* characters into it."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def _syntax_error(what: str, offset: int, text: str) -> Exception:
    if what.startswith("Unterminated string") or offset >= len(text) - _TRUNCATION_MARGIN:
        return IncompleteDocument(what, offset)
    return JsonSyntaxError(f"no JSON: {what[0].lower()}{what[1:]}", offset)


def _duplicate_name_error(text: str, start: int) -> JsonSyntaxError:
    for place in iter_places(text, start):
        if place.again:
            what = f"one object says {place.path[-1]!r} twice; only one of them can be meant"
            return JsonSyntaxError(what, place.offset)
    return JsonSyntaxError("one object says a name twice; only one of them can be meant", start)


@dataclass(slots=True)
class JsonPlace:
    """A value in a JSON text: its path and where it begins; *again* where its object has said the name before."""

    path: JsonPath
    offset: int
    again: bool = False


@dataclass(slots=True)
class _OpenContainer:
    """An object or a list that was not closed yet."""

    names: set[str] | None
    step: str | int = 0
    waits_for_name: bool = field(default=True)


def iter_places(text: str, start: int = 0) -> Iterator[JsonPlace]:
    """Gives every value of a document that parses, in order; without recursion."""
    stack: list[_OpenContainer] = []
    for token in _TOKEN.finditer(text, start):
        word = token[0]
        if word in ("}", "]"):
            stack.pop()
            if not stack:
                return
        elif word == ",":
            _advance(stack[-1])
        elif word != ":":
            top = stack[-1] if stack else None
            if top is not None and top.names is not None and top.waits_for_name:
                yield from _enter_name(top, word, token.start(), stack)
                continue
            yield JsonPlace(tuple(each.step for each in stack), token.start())
            if word in ("{", "["):
                stack.append(_OpenContainer(set() if word == "{" else None))


def _advance(top: _OpenContainer) -> None:
    if top.names is not None:
        top.waits_for_name = True
    elif isinstance(top.step, int):
        top.step += 1


def _enter_name(top: _OpenContainer, word: str, offset: int, stack: list[_OpenContainer]) -> Iterator[JsonPlace]:
    name = json.loads(word)
    assert top.names is not None
    top.step, top.waits_for_name = name, False
    if name in top.names:
        yield JsonPlace(tuple(each.step for each in stack), offset, again=True)
    top.names.add(name)


def find_offset(text: str, path: JsonPath) -> int:
    """Gives where the value at a path begins; for a path that leads nowhere, the last value on the way."""
    found, length = 0, -1
    for place in iter_places(text):
        depth = len(place.path)
        if depth > length and path[:depth] == place.path:
            found, length = place.offset, depth
            if depth == len(path):
                break
    return found


CHUNK_SIZE = 1 << 20
"""How many characters are taken at once, where documents are not larger."""

MAX_DOCUMENT_SIZE = 1 << 28
"""How many characters one document may have."""

_WHITESPACE = " \t\r\n"

K = TypeVar("K")


@dataclass(slots=True)
class JsonDocument(Generic[K]):
    """
    One document.

    Attributes:
        kind: What `DocumentReader` was told to recognise in it; None where that is nothing.
        line: The line in which it begins, from 1.
        element: Its number in the list that it is an element of; None where it stands for itself.
    """

    value: Any
    kind: K | None
    line: int
    element: int | None
    _text: str = field(repr=False)
    _start: int
    _end: int

    def line_of(self, path: JsonPath) -> int:
        """Gives the line in which the value at a path begins."""
        if self._text.find("\n", self._start, self._end) < 0:
            return self.line
        text = self._text[self._start : self._end]
        return self.line + text.count("\n", 0, find_offset(text, path))


class DocumentReader(Generic[K]):
    """
    Goes through the documents of a text.

    Arguments:
        take: Gives about as many characters as it is asked for; none at the end.
        recognise: Says what a value is; None where it is no document of a known kind.
    """

    def __init__(self, take: Callable[[int], str], recognise: Callable[[Any], K | None]) -> None:
        self._take = take
        self._recognise = recognise
        self._text = ""
        self._at = 0
        self._line = 1
        self._counted = 0
        self._is_over = False

    def __iter__(self) -> Iterator[JsonDocument[K] | HistoryError]:
        """Gives each document, or what is wrong with it; after a mistake it goes on with the next line that is one."""
        while True:
            try:
                if not self._finds_more():
                    return
                yield from self._documents()
            except JsonSyntaxError as mistake:
                yield HistoryError(mistake.what, line=self._line_at(mistake.offset))
                if not self._skips_to_a_whole_line():
                    return
            except HistoryError as mistake:
                yield HistoryError(mistake.what, line=self._line_at(self._at))
                return

    def _documents(self) -> Iterator[JsonDocument[K]]:
        start = self._at
        if self._text[start] not in "{[":
            raise JsonSyntaxError("no JSON: a conversation begins with { or [", start)
        end = self._text.find("\n", start)
        value = parse_line(self._text, start, end) if end >= 0 else None
        if value is not None:
            self._line_at(start)
            self._counted = end  # there is no line in between
        else:
            try:
                value, end = parse_at(self._text, start)
            except IncompleteDocument:
                if self._text[start] == "[" and self._first_is_known():
                    yield from self._elements()
                    return
                value, end = self._parsed()
        kind = self._recognise(value)
        if kind is None and type(value) is list and value and self._recognise(value[0]) is not None:
            yield from self._elements()
            return
        yield self._document(value, kind, end, None)

    def _document(self, value: Any, kind: K | None, end: int, element: int | None) -> JsonDocument[K]:
        line = self._line_at(self._at)
        document = JsonDocument(value, kind, line, element, self._text, self._at, end)
        self._at = end
        return document

    # --- lists of documents ---

    def _first_is_known(self) -> bool:
        """Says whether the first element of a list that is not whole is a document."""
        place = self._at + 1
        while place < len(self._text) and self._text[place] in _WHITESPACE:
            place += 1
        try:
            value, _ = parse_at(self._text, place)
        except (IncompleteDocument, JsonSyntaxError):
            return False
        return self._recognise(value) is not None

    def _elements(self) -> Iterator[JsonDocument[K]]:
        self._at += 1
        number = 0
        self._expect_something("an element or ]")
        while self._text[self._at] != "]":
            if number:
                if self._text[self._at] != ",":
                    raise JsonSyntaxError("no JSON: expecting ',' or ']' after an element", self._at)
                self._at += 1
                self._expect_something("an element")
            value, end = self._parsed()
            yield self._document(value, self._recognise(value), end, number)
            number += 1
            self._expect_something("',' or ']'")
        self._at += 1

    def _expect_something(self, what: str) -> None:
        if not self._finds_more():
            raise HistoryError(f"truncated: the text ends where {what} is expected")

    # --- the text ---

    def _parsed(self) -> tuple[Any, int]:
        while True:
            try:
                return parse_at(self._text, self._at)
            except IncompleteDocument as incomplete:
                if not self._takes_more():
                    raise incomplete.at_the_end_of(self._text) from None

    def _finds_more(self) -> bool:
        """Goes on to the next character that is no space; says whether there is one."""
        while True:
            text, at, end = self._text, self._at, len(self._text)
            while at < end and text[at] in _WHITESPACE:
                at += 1
            self._at = at
            if at < end:
                return True
            if not self._takes_more():
                return False

    def _takes_more(self) -> bool:
        rest = len(self._text) - self._at
        if rest > MAX_DOCUMENT_SIZE:
            raise HistoryError(f"one document has more than {MAX_DOCUMENT_SIZE >> 20} million characters")
        taken = "" if self._is_over else self._take(max(CHUNK_SIZE, rest))
        if not taken:
            self._is_over = True
            return False
        self._line_at(self._at)
        self._text = self._text[self._at :] + taken
        self._at = self._counted = 0
        return True

    def _line_at(self, offset: int) -> int:
        """Gives the line of a place in the text that was taken; lines before it are counted once."""
        if offset < self._counted:
            return self._line - self._text.count("\n", offset, self._counted)
        self._line += self._text.count("\n", self._counted, offset)
        self._counted = offset
        return self._line

    def _skips_to_a_whole_line(self) -> bool:
        """Goes on to the next line if that is a document of its own; says whether it is."""
        while (end := self._text.find("\n", self._at)) < 0:
            self._at = len(self._text)
            if not self._takes_more():
                return False
        self._at = end + 1
        if not self._finds_more() or self._text[self._at] not in "{[":
            return False
        try:
            _, end = self._parsed()
        except HistoryError:
            return False
        return self._text.find("\n", self._at, end) < 0 and self._text[end : end + 1] in ("", "\n", "\r")
