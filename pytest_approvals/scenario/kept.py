"""
Scenarios that were read before.

To read and validate a scenario takes a fifth of a second in a process that has not done so yet, most of it to import
what does it; to take it up again takes a millisecond. What is kept belongs to one text in one place, read by this very
code: it is found under a name that all of that is in.
"""

from __future__ import annotations

import os
import pickle
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

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
    file = (folder or cache_folder() / "scenarios") / f"{_name(path, root)}.pickle"
    with suppress(OSError, ValueError, TypeError, EOFError, AttributeError, ImportError, pickle.UnpicklingError):
        kept = pickle.loads(file.read_bytes())
        if isinstance(kept, Scenario):
            return kept
    from .load import load_scenario

    scenario = load_scenario(path, root=root)
    with suppress(OSError):
        _keep(scenario, file)
    return scenario


def _name(path: Path, root: Path) -> str:
    found = sha256(repr((str(path), str(root))).encode())
    for folder in _READERS:
        with os.scandir(folder) as entries:
            for entry in sorted(entries, key=lambda entry: entry.name):
                if entry.name.endswith(".py"):
                    about = entry.stat()
                    found.update(f"{entry.path} {about.st_mtime_ns} {about.st_size}\n".encode())
    try:
        found.update(path.read_bytes())
    except OSError as error:
        raise ScenarioError(str(path), None, f"the file cannot be read: {error.strerror}") from None
    return found.hexdigest()[:32]


def _keep(scenario: Scenario, file: Path) -> None:
    """Writes a file that is there whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_suffix(f".{os.getpid()}")
    unfinished.write_bytes(pickle.dumps(scenario))
    unfinished.replace(file)
