"""Store of remembered runs: what a run recorded and how it was judged, by the digest of what it depends on.

It is one SQLite file in the user's cache folder, which only its user can access. A row is JSON, compressed, beside its
checksum: one that is damaged, or that another user could have written, is worth nothing, and its run is played again.
Several processes may read and write it at once. What was not needed for the longest time goes first when it grows too
large.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import time
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pytest_approvals.agents.cache_folder import create_private_folder, get_cache_folder

FORMAT = 1
"""The version of the rows."""

FOLDER_VARIABLE = "PYTEST_APPROVALS_RUNS"
"""The environment variable that names the folder of the file, or is `off` if nothing is to be remembered."""

MAX_BYTES = 256 << 20
"""The size of all rows together above which the oldest ones are removed."""

_FILE = "runs.sqlite3"
_BATCH = 64
_BUSY_SECONDS = 10.0
_SECONDS_BETWEEN_TRIES = 0.01
_TABLE = "CREATE TABLE IF NOT EXISTS runs (key TEXT PRIMARY KEY, used INTEGER, checksum BLOB, body BLOB) WITHOUT ROWID"


def get_runs_folder() -> Path | None:
    """Return the folder that the variable names, or `runs` in the cache of this package; None if it is `off`."""
    named = os.environ.get(FOLDER_VARIABLE)
    if named == "off":
        return None
    return Path(named).expanduser().absolute() if named else get_cache_folder() / "runs"


class RememberedRuns:
    """The remembered runs of a user.

    No method raises because of the file: what cannot be read is not there, and what cannot be written is not kept.

    Args:
        folder: The folder of the file; see `get_runs_folder`.
        max_bytes: The size above which the oldest rows are removed when it is closed.

    Attributes:
        problem: Why nothing is kept; None if all is well.
    """

    def __init__(self, folder: Path, *, max_bytes: int = MAX_BYTES) -> None:
        self.problem: str | None = None
        self._max_bytes = max_bytes
        self._path = folder / _FILE
        self._waiting: dict[str, bytes] = {}
        self._used: set[str] = set()
        self._connection = self._open()

    def find(self, key: str) -> Any:
        """Return what was kept under a key; None if there is nothing, or nothing that can be believed."""
        if self._connection is None:
            return None
        body = self._waiting.get(key)
        if body is None:
            body = self._read(key)
        if body is None:
            return None
        self._used.add(key)
        # A row with the right checksum was written by this code, but perhaps by another version of it.
        with suppress(ValueError, zlib.error):
            return json.loads(zlib.decompress(body))
        return None

    def values(self) -> Iterator[Any]:
        """Yield all that can be believed of what was written."""
        if self._connection is not None:
            for (key,) in self._connection.execute("SELECT key FROM runs ORDER BY key").fetchall():
                if (value := self.find(key)) is not None:
                    yield value

    def keep(self, key: str, value: Any) -> None:
        """Keep a value that JSON can hold under a key."""
        if self._connection is None:
            return
        # Level 1, the fastest: a row is written in every run, and small.
        self._waiting[key] = zlib.compress(json.dumps(value, separators=(",", ":")).encode(), 1)
        if len(self._waiting) >= _BATCH:
            self.flush()

    def forget(self, keys: Iterable[str]) -> None:
        """Remove what was kept under some keys."""
        gone = list(keys)
        for key in gone:
            self._waiting.pop(key, None)
        self._write("DELETE FROM runs WHERE key = ?", [(key,) for key in gone])

    def flush(self) -> None:
        """Write what waits."""
        now = int(time.time())
        rows = [(key, now, _checksum(key, body), body) for key, body in self._waiting.items()]
        self._waiting.clear()
        self._write("INSERT OR REPLACE INTO runs VALUES (?, ?, ?, ?)", rows)

    def close(self) -> None:
        """Write what waits, note what was used, and remove the oldest rows if there are too many."""
        self.flush()
        now = int(time.time())
        self._write("UPDATE runs SET used = ? WHERE key = ?", [(now, key) for key in self._used])
        self._used.clear()
        self._remove_oldest()
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _open(self, *, is_retry: bool = False) -> sqlite3.Connection | None:
        try:
            create_private_folder(self._path.parent)
            # Created here, because SQLite would create it with the mode of the umask.
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            _require_private(self._path.parent)
            _require_private(self._path)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                _prepare_patiently(connection)
            except sqlite3.Error:
                connection.close()
                raise
        except sqlite3.DatabaseError as error:
            if not is_retry and not isinstance(error, sqlite3.OperationalError):
                with suppress(OSError):
                    self._path.unlink()
                    return self._open(is_retry=True)
            self.problem = f"{self._path}: {error}"
        except OSError as error:
            self.problem = f"{self._path}: {error.strerror or error}"
        else:
            return connection
        return None

    def _read(self, key: str) -> bytes | None:
        assert self._connection is not None
        try:
            row = self._connection.execute("SELECT checksum, body FROM runs WHERE key = ?", (key,)).fetchone()
        except sqlite3.Error as error:
            self._give_up(error)
            return None
        if row is None or not isinstance(row[1], bytes) or row[0] != _checksum(key, row[1]):
            return None
        return row[1]

    def _write(self, statement: str, rows: list[Any]) -> None:
        if self._connection is None or not rows:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany(statement, rows)
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            self._give_up(error)

    def _remove_oldest(self) -> None:
        if self._connection is None:
            return
        try:
            total = self._connection.execute("SELECT coalesce(sum(length(body)), 0) FROM runs").fetchone()[0]
            if total <= self._max_bytes:
                return
            gone: list[tuple[str]] = []
            for key, size in self._connection.execute("SELECT key, length(body) FROM runs ORDER BY used, key"):
                if total <= self._max_bytes // 2:
                    break
                gone.append((key,))
                total -= size
        except sqlite3.Error as error:
            self._give_up(error)
            return
        self._write("DELETE FROM runs WHERE key = ?", gone)

    def _give_up(self, error: sqlite3.Error) -> None:
        self.problem = f"{self._path}: {error}"
        if self._connection is not None:
            with suppress(sqlite3.Error):
                self._connection.close()
        self._connection = None
        # A damaged file would stay so; one that is locked, read-only or on a full disk may be well tomorrow.
        if not isinstance(error, sqlite3.OperationalError):
            with suppress(OSError):
                self._path.unlink()


def _prepare_patiently(connection: sqlite3.Connection) -> None:
    """Prepare a file that other processes may be preparing, too.

    SQLite does not wait for them where it changes the journal's mode, whatever the timeout of the connection is.
    """
    deadline = time.monotonic() + _BUSY_SECONDS
    while True:
        try:
            return _prepare(connection)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
        time.sleep(_SECONDS_BETWEEN_TRIES)


def _prepare(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    # After a crash of the machine the file may be damaged; then the runs are played again.
    connection.execute("PRAGMA synchronous = OFF")
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in (0, FORMAT):
        connection.execute("DROP TABLE IF EXISTS runs")
    connection.execute(_TABLE)
    connection.execute(f"PRAGMA user_version = {FORMAT}")


def _require_private(path: Path) -> None:
    about = path.stat()
    if about.st_uid != os.geteuid() or about.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise OSError("not used, because other users may have written it")


def _checksum(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()
