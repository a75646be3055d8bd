"""
The durable store: sessions in one SQLite file.

A reference names a session, not a moment of it, so that an older reference leads to the present state and a decision
settles once. A turn holds its session; the hold ends with the process at the latest. What was written survives the end
of the process, not a power cut.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest_approvals.simulation.reference.refusals import Busy


class Store:
    """
    The sessions in one folder.

    Arguments:
        directory: Where the files are.
        name: A session that is in there already; without it, a new one is made.
    """

    def __init__(self, directory: str, name: str | None = None) -> None:
        self._file = sqlite3.connect(Path(directory) / "sessions.sqlite", isolation_level=None)
        self._file.execute("PRAGMA synchronous = OFF")
        self._file.execute("CREATE TABLE IF NOT EXISTS sessions (number INTEGER PRIMARY KEY, state TEXT)")
        self.name = name or f"session-{self._new()}"
        self._number = int(self.name.removeprefix("session-"))
        self._lock = sqlite3.connect(Path(directory) / f"{self.name}.lock", isolation_level=None, timeout=0)

    def _new(self) -> int | None:
        return self._file.execute("INSERT INTO sessions (state) VALUES (NULL)").lastrowid

    def read(self) -> str | None:
        """
        Gives what was written last; None where nothing was.

        Errors:
            KeyError: There is no such session.
        """
        found = self._file.execute("SELECT state FROM sessions WHERE number = ?", (self._number,)).fetchone()
        if found is None:
            raise KeyError(self.name)
        state: str | None = found[0]
        return state

    def write(self, state: str) -> None:
        """Writes the state; it is durable when this returns."""
        self._file.execute("UPDATE sessions SET state = ? WHERE number = ?", (state, self._number))

    @contextmanager
    def hold(self) -> Iterator[None]:
        """
        Keeps everybody else from taking a turn in the session.

        Errors:
            Busy: Somebody else holds it.
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
        """Closes the files."""
        self._file.close()
        self._lock.close()
