"""
Scenarios that were read before.

To read and validate a scenario takes a fifth of a second in a process that has not done so yet, most of it to import
what does it; to take it up again takes a millisecond. What is kept belongs to one text with one id, read by this very
code: all of that stands beside it, and must be the same.
"""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from zlib import crc32

from pytest_approvals.caches import cache_folder
from pytest_approvals.errors import ScenarioError

from .parts import Scenario

_READERS = (Path(__file__).parent, Path(__file__).parent / "parts", Path(__file__).parents[1] / "agent_side")
"""The folders with the code that says what a scenario is."""


def kept_scenario(path: Path, *, root: Path, folder: Path | None = None) -> Scenario:
    """
    Gives a scenario as `load_scenario` does, from what was kept where that can be.

    Arguments:
        folder: Where scenarios are kept; by default in the cache of this package.

    Errors:
        ScenarioError: The file cannot be read, or has a mistake.
    """
    origin = _origin(path, root)
    file = (folder or cache_folder() / "scenarios") / f"{path.stem}-{crc32(origin[0].encode()):08x}.pickle"
    with suppress(OSError, ValueError, TypeError, EOFError, AttributeError, ImportError, pickle.UnpicklingError):
        kept_origin, kept = pickle.loads(file.read_bytes())
        if kept_origin == origin and isinstance(kept, Scenario):
            return replace(kept, path=str(path))
    from .load import load_scenario

    scenario = load_scenario(path, root=root)
    with suppress(OSError):
        _keep((origin, scenario), file)
    return scenario


def _origin(path: Path, root: Path) -> tuple[str, tuple[tuple[str, int, int], ...], bytes]:
    """Gives all that a scenario comes of: its place below the root, the code that reads it, and its text."""
    readers: list[tuple[str, int, int]] = []
    for folder in _READERS:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(".py"):
                    about = entry.stat()
                    readers.append((entry.path, about.st_mtime_ns, about.st_size))
    try:
        return os.path.relpath(path.resolve(), root.resolve()), tuple(readers), path.read_bytes()
    except OSError as error:
        raise ScenarioError(str(path), None, f"the file cannot be read: {error.strerror}") from None


def _keep(kept: object, file: Path) -> None:
    """Writes a file that is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(pickle.dumps(kept))
    unfinished.replace(file)
