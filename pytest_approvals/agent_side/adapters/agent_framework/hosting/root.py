"""
The folder below which servers keep their files.

A server finds it in the environment, which a process has one of: it is set while sessions use it, and put back when the
last one lets go.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

VARIABLE = "AGENTSERVER_STATE_ROOT"


class Root:
    """
    One such folder.

    Arguments:
        directory: Where it is; where it is empty, a folder is made, and removed again by `close`.
    """

    def __init__(self, directory: str = "") -> None:
        self._made = "" if directory else tempfile.mkdtemp(prefix="approvals-hosting-")
        self.path = directory or self._made

    @contextmanager
    def used(self) -> Iterator[None]:
        """Lets servers use it for what is inside; turns at the same time may use it together."""
        _used(self.path)
        try:
            yield
        finally:
            _left()

    @contextmanager
    def as_current_folder(self) -> Iterator[None]:
        """Makes it the current folder; early servers take that for their place, once, when they are built."""
        before = os.getcwd()
        os.chdir(self.path)
        try:
            yield
        finally:
            os.chdir(before)

    def close(self) -> None:
        """Removes it, where it was made."""
        if self._made:
            shutil.rmtree(self._made, ignore_errors=True)


_BEFORE: list[str | None] = []
"""What the environment said before, once for each user."""


def _used(path: str) -> None:
    _BEFORE.append(os.environ.get(VARIABLE))
    os.environ[VARIABLE] = path


def _left() -> None:
    # The last one to leave puts back what the first one found, in whatever order they leave.
    if len(_BEFORE) > 1:
        _BEFORE.pop()
        return
    before = _BEFORE.pop()
    if before is None:
        os.environ.pop(VARIABLE, None)
    else:
        os.environ[VARIABLE] = before
