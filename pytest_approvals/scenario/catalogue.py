"""Discovery of scenario files: in the folders of a project, and in the built-in catalogue.

A project names its folders in the ini entry `approvals_scenarios`; the default is `scenarios`. A project without any
scenarios gets the built-in catalogue.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pytest_approvals.agents.cache_folder import (
    CACHE_FOLDER_VARIABLE,
    create_private_folder,
    find_foreign_access,
    get_cache_folder,
)
from pytest_approvals.errors import UnknownName, UsageError

SCENARIO_SUFFIX = ".approval.yaml"
"""Suffix of scenario files."""

INI_NAME = "approvals_scenarios"
"""Ini entry with the scenario folders of a project."""

_TOML_TABLES = {
    "pytest.toml": (("pytest",),),
    ".pytest.toml": (("pytest",),),
    "pyproject.toml": (("tool", "pytest"), ("tool", "pytest", "ini_options")),
}
_INI_SECTIONS = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest", "setup.cfg": "tool:pytest"}


@cache
def stock_folder() -> Path:
    """Return the folder of the built-in catalogue: unpacked from the installed package, or next to it in a checkout.

    Raises:
        UsageError: It cannot be unpacked.
    """
    package = Path(__file__).parents[1]
    archive = package / "catalogue.zip"
    return unpack_catalogue(archive) if archive.is_file() else package.parent / "scenarios"


def unpack_catalogue(archive: Path) -> Path:
    """Return the folder in the user's cache that holds what is in *archive*, or one for temporary files.

    Raises:
        UsageError: Neither can be written to.
    """
    from hashlib import sha256
    from tempfile import gettempdir

    digest = sha256(archive.read_bytes()).hexdigest()[:16]
    caches = (get_cache_folder(), Path(gettempdir()) / f"pytest-approvals-{os.geteuid()}")
    refused: list[str] = []
    for folder in (place / "catalogues" for place in caches):
        try:
            create_private_folder(folder)
            if access := find_foreign_access(folder):
                raise PermissionError(access)
            _unpack(archive, folder / digest)
        except OSError as error:
            refused.append(f"{folder}: {error}")
        else:
            return folder / digest
    raise UsageError(
        f"The scenarios of the package cannot be unpacked ({'; '.join(refused)}): name a folder of yours in "
        f"{CACHE_FOLDER_VARIABLE}"
    )


def _unpack(archive: Path, folder: Path) -> None:
    if folder.is_dir():
        return
    from shutil import rmtree
    from tempfile import mkdtemp
    from zipfile import ZipFile

    made = Path(mkdtemp(dir=folder.parent))
    try:
        with ZipFile(archive) as file:
            file.extractall(made)
        made.rename(folder)
    except OSError:
        # Another process, such as a worker of pytest-xdist, may have been faster.
        if not folder.is_dir():
            raise
    finally:
        rmtree(made, ignore_errors=True)


def find_project_folders(here: Path) -> tuple[Path, ...]:
    """Return the scenario folders of the project that contains *here*; empty if it has no scenarios."""
    for folder in (here, *here.parents):
        names = _configured_folders(folder)
        if names is not None:
            return tuple(folder / name for name in names)
    default = here / "scenarios"
    return (default,) if any(default.rglob(f"*{SCENARIO_SUFFIX}")) else ()


def find_scenarios(folders: Iterable[Path]) -> dict[str, Path]:
    """Return the scenario files below *folders* by id, in the order of the folders, then of the ids."""
    paths: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob(f"*{SCENARIO_SUFFIX}")):
            # If two folders have the same id, the first one wins.
            paths.setdefault(path.relative_to(folder).as_posix().removesuffix(SCENARIO_SUFFIX), path)
    return paths


def digest_scenarios(paths: Mapping[str, Path]) -> str:
    """Return a digest of the contents of scenario files by id; empty if there are none."""
    from hashlib import sha256

    digest = sha256()
    for name in sorted(paths):
        content = sha256(paths[name].read_bytes()).hexdigest()
        digest.update(f"{name} {content}\n".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16] if paths else ""


def select_scenarios(words: Sequence[str], here: Path, *, folders: tuple[Path, ...] | None = None) -> dict[str, Path]:
    """Return the scenarios that *words* name, in the order of their ids.

    Args:
        words: Files, ids, families, patterns with `*` and `?`, or folders; a word that matches nothing in the project
            is looked up in the built-in catalogue. Without words: all of the project, else of the catalogue.
        here: Folder that relative paths start from, inside the project.
        folders: The scenario folders of the project, if they are known.

    Raises:
        UnknownName: A word matches nothing.
        UsageError: There are no scenarios at all.
    """
    known = _KnownScenarios(here, folders)
    if not words:
        return known.own or known.stock
    selected: dict[str, Path] = {}
    for word in words:
        matches = (
            _find_file(word, here, known)
            or _match_pattern(word, known.own)
            or _match_pattern(word, known.stock)
            or _find_in_folder(word, here)
        )
        if not matches:
            raise UnknownName("scenario", word, known.names)
        selected |= matches
    return dict(sorted(selected.items()))


class _KnownScenarios:
    """Scenarios that can be named by an id; searched for on first use, because that takes time."""

    def __init__(self, here: Path, folders: tuple[Path, ...] | None = None) -> None:
        self._here = here
        self._folders = folders

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The scenario folders of the project."""
        return find_project_folders(self._here) if self._folders is None else self._folders

    @cached_property
    def own(self) -> dict[str, Path]:
        """The scenarios of the project.

        Raises:
            UsageError: There are none, neither here nor in the catalogue.
        """
        own = find_scenarios(self.folders)
        if not own and not self.stock:
            raise UsageError(f"No scenarios found: no *{SCENARIO_SUFFIX} below {self._here} or {stock_folder()}")
        return own

    @cached_property
    def stock(self) -> dict[str, Path]:
        """The scenarios of the built-in catalogue."""
        return find_scenarios([stock_folder()])

    @property
    def names(self) -> set[str]:
        """All ids and families."""
        return {name for key in (*self.own, *self.stock) for name in (key, key.partition("/")[0])}


