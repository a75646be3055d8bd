"""Copies of a session's store: what it held before a turn, to be put back when the story says so.

A write that was never flushed is gone after a power cut, and a replica may not have it yet: what is read then is the
store as it was. So the files of the store are copied between two turns, when no turn writes to them, and put back as a
whole while no process has them open. What a server keeps, such as PostgreSQL, is not in these files.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from pytest_approvals.runner.saved_states import SavedState

_INDEX_OF_WAL = "-shm"
"""End of the name of a file of SQLite that says nothing of its own, and is made anew when no process has it open."""

_LOCK = ".lock"
"""End of the names of files that change while nothing is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreCopy:
    """What was stored of a session before a turn.

    Attributes:
        turn: The number of the turn.
        save: The latest save by then.
        files: The contents of its store, by their paths in its folder; None for a folder in it.
    """

    turn: int
    save: SavedState
    files: Mapping[str, bytes | None]

    @classmethod
    def take(cls, turn: int, save: SavedState, directory: str) -> StoreCopy:
        """Copy what is in *directory*, which is empty if the session has no durable store."""
        # How far the script has got goes on with the present state of a store.
        save = replace(save, script=save.script.copy())
        return cls(turn=turn, save=save, files=_read_files(directory))

    def is_outdated(self, directory: str) -> bool:
        """Return whether something was stored in *directory* since."""
        return _without_locks(_read_files(directory)) != _without_locks(self.files)

    def put_back(self, directory: str) -> None:
        """Let *directory* hold these files, and no others."""
        if not directory:
            return
        root = Path(directory)
        for path in list(root.iterdir()):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        for name, content in self.files.items():
            if content is None:
                (root / name).mkdir(parents=True, exist_ok=True)
            else:
                (root / name).write_bytes(content)


def _read_files(directory: str) -> dict[str, bytes | None]:
    """Return the files and folders in a folder, each folder before what is in it."""
    root = Path(directory)
    paths = sorted(root.rglob("*")) if directory else []
    return {
        str(path.relative_to(root)): None if path.is_dir() else path.read_bytes()
        for path in paths
        if not path.name.endswith(_INDEX_OF_WAL)
    }


def _without_locks(files: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
    return {name: content for name, content in files.items() if not name.endswith(_LOCK)}
