"""Copies of code of ours for environments: under a digest of its content, so that a change of ours makes a new one."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

PYTHON_SUFFIXES = (".py", ".json")
"""What is copied of a package that runs on Python."""


def copy_sources(source: Path, folder: Path, endings: Iterable[str] = PYTHON_SUFFIXES) -> Path:
    """
    Copies a module or a package below *folder*, unless that is done already, and gives the copy.

    Several processes may do so at a time.

    Arguments:
        endings: What is copied of a package.
    """
    files = sorted(_list_files(source, endings))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(source.parent)}\0".encode() + path.read_bytes() + b"\0")
    target = folder / digest.hexdigest()[:20]
    if not target.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        _copy_files(files, source.parent, target)
    return target / source.name


def _list_files(source: Path, endings: Iterable[str]) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    yield from (path for ending in endings for path in source.rglob(f"*{ending}"))


def _copy_files(files: list[Path], root: Path, target: Path) -> None:
    """Copies into a folder with another name first, so that whoever sees the right one sees all of it."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unfinished-") as unfinished:
        whole = Path(unfinished) / "whole"
        for path in files:
            to = whole / path.relative_to(root)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, to)
        try:
            os.rename(whole, target)
        except OSError:
            if not target.is_dir():
                raise
