"""
The JSON documents of a text that may be larger than memory: one document, one on each line, or a list of many.

Text is taken in pieces. A document that is not whole in what was taken is parsed again with twice as much; a list that
is not whole, and whose first element is a document of its own, is taken element by element.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pytest_approvals.errors import HistoryError

from .conversation import Path
from .parsing import Incomplete, Mistake, offset_of, parse_at, parse_line

PIECE = 1 << 20
"""How many characters are taken at once, where documents are not larger."""

LARGEST = 1 << 28
"""How many characters one document may have."""

_SPACE = " \t\r\n"

K = TypeVar("K")


@dataclass(slots=True)
class Document(Generic[K]):
    """
    One document.

    Attributes:
        kind: What `Documents` was told to recognise in it; None where that is nothing.
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

    def line_of(self, path: Path) -> int:
        """Gives the line in which the value at a path begins."""
        if self._text.find("\n", self._start, self._end) < 0:
            return self.line
        text = self._text[self._start : self._end]
        return self.line + text.count("\n", 0, offset_of(text, path))


class Documents(Generic[K]):
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

    def __iter__(self) -> Iterator[Document[K] | HistoryError]:
        """Gives each document, or what is wrong with it; after a mistake it goes on with the next line that is one."""
        while True:
            try:
                if not self._finds_more():
                    return
                yield from self._documents()
            except Mistake as mistake:
                yield HistoryError(mistake.what, line=self._line_at(mistake.offset))
                if not self._skips_to_a_whole_line():
                    return
            except HistoryError as mistake:
                yield HistoryError(mistake.what, line=self._line_at(self._at))
                return

    def _documents(self) -> Iterator[Document[K]]:
        start = self._at
        if self._text[start] not in "{[":
            raise Mistake("no JSON: a conversation begins with { or [", start)
        end = self._text.find("\n", start)
        value = parse_line(self._text, start, end) if end >= 0 else None
        if value is not None:
            self._line_at(start)
            self._counted = end  # there is no line in between
        else:
            try:
                value, end = parse_at(self._text, start)
            except Incomplete:
                if self._text[start] == "[" and self._first_is_known():
                    yield from self._elements()
                    return
                value, end = self._parsed()
        kind = self._recognise(value)
        if kind is None and type(value) is list and value and self._recognise(value[0]) is not None:
            yield from self._elements()
            return
        yield self._document(value, kind, end, None)

    def _document(self, value: Any, kind: K | None, end: int, element: int | None) -> Document[K]:
        line = self._line_at(self._at)
        document = Document(value, kind, line, element, self._text, self._at, end)
        self._at = end
        return document

    # --- lists of documents ---

    def _first_is_known(self) -> bool:
        """Says whether the first element of a list that is not whole is a document."""
        place = self._at + 1
        while place < len(self._text) and self._text[place] in _SPACE:
            place += 1
        try:
            value, _ = parse_at(self._text, place)
        except (Incomplete, Mistake):
            return False
        return self._recognise(value) is not None

    def _elements(self) -> Iterator[Document[K]]:
        self._at += 1
        number = 0
        self._expect_something("an element or ]")
        while self._text[self._at] != "]":
            if number:
                if self._text[self._at] != ",":
                    raise Mistake("no JSON: expecting ',' or ']' after an element", self._at)
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
            except Incomplete as incomplete:
                if not self._takes_more():
                    raise incomplete.at_the_end_of(self._text) from None

    def _finds_more(self) -> bool:
        """Goes on to the next character that is no space; says whether there is one."""
        while True:
            text, at, end = self._text, self._at, len(self._text)
            while at < end and text[at] in _SPACE:
                at += 1
            self._at = at
            if at < end:
                return True
            if not self._takes_more():
                return False

    def _takes_more(self) -> bool:
        rest = len(self._text) - self._at
        if rest > LARGEST:
            raise HistoryError(f"one document has more than {LARGEST >> 20} million characters")
        taken = "" if self._is_over else self._take(max(PIECE, rest))
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
