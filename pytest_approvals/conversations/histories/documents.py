"""JSON documents of a text that may be larger than memory, with their lines.

A text holds one document, one on each line, or a list of many. It is read in chunks. A document that is incomplete in a
chunk is parsed again with twice as much text; a list that is incomplete, and whose first element is a document of its
own, is read element by element.

A name that one object has twice is refused, because programs disagree about which of the two is meant. A document on a
line of its own, which most are that come in great numbers, is parsed faster than the standard library does it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import msgspec

from pytest_approvals.conversations.histories.conversation import JsonPath
from pytest_approvals.conversations.histories.positions import count_lines, find_duplicate_name, find_offsets
from pytest_approvals.errors import HistoryError
from pytest_approvals.errors.printable import quote

TOO_DEEP = "nested too deep to be a conversation"

_TRUNCATION_MARGIN = 16
"""How near to the end of a piece of text an error may only mean that the text continues."""


class IncompleteDocument(Exception):
    """The text may end before the document does: parsing stopped at *offset*, near the end."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.what = what
        self.offset = offset

    def to_syntax_error(self, text: str) -> JsonSyntaxError:
        """Return the error that it is if no more text follows."""
        reason = f"{self.what[0].lower()}{self.what[1:]}"
        end = len(text.rstrip())
        if self.offset >= end or reason.startswith("unterminated"):
            return JsonSyntaxError(f"truncated: the text ends within a document ({reason})", min(self.offset, end - 1))
        return JsonSyntaxError(f"not JSON: {reason}", self.offset)


class _DuplicateName(Exception):
    pass


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _DuplicateName
    return value


Scan = Callable[[str, int], tuple[Any, int]]

_SCAN: Scan = vars(json.JSONDecoder(parse_constant=str))["scan_once"]
"""The scanner in C, which returns where a value ends, and does not skip space before it."""

_STRICT: Scan = vars(json.JSONDecoder(parse_constant=str, object_pairs_hook=_build_object))["scan_once"]
"""The same, which refuses duplicate names and takes nearly twice as long."""


def parse_line(text: str, start: int, end: int) -> Any:
    """Return the document on a line; None if `parse_at` has to parse it."""
    try:
        # Bytes are searched in half of the time that it takes to search a text.
        line = text[start:end].encode()
        value = msgspec.json.decode(line)
        written = msgspec.json.encode(value)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    if b"\\" in line and b"\\u003" in line:
        return None
    return value if written.count(b":") == line.count(b":") else None


