"""Copies of our code for environments, one for each digest of its content."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from pytest_approvals.agents.cache_folder import create_private_folder

PYTHON_SUFFIXES = (".py", ".json")
"""Suffixes of the files that are copied of a Python package."""


def copy_sources(source: Path, folder: Path, suffixes: Iterable[str] = PYTHON_SUFFIXES) -> Path:
    """Copy a module or a package below *folder*, unless a copy exists, and return the copy.

    Several processes may do so at a time.

    Args:
        source: The module or the folder of the package.
        folder: The folder of all copies.
        suffixes: Suffixes of the files that are copied of a package.
    """
    files = sorted(_list_files(source, suffixes))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(source.parent)}\0".encode() + path.read_bytes() + b"\0")
    target = folder / digest.hexdigest()[:20]
    if not target.is_dir():
        create_private_folder(folder)
        _copy_files(files, source.parent, target)
    return target / source.name


def _list_files(source: Path, suffixes: Iterable[str]) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    yield from (path for suffix in suffixes for path in source.rglob(f"*{suffix}"))


def _copy_files(files: list[Path], root: Path, target: Path) -> None:
    """Copy into a folder with another name first, so that a copy that is visible is complete."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unfinished-") as unfinished:
        whole = Path(unfinished) / "whole"
        for path in files:
            copy = whole / path.relative_to(root)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        try:
            os.rename(whole, target)
        except OSError:
            # Another process was faster.
            if not target.is_dir():
                raise
