"""The framework's own store of sessions."""

from __future__ import annotations

import warnings
from typing import Any

from ...contract import Blueprint, Unsupported


def opened(blueprint: Blueprint) -> Any:
    """Opens the store that a serialize mode asks for."""
    try:
        from agent_framework import FileSessionStore
    except ImportError as error:
        raise Unsupported("native.file", "this release has no store of sessions") from error
    with warnings.catch_warnings():
        # It is marked as experimental, which is no news to whoever chose it.
        warnings.simplefilter("ignore", FutureWarning)
        return FileSessionStore(blueprint.directory)