def find_root(path: Path, folders: Iterable[Path]) -> Path:
    """Return the folder that the id of a scenario file is relative to.

    The innermost parent that is one of *folders*, the built-in catalogue or called `scenarios`, else its own folder.
    """
    above = path.resolve().parents
    places = [place.resolve() for place in (*folders, stock_folder())]
    inside = [folder for folder in above if folder in places or folder.name == "scenarios"]
    return inside[0] if inside else above[0]


def _match_pattern(word: str, known: Mapping[str, Path]) -> dict[str, Path]:
    plain = word.removesuffix("/").removesuffix(SCENARIO_SUFFIX)
    patterns = (plain, f"{plain}/*")
    return {name: path for name, path in known.items() if any(fnmatchcase(name, pattern) for pattern in patterns)}


def _find_file(word: str, here: Path, known: _KnownScenarios) -> dict[str, Path]:
    place = (here / word).resolve()
    if not place.name.endswith(SCENARIO_SUFFIX) or not place.is_file():
        return {}
    return {place.relative_to(find_root(place, known.folders)).as_posix().removesuffix(SCENARIO_SUFFIX): place}


def _find_in_folder(word: str, here: Path) -> dict[str, Path]:
    place = (here / word).resolve()
    return find_scenarios([place]) if place.is_dir() else {}


def _configured_folders(folder: Path) -> list[str] | None:
    for name, tables in _TOML_TABLES.items():
        for table in tables:
            value = _read_toml(folder / name, table)
            if value is not None:
                return value
    for name, section in _INI_SECTIONS.items():
        value = _read_ini(folder / name, section)
        if value is not None:
            return value
    return None


def _read_toml(path: Path, table: Sequence[str]) -> list[str] | None:
    text = _read_if_configured(path)
    if text is None:
        return None
    import tomllib

    try:
        content: Any = tomllib.loads(text)
    except (ValueError, RecursionError):
        return None
    for key in (*table, INI_NAME):
        content = content.get(key) if isinstance(content, dict) else None
    if isinstance(content, str):
        return content.split()
    if content is not None and not (isinstance(content, list) and all(isinstance(name, str) for name in content)):
        raise UsageError(f"{path}: Invalid {INI_NAME}: expected folders, as text or as a list of texts")
    return content


def _read_ini(path: Path, section: str) -> list[str] | None:
    text = _read_if_configured(path)
    if text is None:
        return None
    from configparser import ConfigParser, Error

    # Other entries of the file may hold a bare `%`.
    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except (ValueError, Error):
        return None
    return parser.get(section, INI_NAME).split() if parser.has_option(section, INI_NAME) else None


def _read_if_configured(path: Path) -> str | None:
    """Return the text of a file that contains the entry's name; None for others, which need no parsing."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return text if INI_NAME in text else None
