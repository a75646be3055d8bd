"""Where this package keeps what it can make again: environments, and scenarios that were read."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER_VARIABLE = "PYTEST_APPROVALS_CACHE"
"""The environment variable that names the folder of the cache."""


def cache_folder() -> Path:
    """Gives the folder of the cache: the one that the variable names, else one among the person's caches."""
    if named := os.environ.get(FOLDER_VARIABLE):
        return Path(named).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser().absolute() / "pytest-approvals"
