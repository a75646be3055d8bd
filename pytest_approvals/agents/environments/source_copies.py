"""Copies of our code for environments, one for each digest of its content; a copy is verified before it is used."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from pytest_approvals.agents.cache_folder import create_private_folder, find_foreign_access

PYTHON_SUFFIXES = (".py", ".json")
"""Suffixes of the files that are copied of a Python package."""


def copy_sources(source: Path, folder: Path, suffixes: Iterable[str] = PYTHON_SUFFIXES) -> Path:
    """Copy a module or a package below *folder*, unless an undamaged copy exists, and return the copy.

    Several processes may do so at a time.

    Args:
        source: The module or the folder of the package.
        folder: The folder of all copies.
        suffixes: Suffixes of the files that are copied of a package.
    """
    files = [path.relative_to(source.parent) for path in sorted(_list_files(source, suffixes))]
    digest = _digest_files(source.parent, files)
    target = folder / digest
    if not _is_intact(target, files, digest):
        create_private_folder(folder)
        _copy_files(files, source.parent, target)
    return target / source.name


def _digest_files(root: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file}\0".encode() + (root / file).read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _is_intact(copy: Path, files: Iterable[Path], digest: str) -> bool:
    try:
        return find_foreign_access(copy, trusts_group=True) is None and _digest_files(copy, files) == digest
    except OSError:
        return False


def _list_files(source: Path, suffixes: Iterable[str]) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    yield from (path for suffix in suffixes for path in source.rglob(f"*{suffix}"))


def _copy_files(files: list[Path], root: Path, target: Path) -> None:
    """Copy into a folder with another name first, so that a copy that is visible is complete; replace a damaged one."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unfinished-") as unfinished:
        whole = Path(unfinished) / "whole"
        for file in files:
            copy = whole / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, copy)
        whole.chmod(0o700)
        # Another process may have replaced it in the meantime, and use it.
        if not _is_intact(target, files, target.name):
            with suppress(FileNotFoundError):
                os.rename(target, Path(unfinished) / "damaged")
        try:
            os.rename(whole, target)
        except OSError:
            # Another process was faster.
            if not target.is_dir():
                raise
