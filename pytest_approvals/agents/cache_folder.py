"""Cache folder of the user: environments of agents, and scenarios that were read before."""

from __future__ import annotations

import os
import stat
import sys
from functools import cache
from pathlib import Path

CACHE_FOLDER_VARIABLE = "PYTEST_APPROVALS_CACHE"
"""The environment variable that names the folder of the cache."""


def get_cache_folder() -> Path:
    """Return the folder that the variable names, or `pytest-approvals` in the user's cache.

    A relative name is announced on standard error: what is in that folder may have come with a checkout.
    """
    if named := os.environ.get(CACHE_FOLDER_VARIABLE):
        folder = Path(named).expanduser()
        if not folder.is_absolute():
            _announce_relative(named, folder.absolute())
        return folder.absolute()
    caches = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    # The specification of XDG says to ignore a relative folder.
    return (caches if caches.is_absolute() else Path.home() / ".cache") / "pytest-approvals"


@cache
def _announce_relative(named: str, folder: Path) -> None:
    # Not once more by every worker of pytest-xdist.
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    from pytest_approvals.errors.printable import escape_value

    sys.stderr.write(
        f"pytest-approvals: {CACHE_FOLDER_VARIABLE} is relative ({escape_value(named)}): code is run from "
        f"{escape_value(str(folder))}; use an absolute path unless you trust that folder\n"
    )
    sys.stderr.flush()


def create_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700."""
    # `Path.mkdir(parents=True)` applies the mode to the last folder only.
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)


def find_foreign_access(path: Path, *, trusts_group: bool = False) -> str | None:
    """Return how other users can change a file, or add to a folder; None if only its user (and root) can.

    Args:
        path: The file or the folder.
        trusts_group: Whether the group may write: on many systems every user has one alone.

    Raises:
        OSError: It does not exist, or cannot be accessed.
    """
    user = os.geteuid()
    forbidden = stat.S_IWOTH | (0 if trusts_group else stat.S_IWGRP)
    # The link itself, too: its owner decides where it leads.
    for about in (path.lstat(), path.stat()):
        if about.st_uid not in (user, 0):
            return f"it belongs to another user (uid {about.st_uid})"
        if stat.S_ISLNK(about.st_mode):
            continue
        # In a folder like /tmp, nobody can rename what belongs to others.
        if about.st_mode & forbidden and not (stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX):
            return f"other users can write to it (mode {stat.S_IMODE(about.st_mode):04o})"
    return None
