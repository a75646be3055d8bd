"""
Writing a journal as it happens.

Events are numbered, kept, and written as JSON lines. Lines are gathered until `Journal.flush`, because a write for each
event would cost more than the run; the run loop flushes once a turn and before anything that can hang or kill. A
journal whose writer was killed can be read up to its last flushed line.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any, TypeVar

from pytest_approvals.agent_side.plain import plain

from .events import Event, event_from_dict

E = TypeVar("E", bound=Event)

FOOTER = "footer"
"""The name of the last line, `{"event": "footer", "count": N}`; its absence means that the run was cut off."""

_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False).encode


class Journal:
    """
    The record of one run.

    What `events` holds is what a reader of the file gets, but for tuples, which are lists there: values that JSON
    cannot hold are replaced when they are recorded.

    Arguments:
        path: The file to write, anew; None keeps the journal in memory only.

    Attributes:
        events: All events so far, in order; the k-th has `n == k`.
    """

    __slots__ = ("_file", "_lines", "events", "path")

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = path
        self.events: list[Event] = []
        self._lines: list[str] = []
        self._file: IO[bytes] | None = None if path is None else Path(path).open("wb")  # noqa: SIM115 -- `close` does

    def record(self, event: E) -> E:
        """
        Gives *event* its number and keeps it.

        Returns:
            The event as it was recorded: *event* itself, or a copy in which markers stand for what JSON cannot hold.
        """
        event.n = len(self.events) + 1
        try:
            line = _encode(event.to_dict())
        except (TypeError, ValueError, RecursionError):
            event, line = _made_plain(event)
        self.events.append(event)
        if self._file is not None:
            self._lines.append(line)
        return event

    def forget(self) -> None:
        """Forgets all events but the first one, here and in the file."""
        del self.events[1:]
        if self._file is not None:
            self._file.seek(0)
            self._file.truncate()
            self._lines[:] = [_encode(event.to_dict()) for event in self.events]

    def flush(self) -> None:
        """Hands all that was recorded to the operating system: from here on it survives the end of this process."""
        if self._file is not None and self._lines:
            self._lines.append("")
            self._file.write("\n".join(self._lines).encode("ascii"))
            self._file.flush()
            self._lines.clear()

    def close(self) -> None:
        """Writes the footer and lets go of the file; the events stay."""
        if self._file is None:
            return
        self._lines.append(_encode({"event": FOOTER, "count": len(self.events)}))
        self.flush()
        self._file.close()
        self._file = None


def _made_plain(event: E) -> tuple[E, str]:
    written: dict[str, Any] = plain(event.to_dict())
    made = event_from_dict(written)
    assert isinstance(made, type(event))
    return made, _encode(written)