def parse_at(text: str, start: int) -> tuple[Any, int]:
    """Return the JSON value that begins at *start*, and where it ends.

    A constant that is not JSON, such as NaN, becomes a string.

    Raises:
        IncompleteDocument: The text ends within the value.
        JsonSyntaxError: It is not JSON, has a name twice in one object, or is nested too deep.
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
    # Python limits the number of digits of an integer that it parses.
    except ValueError:
        raise JsonSyntaxError("a number has too many digits", start) from None


def _has_unique_names(value: Any, text: str, start: int, end: int) -> bool:
    """Return whether no object has a name twice.

    May be wrong about irregular text, but never overlooks a duplicate. The value is encoded again: a duplicate name is
    written once, so that a colon is missing. That costs a third of checking each object while it is parsed.
    """
    # An escaped colon would be counted on one side only.
    if text.find("\\", start, end) >= 0 and text.find("\\u003", start, end) >= 0:
        return False
    try:
        written = msgspec.json.encode(value)
    except (UnicodeEncodeError, RecursionError):
        return False
    return written.count(b":") == text.count(":", start, end)


class JsonSyntaxError(HistoryError):
    """An error in JSON text, *offset* characters into it."""

    def __init__(self, what: str, offset: int) -> None:
        super().__init__(what)
        self.offset = offset


def _syntax_error(what: str, offset: int, text: str) -> Exception:
    if what.startswith("Unterminated string") or offset >= len(text) - _TRUNCATION_MARGIN:
        return IncompleteDocument(what, offset)
    return JsonSyntaxError(f"not JSON: {what[0].lower()}{what[1:]}", offset)


def _duplicate_name_error(text: str, start: int) -> JsonSyntaxError:
    found = find_duplicate_name(text, start)
    if found is None:
        return JsonSyntaxError("one object has a name twice", start)
    name, offset = found
    return JsonSyntaxError(f"one object has the name {quote(name)} twice", offset)


CHUNK_SIZE = 1 << 20
"""The number of characters that are read at once, if documents are not larger."""

MAX_DOCUMENT_SIZE = 1 << 28
"""The maximum number of characters of one document."""

_SPACE = re.compile(r"[ \t\r\n]*")
_BORDER = re.compile(r"[ \t\r\n]*,[ \t\r\n]*[{\[].{8}", re.DOTALL)
"""What follows an element of a list, up to some characters of the next one."""

_FIRST_WINDOW = 256
"""The number of characters that are parsed at first in a text with errors."""

_GROWTH = 4
"""How much more is tried if that was too little, and how much larger than the last an element may be."""

K = TypeVar("K")


@dataclass(slots=True)
class JsonDocument(Generic[K]):
    """One document.

    Attributes:
        kind: What *recognize* of the `DocumentReader` returned for it.
        line: The line in which it begins, from 1.
        element: Its number in the list that it is an element of; None if it is not in a list.
    """

    value: Any
    kind: K | None
    line: int
    element: int | None
    _text: str = field(repr=False)
    _start: int
    _end: int

    def lines_of(self, paths: Sequence[JsonPath]) -> list[int]:
        """Return the lines in which the values at *paths* begin, all of them in one pass over the text."""
        if self._text.find("\n", self._start, self._end) < 0:
            return [self.line] * len(paths)
        offsets = find_offsets(self._text, self._start, paths)
        counts = count_lines(self._text, self._start, offsets)
        return [self.line + counts[offset] for offset in offsets]


class DocumentReader(Generic[K]):
    """Iterator over the documents of a text.

    Args:
        take: Return about as many characters as requested; none at the end.
        recognize: Return the kind of a document; None if it is not of a known kind.
    """

    def __init__(self, take: Callable[[int], str], recognize: Callable[[Any], K | None]) -> None:
        self._take = take
        self._recognize = recognize
        self._text = ""
        self._at = 0
        self._line = 1
        self._counted = 0
        self._is_over = False
        self._has_errors = False
        # The end of a line that was no single document, so that what else it holds is not parsed as one again.
        self._tried_end = -1
        # The next line feed; the length of the text if there is none in it yet.
        self._line_end = -1

    def __iter__(self) -> Iterator[JsonDocument[K] | HistoryError]:
        """Iterate over the documents, with an error for each that is invalid.

        After an error it continues with the next line that is a document of its own.
        """
        while True:
            try:
                while self._skip_space():
                    document = self._read_line()
                    if document is not None:
                        yield document
                    else:
                        yield from self._documents()
                return
            except JsonSyntaxError as error:
                yield HistoryError(error.what, line=self._line_at(error.offset))
                self._has_errors = True
                if not self._skip_to_whole_line():
                    return
            # The text ends, is not UTF-8, or is too large: nothing can be read after that.
            except HistoryError as error:
                yield HistoryError(error.what, line=self._line_at(self._at))
                return

    def _read_line(self) -> JsonDocument[K] | None:
        """Read the document that the rest of the current line is; None if `_documents` has to read it."""
        start = self._at
        if self._line_end < start:
            self._line_end = self._text.find("\n", start)
            if self._line_end < 0:
                self._line_end = self._tried_end = len(self._text)
        end = self._line_end
        if end == self._tried_end:
            return None
        value = parse_line(self._text, start, end)
        kind = self._recognize(value) if type(value) in (dict, list) else None
        # A list of no known kind may be one of documents.
        if kind is None and type(value) is not dict:
            self._tried_end = end
            return None
        line = self._line_at(start)
        document = JsonDocument(value, kind, line, None, self._text, start, end)
        self._at = self._counted = end + 1
        self._line = line + 1
        return document

    def _documents(self) -> Iterator[JsonDocument[K]]:
        if self._text[self._at] not in "{[":
            raise JsonSyntaxError("not JSON: a conversation begins with { or [", self._at)
        if self._text[self._at] == "[" and self._begins_list_of_documents():
            yield from self._elements()
        else:
            value, end = self._parse()
            yield self._document(value, self._recognize(value), end, None)

    def _document(self, value: Any, kind: K | None, end: int, element: int | None) -> JsonDocument[K]:
        line = self._line_at(self._at)
        document = JsonDocument(value, kind, line, element, self._text, self._at, end)
        self._at = end
        return document

    # --- lists of documents ---

    def _begins_list_of_documents(self) -> bool:
        """Return whether the list that begins here holds documents, as its first element shows."""
        while True:
            place = _SPACE.match(self._text, self._at + 1).end()  # type: ignore[union-attr]
            try:
                value, _ = self._parse_at(place)
            except IncompleteDocument:
                if not self._take_more():
                    return False
                continue
            except JsonSyntaxError:
                return False
            # A history of states is one conversation, though each state is one by itself.
            return self._recognize([value]) is None and self._recognize(value) is not None

    def _elements(self) -> Iterator[JsonDocument[K]]:
        self._at += 1
        number, border, size = 0, "", 0
        self._expect_more("an element or ]")
        while self._text[self._at] != "]":
            if number:
                if self._text[self._at] != ",":
                    raise JsonSyntaxError("not JSON: expecting ',' or ']' after an element", self._at)
                self._at += 1
                self._expect_more("an element")
            value, end = self._parse_element(border, size)
            size = end - self._at
            border = _border_after(self._text, end) or border
            yield self._document(value, self._recognize(value), end, number)
            number += 1
            self._expect_more("',' or ']'")
        self._at += 1

    def _parse_element(self, border: str, size: int) -> tuple[Any, int]:
        """Parse an element of a list, which is faster if it ends where the *border* says that it does."""
        if border:
            end = self._text.find(border, self._at, self._at + _GROWTH * size) + 1
            value = parse_line(self._text, self._at, end) if end else None
            if value is not None:
                return value, end
        return self._parse()

    def _expect_more(self, what: str) -> None:
        if not self._skip_space():
            raise HistoryError(f"truncated: the text ends where {what} is expected")

    # --- the text ---

    def _parse(self) -> tuple[Any, int]:
        while True:
            try:
                return self._parse_at(self._at)
            except IncompleteDocument as incomplete:
                if not self._take_more():
                    raise incomplete.to_syntax_error(self._text) from None

    def _parse_at(self, start: int) -> tuple[Any, int]:
        """Parse the value that begins at *start*; see `parse_at`."""
        # An error of the parser counts the lines of the whole text that it was given.
        size = _FIRST_WINDOW if self._has_errors else len(self._text)
        while start + size < len(self._text):
            try:
                value, end = parse_at(self._text[start : start + size], 0)
            except IncompleteDocument:
                size *= _GROWTH
                continue
            except JsonSyntaxError as error:
                raise JsonSyntaxError(error.what, start + error.offset) from None
            return value, start + end
        return parse_at(self._text, start)

    def _skip_space(self) -> bool:
        """Advance to the next character that is not a space; return whether there is one."""
        if self._at < len(self._text) and self._text[self._at] in "{[":
            return True
        while True:
            self._at = _SPACE.match(self._text, self._at).end()  # type: ignore[union-attr]
            if self._at < len(self._text):
                return True
            if not self._take_more():
                return False

    def _take_more(self) -> bool:
        rest = len(self._text) - self._at
        if rest > MAX_DOCUMENT_SIZE:
            raise HistoryError(f"one document has more than {MAX_DOCUMENT_SIZE >> 20} million characters")
        # Twice as much each time, so that a large document is not parsed again for every chunk.
        text = "" if self._is_over else self._take(max(CHUNK_SIZE, rest))
        if not text:
            self._is_over = True
            return False
        self._line_at(self._at)
        self._text = self._text[self._at :] + text
        self._at = self._counted = 0
        self._line_end = self._tried_end = -1
        return True

    def _line_at(self, offset: int) -> int:
        """Return the line of an offset in the current text; lines before it are counted once."""
        if offset < self._counted:
            return self._line - self._text.count("\n", offset, self._counted)
        self._line += self._text.count("\n", self._counted, offset)
        self._counted = offset
        return self._line

    def _skip_to_whole_line(self) -> bool:
        """Advance to the next line if that is a document of its own; return whether it is."""
        while (end := self._text.find("\n", self._at)) < 0:
            self._at = len(self._text)
            if not self._take_more():
                return False
        self._at = end + 1
        if not self._skip_space() or self._text[self._at] not in "{[":
            return False
        try:
            _, end = self._parse()
        except HistoryError:
            return False
        # A line that is not exactly one document may be inside of the broken one.
        return self._text.find("\n", self._at, end) < 0 and self._text[end : end + 1] in ("", "\n", "\r")


def _border_after(text: str, end: int) -> str:
    """Return how an element of a list that ends there and the next one meet; an empty text if that is unknown."""
    found = _BORDER.match(text, end)
    return text[end - 1 : found.end()] if found is not None else ""
