"""Journal files: written as a run happens, and read back.

Events are numbered, kept, and written as JSON lines. Lines are buffered until `Journal.flush`, because a write for each
event would cost more than the run; the run loop flushes once a turn and before anything that can hang or kill.

A journal whose writer was killed is not damaged: it is cut off, has no footer, and holds all that was flushed.
Everything else that does not fit is an error with its line.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from errno import ENOSPC
from io import FileIO
from pathlib import Path
from typing import IO, Any, TypeVar

from pytest_approvals.errors import JournalError, suggest_name
from pytest_approvals.errors.printable import quote
from pytest_approvals.journal.event_schema import find_field_error, required_fields
from pytest_approvals.journal.events import EVENTS, JOURNAL_FORMAT, Event, Header, event_from_dict

RecordedEvent = TypeVar("RecordedEvent", bound=Event)

FOOTER = "footer"
"""The name of the last line, `{"event": "footer", "count": N}`; its absence means that the run was cut off."""

_MAX_NAME_LENGTH = 200
"""Bytes of a file name; file systems allow 255, and tools may append something."""

_PLAIN_SCENARIO = re.compile(r"[a-z0-9]+/[a-z0-9-]+")
"""Scenario ids that can be read back from a file name, in which `-` stands for the slash."""


def _create_encoder() -> Callable[[Any], str]:
    """Return a function that writes a value as JSON in one line."""
    encoder = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
    create: Any = getattr(json.encoder, "c_make_encoder", None)
    if create is None:
        return encoder.encode
    # `JSONEncoder.encode` creates its encoder in C anew for each value, which takes half of the time of an event.
    separators = (encoder.key_separator, encoder.item_separator)
    parts = create(None, encoder.default, json.encoder.encode_basestring_ascii, None, *separators, False, False, False)
    return lambda value: "".join(parts(value, 0))


_encode = _create_encoder()


def journal_file_name(scenario: str, *words: str) -> str:
    """Return the name of the journal file of a run.

    No two runs share a name. A name that could stand for two, or is too long for a file system, ends with a hash.

    Args:
        scenario: The id of the scenario.
        words: The agent and the variant.

    >>> journal_file_name("basics/pay", "reference", "none-held"), journal_file_name("a-b/c")
    ('basics-pay__reference__none-held.jsonl', 'a-b-c~4e84717d.jsonl')
    """
    name = re.sub(r"[^\w.=-]+", "-", "__".join((scenario, *words)))
    plain = _PLAIN_SCENARIO.fullmatch(scenario) and all(re.fullmatch(r"[\w.=-]+", word) for word in words)
    encoded = name.encode("utf-8", "replace")
    if not plain or any("__" in f"_{word}_" for word in words) or len(encoded) > _MAX_NAME_LENGTH:
        # Imported for the few names that need it, because that takes longer than anything else in this module.
        from hashlib import sha256

        digest = sha256("\0".join((scenario, *words)).encode("utf-8", "surrogatepass")).hexdigest()[:8]
        name = f"{encoded[:_MAX_NAME_LENGTH].decode('utf-8', 'ignore')}~{digest}"
    return f"{name}.jsonl"


class Journal:
    """The record of one run.

    A disk that takes no more does not end the run: the file is given up, and `failure` says so.

    `events` holds what a reader of the file gets, except that tuples become lists there: values that JSON cannot hold
    are replaced when they are recorded.

    Args:
        path: The file to write, from scratch; None keeps the journal in memory only.

    Attributes:
        failure: Why the file does not hold all of them.
    """

    __slots__ = ("_events", "_file", "_lines", "_unbuilt", "failure", "path")

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = path
        self._events: list[Any] = []
        self._unbuilt: list[int] = []
        self.failure: JournalError | None = None
        self._lines: list[str] = []
        self._file: FileIO | None = None
        if path is not None:
            try:
                # Unbuffered: a failed write must not be tried again when the file is closed.
                self._file = Path(path).open("wb", buffering=0)  # noqa: SIM115 -- `close` does
            except OSError as error:
                self._give_up(error)

    @property
    def events(self) -> list[Event]:
        """All events so far, in order; the k-th has `n == k`."""
        while self._unbuilt:
            # Built once, also if two threads read the events.
            with contextlib.suppress(IndexError):
                at = self._unbuilt.pop()
                event = self._events[at]()
                event.n = at + 1
                self._events[at] = self._to_line(event)[0]
        return self._events

    def record_later(self, build: Callable[[], Event]) -> None:
        """Record an event that is built when the events are read, or now if there is a file.

        Args:
            build: Builds the event, of values that do not change.
        """
        if self._file is not None:
            self.record(build())
            return
        self._unbuilt.append(len(self._events))
        self._events.append(build)

    def record(self, event: RecordedEvent) -> RecordedEvent:
        """Give *event* its number and keep it.

        Returns:
            The event as it was recorded: *event* itself, or a copy in which markers stand for what JSON cannot hold.
        """
        event.n = len(self._events) + 1
        event, line = self._to_line(event)
        self._events.append(event)
        if self._file is not None:
            self._lines.append(line)
        return event

    @staticmethod
    def _to_line(event: RecordedEvent) -> tuple[RecordedEvent, str]:
        try:
            return event, _encode(event.to_dict())
        except (TypeError, ValueError, RecursionError):
            # Agents may hand over any object; a run must not end because of one that JSON cannot hold.
            return _to_json_safe(event)

    def forget(self) -> None:
        """Delete all events but the first one, here and in the file."""
        del self._events[1:]
        if self._unbuilt:
            self._unbuilt[:] = [0] if self._unbuilt[0] == 0 else []
        if self._file is not None:
            try:
                self._file.seek(0)
                self._file.truncate()
            except OSError as error:
                self._give_up(error)
            else:
                self._lines[:] = [_encode(event.to_dict()) for event in self.events]

    def flush(self) -> None:
        """Hand all that was recorded to the operating system: from here on it survives the end of this process."""
        if self._file is not None and self._lines:
            self._lines.append("")
            # The encoder escapes everything that is not ASCII.
            data = memoryview("\n".join(self._lines).encode("ascii"))
            self._lines.clear()
            try:
                while data:
                    data = data[self._file.write(data) :]
            except OSError as error:
                self._give_up(error)

    def close(self) -> None:
        """Write the footer and close the file; the events stay."""
        if self._file is None:
            return
        self._lines.append(_encode({"event": FOOTER, "count": len(self.events)}))
        self.flush()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _give_up(self, error: OSError) -> None:
        remedy = "free some space, or keep the journals elsewhere" if error.errno == ENOSPC else "name another folder"
        self.failure = JournalError(str(self.path), None, f"cannot be written: {error.strerror}; {remedy}")
        if self._file is not None:
            with contextlib.suppress(OSError):
                self._file.close()
            self._file = None


def _to_json_safe(event: RecordedEvent) -> tuple[RecordedEvent, str]:
    # Imported for the few events that need it, because most runs have none.
    from pytest_approvals.agent_side.rpc.serialization import to_json_safe

    written: dict[str, Any] = to_json_safe(event.to_dict())
    rebuilt = event_from_dict(written)
    assert isinstance(rebuilt, type(event))
    return rebuilt, _encode(written)


ParsedEvent = TypeVar("ParsedEvent", bound=Event)

_CHUNK_SIZE = 1 << 16
"""About how many bytes are read at once."""

MAX_DEPTH = 100
"""How deep the values of an event may be nested: what works on them recurses, and Python's stack is limited."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredJournal:
    """One journal of a file.

    Attributes:
        path: The file.
        line: The line of its header, from 1.
        events: Its events.
        complete: It has its footer, so its writer came to the end.
        cut_line: The line in which the writer was killed; that line is not among the events.
    """

    path: str
    line: int
    events: list[Event] = field(repr=False)
    complete: bool = False
    cut_line: int | None = None

    @property
    def header(self) -> Header:
        """What ran."""
        first = self.events[0]
        assert isinstance(first, Header)
        return first


