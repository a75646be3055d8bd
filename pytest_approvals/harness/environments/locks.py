"""Locks between processes: whoever builds an environment is alone, whoever uses it keeps it from being removed."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path


class FileLock:
    """
    A lock on a file, held by this process until it is let go or the process ends.

    Arguments:
        path: The file, which is made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def share(self) -> None:
        """Waits until nobody is alone with it; others may share it then."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def take(self) -> None:
        """Waits until nobody else has it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_take(self) -> bool:
        """Takes it if nobody else has it; says whether."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def let_go(self) -> None:
        """Lets it go for good."""
        os.close(self._descriptor)
