"""Stored conversations from files, folders and standard input.

A file holds one document, a document on each line, or a list of many; or, on each line, one message of its only
conversation, or one entry of a transcript. Spans are collected from all files, and their conversations come last. What
cannot be read is reported in its location, and reading continues after it.
"""

from __future__ import annotations

import codecs
import io
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path as FilePath
from typing import IO, Any, NamedTuple

from pytest_approvals.conversations.histories import postgres_stores, sqlite_stores
from pytest_approvals.conversations.histories.conversation import JsonPath, StoredConversation, format_path
from pytest_approvals.conversations.histories.documents import TOO_DEEP, DocumentReader, JsonDocument
from pytest_approvals.conversations.histories.reader_kit import FormatReader
from pytest_approvals.conversations.histories.readers import FORMATS, FormatDetector, get_reader
from pytest_approvals.conversations.histories.readers.spans import NO_STEPS
from pytest_approvals.conversations.histories.spans.collector import SpanCollector, SpanPlace
from pytest_approvals.conversations.histories.spans.span import read_spans
from pytest_approvals.conversations.histories.store_documents import StoredDocument
from pytest_approvals.errors import HistoryError, UsageError

SUFFIXES = (".json", ".jsonl", ".ndjson", *sqlite_stores.SUFFIXES)
"""The suffixes of the files that are read in folders."""

STANDARD_INPUT = "-"

_NAME_A_FORMAT = f"name one with --format: {', '.join(FORMATS)}"

_SESSION_FILE, _AGENT_FILE, _MESSAGES = "session.json", "agent.json", "messages"
"""The names in a file session of Strands: `session_ID/agents/agent_ID/messages/message_0.json`."""

_UNKNOWN_DATABASE = (
    "a SQLite database of no known store: expected one of OpenAI Agents, LangGraph or Google ADK; "
    "export the conversation as JSON"
)

_FOREIGN_PREFIXES = {
    b"\x80": "a pickle, which is never loaded, because loading one runs what it says; store JSON",
    b"\x1f\x8b": "compressed with gzip; unpack it first",
    b"PK\x03\x04": "a zip archive; unpack it first",
    sqlite_stores.MAGIC: "a SQLite database, which is read as a file only",
    b"\xff\xfe": "UTF-16 or UTF-32; store it as UTF-8",
    b"\xfe\xff": "UTF-16; store it as UTF-8",
    b"\x00\x00\xfe\xff": "UTF-32; store it as UTF-8",
}
"""What a file is that begins with these bytes."""


class TextPlace(NamedTuple):
    """A line of a file; None in a database."""

    file: str
    line: int | None