def read_journal(path: Path | str) -> StoredJournal:
    """Return the journal of a file that holds one.

    Raises:
        JournalError: A line is damaged, an event or a field is unknown, the header is missing, the footer counts
            something else, or there are several journals.
    """
    stored = list(read_journals(path))
    if len(stored) > 1:
        message = f"unexpected second header: the file holds {len(stored)} journals, expected one"
        raise JournalError(str(path), stored[1].line, message)
    return stored[0]


def read_journals(path: Path | str) -> Iterator[StoredJournal]:
    """Yield the journals of a file one by one, so that only one is in memory; each begins with its header.

    Raises:
        JournalError: A line is damaged, an event or a field is unknown, the header is missing, or the footer counts
            something else.
    """
    try:
        with open(path, "rb") as file:
            yield from _JournalFileReader(str(path)).journals(file)
    except OSError as error:
        raise JournalError(str(path), None, f"cannot be read: {error.strerror}") from None


class _DuplicateName(ValueError):
    """An object of a line has a name twice, and programs disagree about which of the two is meant."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise _DuplicateName(next(name for name in names if names.count(name) > 1))
    return value


def _reject_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


_decode = json.JSONDecoder(object_pairs_hook=_build_object, parse_constant=_reject_constant).decode


def _is_too_deep(line: bytes, written: Any) -> bool:
    # Most lines have too few brackets to be deep, so that nobody need look at their values.
    if line.count(b"[") + line.count(b"{") <= MAX_DEPTH:
        return False
    depth, level = 0, [written]
    while level := [part for part in level if isinstance(part, (dict, list))]:
        depth += 1
        level = [inner for part in level for inner in (part.values() if isinstance(part, dict) else part)]
    return depth > MAX_DEPTH


class _JournalFileReader:
    """Reads the journals in the lines of one file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.line = 0
        self.cut_line: int | None = None

    def journals(self, file: IO[bytes]) -> Iterator[StoredJournal]:
        start, events = 0, list[Event]()
        for written in self._objects(file):
            self.line += 1
            kind = written.pop("event", None)
            if kind == FOOTER:
                self._check_footer(written, events)
                yield StoredJournal(path=self.path, line=start, events=events, complete=True)
                events = []
            elif kind == Header.kind:
                if events:
                    yield StoredJournal(path=self.path, line=start, events=events)
                start, events = self.line, [self._parse_header(written)]
            elif events:
                events.append(self._parse_event(kind, written))
            else:
                raise self._error(f"invalid first event: expected a header, not {kind!r}")
        if events:
            yield StoredJournal(path=self.path, line=start, events=events, cut_line=self.cut_line)
        elif not start:
            raise JournalError(self.path, None, "empty journal file")

    def _objects(self, file: IO[bytes]) -> Iterator[dict[str, Any]]:
        """Yield what the lines hold; many lines at once, because parsing them one by one takes half as long again."""
        while lines := file.readlines(_CHUNK_SIZE):
            try:
                written = _decode((b"[" + b",".join(lines) + b"]").decode())
                # Invalid lines may be valid JSON when joined, so the results are counted.
                good = len(written) == len(lines) and all(type(line) is dict for line in written)
                good = good and not any(map(_is_too_deep, lines, written))
            except (ValueError, RecursionError):
                good = False
            yield from written if good else self._one_by_one(lines)

    def _one_by_one(self, lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
        for line in lines:
            try:
                written = _decode(line.decode())
            except _DuplicateName as duplicate:
                self.line += 1
                raise self._error(f"invalid line: duplicate name {quote(duplicate.name)} in an object") from None
            except (ValueError, RecursionError):
                self.line += 1
                # Only a writer that was killed leaves its last line without an end.
                if not line.endswith(b"\n"):
                    self.cut_line = self.line
                    return
                if not line.strip():
                    continue
                raise self._error("invalid line: expected JSON") from None
            if type(written) is not dict:
                self.line += 1
                raise self._error("invalid line: expected a JSON object")
            if _is_too_deep(line, written):
                self.line += 1
                raise self._error(f"invalid line: nested deeper than {MAX_DEPTH} levels")
            yield written

    def _parse_event(self, kind: Any, written: dict[str, Any]) -> Event:
        cls = EVENTS.get(kind) if type(kind) is str else None
        if cls is None:
            raise self._error(f"unknown event {kind!r}{suggest_name(str(kind), [*EVENTS, FOOTER])}")
        return self._build_event(cls, written)

    def _parse_header(self, written: dict[str, Any]) -> Header:
        if written.get("format", JOURNAL_FORMAT) != JOURNAL_FORMAT:
            raise self._error(f"unknown journal format {written['format']!r}: expected {JOURNAL_FORMAT}")
        return self._build_event(Header, written)

    def _build_event(self, cls: type[ParsedEvent], written: dict[str, Any]) -> ParsedEvent:
        if message := find_field_error(cls, written):
            raise self._error(message)
        try:
            return cls(**written)
        except TypeError:
            missing = [name for name in required_fields(cls) if name not in written]
            raise self._error(f"{cls.kind}: missing field {missing[0]!r}") from None

    def _check_footer(self, written: dict[str, Any], events: list[Event]) -> None:
        if not events:
            raise self._error("unexpected footer: no journal precedes it")
        if written != {"count": len(events)}:
            raise self._error(f"the footer counts {written.get('count')!r} events, but there are {len(events)}")

    def _error(self, message: str) -> JournalError:
        return JournalError(self.path, self.line, message)
