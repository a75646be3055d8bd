"""Cache folder of the user: environments of agents, and scenarios that were read before."""

from __future__ import annotations

import os
from pathlib import Path

CACHE_FOLDER_VARIABLE = "PYTEST_APPROVALS_CACHE"
"""The environment variable that names the folder of the cache."""


def get_cache_folder() -> Path:
    """Return the folder that the variable names, or `pytest-approvals` in the user's cache."""
    if named := os.environ.get(CACHE_FOLDER_VARIABLE):
        return Path(named).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser().absolute() / "pytest-approvals"


def create_private_folder(folder: Path) -> None:
    """Create a folder and its missing parents with mode 0700."""
    # `Path.mkdir(parents=True)` applies the mode to the last folder only.
    for path in (*reversed(folder.parents), folder):
        if not path.is_dir():
            path.mkdir(mode=0o700, exist_ok=True)