@dataclass(slots=True)
class LocatedConversation:
    """One conversation, and where it is stored.

    Attributes:
        conversation: The conversation.
        file: Its file, as it was named.
        line: The line in which its document begins; None in a database.
        find_places: Return the files and lines of paths in its document.
    """

    conversation: StoredConversation
    file: str
    line: int | None
    find_places: Callable[[Sequence[JsonPath]], list[TextPlace]]


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file of a folder that holds no conversation of a known format."""

    file: str


def read_conversations(
    paths: Iterable[str], *, format_name: str | None = None, of_folder: bool = False
) -> Iterator[LocatedConversation | HistoryError | SkippedFile]:
    """Yield conversations one by one, so that only one is in memory, and errors for what cannot be read.

    Args:
        paths: Files, folders, and `-` for standard input.
        format_name: The format; None to recognize it.
        of_folder: The files were found in a folder, where others than conversations may be, too.

    Raises:
        UsageError: A file does not exist, or a folder holds no files of conversations.
        UnknownName: There is no such format.
    """
    detector, collector = FormatDetector(format_name), SpanCollector()
    files = [file for path in paths for file in _list_files(path)]
    with closing(collector):
        for listed in files:
            if isinstance(listed, HistoryError):
                yield listed
                continue
            path, in_folder = listed[0], listed[1] or of_folder
            if postgres_stores.is_server(path):
                yield from _read_server(path)
                continue
            try:
                if os.path.isdir(path):
                    yield _read_strands_session(path)
                    continue
                if _is_database(path):
                    yield from _read_database(path, in_folder=in_folder)
                    continue
                with _open_file(path) as file:
                    yield from _read_file(file, path, detector, collector, in_folder=in_folder)
            except OSError as error:
                yield _access_error(error, path)
        yield from _read_collected(collector)


def _read_strands_session(folder: str) -> LocatedConversation | HistoryError:
    """Read the files of one agent in a session of Strands, a file for each message."""
    state = os.path.join(folder, _AGENT_FILE)
    with os.scandir(os.path.join(folder, _MESSAGES)) as entries:
        files = [entry.path for entry in entries if entry.name.endswith(".json")]
    files.sort(key=lambda path: (len(path), path))
    documents: list[Any] = []
    for path in (state, *files):
        with open(path, "rb") as file:
            try:
                documents.append(json.loads(file.read()))
            except (ValueError, RecursionError) as error:
                return HistoryError(f"not JSON: {error}", file=path)

    def file_of(path: JsonPath) -> str:
        place = path[1] if path[:1] == ("messages",) and len(path) > 1 else None
        return files[place] if type(place) is int else state

    document = {"agent": documents[0], "messages": documents[1:]}
    try:
        conversation = get_reader("strands").read(document)
    except HistoryError as error:
        return HistoryError(
            error.what, at=error.at[2:] if error.at[:1] == ("messages",) else error.at, file=file_of(error.at)
        )
    except RecursionError:
        return HistoryError(TOO_DEEP, file=folder)
    conversation.name = folder
    return LocatedConversation(
        conversation, folder, None, lambda paths: [TextPlace(file_of(path), None) for path in paths]
    )


def _is_database(path: str) -> bool:
    # What is read from a pipe is gone.
    if path == STANDARD_INPUT or not os.path.isfile(path):
        return False
    with open(path, "rb") as file:
        return file.read(len(sqlite_stores.MAGIC)) == sqlite_stores.MAGIC


def _read_database(path: str, *, in_folder: bool) -> Iterator[LocatedConversation | HistoryError | SkippedFile]:
    """Yield the conversations of a SQLite database."""
    try:
        documents = sqlite_stores.read_database(path)
        if documents is None:
            yield SkippedFile(path) if in_folder else HistoryError(_UNKNOWN_DATABASE, file=path)
            return
    except HistoryError as error:
        yield HistoryError(error.what, file=path)
        return
    yield from _read_documents(documents, path)


def _read_server(url: str) -> Iterator[LocatedConversation | HistoryError]:
    """Yield the conversations of a PostgreSQL database."""
    yield from _read_documents(postgres_stores.read_server(url), postgres_stores.hide_password(url))


def _read_documents(documents: Iterable[StoredDocument], path: str) -> Iterator[LocatedConversation | HistoryError]:
    """Yield the conversations of the documents of a database."""
    is_empty = True
    try:
        for document in documents:
            is_empty = False
            try:
                conversation = get_reader(document.format).read(document.value)
            except HistoryError as error:
                yield HistoryError(f"{document.name}: {error.what}", at=error.at, file=path)
                continue
            conversation.name = f"{path}[{document.name}]"
            yield LocatedConversation(conversation, path, None, lambda paths: [TextPlace(path, None)] * len(paths))
        if is_empty:
            yield HistoryError("the database holds no conversation", file=path)
    except HistoryError as error:
        yield HistoryError(error.what, file=path)
    except RecursionError:
        yield HistoryError(TOO_DEEP, file=path)


def _read_collected(collector: SpanCollector) -> Iterator[LocatedConversation]:
    """Yield the conversations of the spans of all files."""
    number = 0
    for number, (conversation, places) in enumerate(collector.conversations(), start=1):
        first = places[conversation.path(conversation.entries[0])]

        def find_places(
            paths: Sequence[JsonPath], places: Mapping[JsonPath, SpanPlace] = places, first: SpanPlace = first
        ) -> list[TextPlace]:
            return [TextPlace(*places.get(path[:1], first)) for path in paths]

        inside = f" {conversation.name}" if conversation.name else ""
        conversation.name = f"{first.file}[{number}]{inside}"
        yield LocatedConversation(conversation, first.file, first.line, find_places)


def read_text(
    text: bytes, *, name: str, format_name: str | None = None
) -> Iterator[LocatedConversation | HistoryError | SkippedFile]:
    """Yield the conversations of a text as of a file, and errors for what cannot be read.

    Args:
        text: The text, in UTF-8.
        name: What it is called in errors.
        format_name: The format; None to recognize it.

    Raises:
        UnknownName: There is no such format.
    """
    with closing(SpanCollector()) as collector:
        yield from _read_file(io.BytesIO(text), name, FormatDetector(format_name), collector, in_folder=False)
        yield from _read_collected(collector)


def _list_files(path: str) -> list[tuple[str, bool] | HistoryError]:
    """Return the files that a path names, and whether each was found in a folder; errors for unreadable folders."""
    location = FilePath(path)
    if postgres_stores.is_server(path):
        return [(path, False)]
    if location.is_dir():
        errors: list[HistoryError] = []
        files = sorted(_find_files(path, lambda error: errors.append(_access_error(error, str(error.filename)))))
        if not files and not errors:
            raise UsageError(f"no conversations in {path}: expected {', '.join(f'*{suffix}' for suffix in SUFFIXES)}")
        return [*((str(file), True) for file in files), *errors]
    if path != STANDARD_INPUT and not location.exists():
        raise UsageError(f"file not found: {path}")
    return [(path, False)]


def list_stored(folder: str) -> list[str]:
    """Return the files of a folder that may hold conversations, and the folders of sessions that are one each."""
    return sorted(map(str, _find_files(folder, lambda error: None)))


def _find_files(folder: str, report: Callable[[OSError], None]) -> Iterator[FilePath]:
    for parent, folders, names in os.walk(folder, onerror=report):
        if _AGENT_FILE in names and _MESSAGES in folders:
            yield FilePath(parent)
            folders.remove(_MESSAGES)
            continue
        if _SESSION_FILE in names and "agents" in folders:
            continue
        files = (FilePath(parent, name) for name in names)
        yield from (file for file in files if file.suffix.lower() in SUFFIXES and file.is_file())


def _access_error(error: OSError, path: str) -> HistoryError:
    return HistoryError(f"cannot be read: {error.strerror or error}", file=path)


def _open_file(path: str) -> AbstractContextManager[IO[bytes]]:
    return nullcontext(sys.stdin.buffer) if path == STANDARD_INPUT else open(path, "rb")


def _read_file(
    file: IO[bytes], name: str, detector: FormatDetector, collector: SpanCollector, *, in_folder: bool
) -> Iterator[LocatedConversation | HistoryError | SkippedFile]:
    """Yield the conversations of one file, and collect its spans."""
    reader = _FileReader(name, detector)
    known = spans = 0
    for document in DocumentReader(_TextDecoder(file).take, detector.find_reader):
        if isinstance(document, HistoryError):
            yield HistoryError(reader.explain(document.what), file=name, line=document.line)
        elif reader.is_next_line(document):
            continue
        elif document.kind is not None and document.kind.is_spread:
            spans += 1
            yield from reader.collect(document, collector)
        elif document.kind is not None:
            yield from reader.read_all(document, document.kind)
        elif reader.is_message(document):
            continue
        # A folder may hold other JSON files; a file that the user named must be a conversation.
        elif in_folder and not known:
            yield SkippedFile(name)
            return
        else:
            yield HistoryError(f"unknown format; {_NAME_A_FORMAT}", file=name, line=document.line)
        known += 1
    if reader.messages:
        yield from reader.join_messages(in_folder=in_folder)
    elif not known:
        yield HistoryError("empty file", file=name)
    # Spans of models and tools may be in another file, or in this one a second time.
    elif spans and not collector.relevant:
        yield SkippedFile(name) if in_folder else HistoryError(NO_STEPS, file=name)


class _FileReader:
    """Reader of the documents of one file."""

    def __init__(self, name: str, detector: FormatDetector) -> None:
        self.name = name
        self.detector = detector
        self.messages: list[JsonDocument[FormatReader]] = []
        self.is_transcript = False

    def explain(self, problem: str) -> str:
        """Return what is wrong with a line, and what can be done about it."""
        if self.is_transcript and problem.startswith("truncated"):
            return f"{problem}; a process that is killed leaves half of its last line: remove it"
        return problem

    def is_message(self, document: JsonDocument[FormatReader]) -> bool:
        """Return whether a document is one message, or the first line of a transcript, which is kept then."""
        if type(document.value) is not dict or document.element is not None:
            return False
        reader = self.detector.find_reader([document.value])
        if reader is None:
            return False
        self.is_transcript = reader.is_line_of is not None and not self.messages
        self.messages.append(document)
        return True

    def is_next_line(self, document: JsonDocument[FormatReader]) -> bool:
        """Return whether a document is one more line of a transcript, which is kept then.

        A transcript may hold lines of types that a later release has added.
        """
        if not self.is_transcript or type(document.value) is not dict or document.element is not None:
            return False
        if document.kind is not None and document.kind.is_line_of is None:
            return False
        self.messages.append(document)
        return True

    def join_messages(self, *, in_folder: bool) -> Iterator[LocatedConversation | HistoryError | SkippedFile]:
        """Yield the conversation of the messages on the lines of the file, or those of its transcript."""
        messages = self.messages
        first = JsonDocument[FormatReader](
            [message.value for message in messages], None, messages[0].line, None, "", 0, 0
        )
        lines = [message.line for message in messages]

        def line_of(path: JsonPath) -> int:
            return lines[path[0]] if path and type(path[0]) is int else lines[0]

        reader = self.detector.find_reader(first.value)
        if reader is None and in_folder and self.is_transcript:
            yield SkippedFile(self.name)
            return
        if reader is None:
            problem = f"each line is a message, and together they are of no known format; {_NAME_A_FORMAT}"
            yield HistoryError(problem, file=self.name, line=first.line)
            return
        found = list(self.read(first, reader, lambda paths: [line_of(path) for path in paths]))
        if found:
            yield from found
        else:
            yield (
                SkippedFile(self.name)
                if in_folder
                else HistoryError(reader.nothing_read, file=self.name, line=first.line)
            )

    def read_all(
        self, document: JsonDocument[FormatReader], reader: FormatReader
    ) -> Iterator[LocatedConversation | HistoryError]:
        """Read a document, which may hold several conversations."""
        paths = reader.split(document.value)
        if not paths:
            yield from self.read(document, reader)
        for path in paths:
            part = replace(document, value=_value_at(document.value, path))
            for located in self.read(part, reader, partial(_lines_within, document, path)):
                if isinstance(located, LocatedConversation):
                    located.conversation.name += f"[{format_path(path)}]"
                yield located

    def read(
        self,
        document: JsonDocument[FormatReader],
        reader: FormatReader,
        lines_of: Callable[[Sequence[JsonPath]], list[int]] | None = None,
    ) -> Iterator[LocatedConversation | HistoryError]:
        """Yield one conversation, or those that the parts of a document belong to; the error if that fails."""
        lines = lines_of or document.lines_of
        try:
            conversations = reader.read_each(document.value) if reader.read_each else [reader.read(document.value)]
        except HistoryError as error:
            [line] = lines([error.at])
            yield HistoryError(error.what, at=self._path(document, error.at), file=self.name, line=line)
            return
        except RecursionError:
            yield HistoryError(TOO_DEEP, file=self.name, line=document.line)
            return

        def find_places(paths: Sequence[JsonPath]) -> list[TextPlace]:
            return [TextPlace(self.name, line) for line in lines(paths)]

        name = self.name if document.element is None else f"{self.name}[{document.element}]"
        for conversation in conversations:
            conversation.name = f"{name}{conversation.name}"
            yield LocatedConversation(conversation, self.name, document.line, find_places)

    def collect(self, document: JsonDocument[FormatReader], collector: SpanCollector) -> Iterator[HistoryError]:
        """Collect the spans of a document; yield the error if one has the wrong shape."""
        try:
            spans = list(read_spans(document.value))
            for span, line in zip(spans, document.lines_of([span.path for span in spans]), strict=True):
                collector.add(span, self.name, line)
        except HistoryError as error:
            [line] = document.lines_of([error.at])
            yield HistoryError(error.what, at=self._path(document, error.at), file=self.name, line=line)
        except RecursionError:
            yield HistoryError(TOO_DEEP, file=self.name, line=document.line)

    @staticmethod
    def _path(document: JsonDocument[FormatReader], path: JsonPath) -> JsonPath:
        return path if document.element is None else (document.element, *path)


def _lines_within(document: JsonDocument[FormatReader], path: JsonPath, inner: Sequence[JsonPath]) -> list[int]:
    """Return the lines of paths within the value at *path*."""
    return document.lines_of([(*path, *each) for each in inner])


def _value_at(value: Any, path: JsonPath) -> Any:
    for step in path:
        value = value[step]
    return value


class _TextDecoder:
    """Decoder of a file that is read in chunks."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._taken = 0

    def take(self, size: int) -> str:
        """Return about *size* more characters, none at the end, without a byte order mark.

        Raises:
            HistoryError: The file is not UTF-8.
        """
        # A chunk may end within its first character, and no text means the end of the file.
        text = ""
        while not text:
            chunk = self._file.read(size)
            text = self._decode(chunk)
            self._taken += len(chunk)
            if not chunk:
                break
        return text

    def _decode(self, chunk: bytes) -> str:
        if not self._taken:
            for mark, what in _FOREIGN_PREFIXES.items():
                if chunk.startswith(mark):
                    raise HistoryError(f"not UTF-8: it is {what}")
            chunk = chunk.removeprefix(codecs.BOM_UTF8)
        try:
            return self._decoder.decode(chunk, final=not chunk)
        except UnicodeDecodeError as error:
            problem = f"not UTF-8 at byte {self._taken + error.start}: {error.reason}; store it as UTF-8"
            raise HistoryError(problem) from None
