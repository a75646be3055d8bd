"""
Stored conversations from files, folders, and standard input.

A file holds one document, a document on each line, or a list of many; or, on each line, one message of its only
conversation. What cannot be read is told in its place, and the rest goes on.
"""

from __future__ import annotations

import codecs
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path as FilePath
from typing import IO

from pytest_approvals.conversations.histories.conversation import JsonPath, StoredConversation
from pytest_approvals.conversations.histories.documents import TOO_DEEP, DocumentReader, JsonDocument
from pytest_approvals.conversations.histories.readers import FORMATS, FormatDetector, FormatReader
from pytest_approvals.errors import HistoryError, UsageError

SUFFIXES = (".json", ".jsonl", ".ndjson")
"""What files are called that are looked at in folders."""

STANDARD_INPUT = "-"

_FOREIGN_PREFIXES = {
    b"\x80": "a pickle, which is never loaded, because loading one runs what it says; store JSON",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"PK\x03\x04": "a zip archive; unpack it first",
    b"SQLite format 3\x00": "a SQLite database; export the conversation as JSON",
    b"\xff\xfe": "UTF-16 or UTF-32; store it as UTF-8",
    b"\xfe\xff": "UTF-16; store it as UTF-8",
    b"\x00\x00\xfe\xff": "UTF-32; store it as UTF-8",
}
"""What a file is that begins in one of these ways."""


@dataclass(slots=True)
class LocatedConversation:
    """
    One conversation, and where it is stored.

    Attributes:
        file: Its file, as it was named.
        line: Where its document begins.
        line_of: Gives the line of a place in its document.
    """

    conversation: StoredConversation
    file: str
    line: int
    line_of: Callable[[JsonPath], int]


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of a folder that holds no conversation of a known format."""

    file: str


def read_conversations(
    words: Iterable[str], *, form: str | None = None
) -> Iterator[LocatedConversation | HistoryError | SkippedFile]:
    """
    Gives the conversations one by one, so that only one is in memory; in place of what cannot be read, what is wrong.

    Arguments:
        words: Files, folders, and `-` for standard input.
        form: The format; None to recognise it.

    Errors:
        UsageError: A file does not exist, or a folder holds none to look at.
        UnknownName: There is no such format.
    """
    recognition = FormatDetector(form)
    for path, found in [each for word in words for each in _list_files(word)]:
        try:
            with _open_file(path) as file:
                yield from _read_file(file, path, recognition, found=found)
        except OSError as error:
            yield HistoryError(f"it cannot be read: {error.strerror}", file=path)


def _list_files(word: str) -> list[tuple[str, bool]]:
    """Gives the files that a word names, and whether each was only found in a folder."""
    place = FilePath(word)
    if place.is_dir():
        found = sorted(path for path in place.rglob("*") if path.suffix.lower() in SUFFIXES and path.is_file())
        if not found:
            raise UsageError(f"there are no conversations in {word}: no {', '.join(f'*{each}' for each in SUFFIXES)}")
        return [(str(path), True) for path in found]
    if word != STANDARD_INPUT and not place.exists():
        raise UsageError(f"there is no file {word}")
    return [(word, False)]


def _open_file(path: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else open(path, "rb")


def _read_file(
    file: IO[bytes], name: str, recognition: FormatDetector, *, found: bool
) -> Iterator[LocatedConversation | HistoryError | SkippedFile]:
    """Gives the conversations of one file."""
    reading = _FileReader(name, recognition)
    known = 0
    for document in DocumentReader(_TextDecoder(file).take, recognition.reader_of):
        if isinstance(document, HistoryError):
            yield HistoryError(document.what, file=name, line=document.line)
        elif document.kind is not None:
            yield reading.read(document, document.kind)
        elif reading.is_message(document):
            continue
        elif found and not known:
            yield SkippedFile(name)
            return
        else:
            what = f"it is of no known format; name one with --format: {', '.join(FORMATS)}"
            yield HistoryError(what, file=name, line=document.line)
        known += 1
    if reading.messages:
        yield reading.gathered()
    elif not known:
        yield HistoryError("it is empty", file=name)


class _FileReader:
    """The documents of one file."""

    def __init__(self, name: str, recognition: FormatDetector) -> None:
        self.name = name
        self.recognition = recognition
        self.messages: list[JsonDocument[FormatReader]] = []

    def is_message(self, document: JsonDocument[FormatReader]) -> bool:
        """Says whether a document is one message, and if so keeps it."""
        if type(document.value) is not dict or document.element is not None:
            return False
        if self.recognition.reader_of([document.value]) is None:
            return False
        self.messages.append(document)
        return True

    def gathered(self) -> LocatedConversation | HistoryError:
        """Gives the conversation that the messages on the lines of the file make."""
        messages = self.messages
        first = JsonDocument[FormatReader]([each.value for each in messages], None, messages[0].line, None, "", 0, 0)
        lines = [each.line for each in messages]
        reader = self.recognition.reader_of(first.value)
        assert reader is not None
        return self.read(first, reader, lambda path: lines[path[0]] if path and type(path[0]) is int else lines[0])

    def read(
        self,
        document: JsonDocument[FormatReader],
        reader: FormatReader,
        line_of: Callable[[JsonPath], int] | None = None,
    ) -> LocatedConversation | HistoryError:
        """Reads one conversation; gives what is wrong with it where that fails."""
        line_of = line_of or document.line_of
        try:
            conversation = reader.read(document.value)
        except HistoryError as mistake:
            line = line_of(mistake.at)
            return HistoryError(mistake.what, at=self._path(document, mistake.at), file=self.name, line=line)
        except RecursionError:
            return HistoryError(TOO_DEEP, file=self.name, line=document.line)
        conversation.name = self.name if document.element is None else f"{self.name}[{document.element}]"
        return LocatedConversation(conversation, self.name, document.line, line_of)

    @staticmethod
    def _path(document: JsonDocument[FormatReader], path: JsonPath) -> JsonPath:
        return path if document.element is None else (document.element, *path)


class _TextDecoder:
    """The text of a file, taken in pieces."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._taken = 0

    def take(self, size: int) -> str:
        """
        Gives about *size* more characters; none at the end. A byte order mark is left out.

        Errors:
            HistoryError: It is no UTF-8.
        """
        text = ""
        while not text:
            piece = self._file.read(size)
            text = self._decoded(piece)
            self._taken += len(piece)
            if not piece:
                break
        return text

    def _decoded(self, piece: bytes) -> str:
        if not self._taken:
            for mark, what in _FOREIGN_PREFIXES.items():
                if piece.startswith(mark):
                    raise HistoryError(f"no UTF-8: it is {what}")
            piece = piece.removeprefix(codecs.BOM_UTF8)
        try:
            return self._decoder.decode(piece, final=not piece)
        except UnicodeDecodeError as error:
            what = f"no UTF-8 at byte {self._taken + error.start}: {error.reason}; store it as UTF-8"
            raise HistoryError(what) from None
