"""Durable store: sessions in one SQLite file.

A reference names a session, not a moment of it: an older reference leads to the present state, and a decision settles
once. A turn locks its session; the lock ends with the process at the latest. What was written survives the end of the
process, not a power cut.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_approvals.simulation.reference.refusals import Busy


class Store:
    """The sessions in one folder.

    Args:
        directory: Folder of the files.
        name: An existing session; default: a new one.
    """

    def __init__(self, directory: str, name: str | None = None) -> None:
        # Autocommit: each write is a transaction of its own.
        self._file = sqlite3.connect(Path(directory) / "sessions.sqlite", isolation_level=None)
        # An fsync for each write would only help against a power cut.
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS sessions (number INTEGER PRIMARY KEY, state TEXT)")
        self.name = name or f"session-{self._new()}"
        self._number = int(self.name.removeprefix("session-"))
        # A file for each session, so that its lock leaves other sessions alone; no timeout, so that a second turn is
        # refused instead of queued.
        self._lock = sqlite3.connect(Path(directory) / f"{self.name}.lock", isolation_level=None, timeout=0)

    def _new(self) -> int | None:
        return self._file.execute("INSERT INTO sessions (state) VALUES (NULL)").lastrowid

    def read(self) -> str | None:
        """Return the last written state; None for a new session.

        Raises:
            KeyError: Unknown session.
        """
        row = self._file.execute("SELECT state FROM sessions WHERE number = ?", (self._number,)).fetchone()
        if row is None:
            raise KeyError(self.name)
        state: str | None = row[0]
        return state

    def write(self, state: str) -> None:
        """Write the state; it is durable when this returns."""
        self._file.execute("UPDATE sessions SET state = ? WHERE number = ?", (state, self._number))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the session against other turns.

        Raises:
            Busy: It is locked.
        """
        try:
            self._lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError:
            raise Busy from None
        try:
            yield
        finally:
            self._lock.execute("ROLLBACK")

    def close(self) -> None:
        """Close the files."""
        self._file.close()
        self._lock.close()
