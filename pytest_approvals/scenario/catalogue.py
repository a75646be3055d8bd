"""
Where scenarios stand: in the folders of somebody's project, and in the catalogue of this package.

A project names its folders in the ini entry `approvals_scenarios`; without it they are in `scenarios`. Where it has
none, the catalogue of this package stands in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any

from pytest_approvals.errors import UnknownName, UsageError

SCENARIO_SUFFIX = ".approval.yaml"
"""What the name of a scenario file ends with."""

INI_NAME = "approvals_scenarios"
"""The ini entry with a project's folders of scenarios."""

_TOML_TABLES = {
    "pytest.toml": (("pytest",),),
    ".pytest.toml": (("pytest",),),
    "pyproject.toml": (("tool", "pytest"), ("tool", "pytest", "ini_options")),
}
_INI_SECTIONS = {"pytest.ini": "pytest", ".pytest.ini": "pytest", "tox.ini": "pytest", "setup.cfg": "tool:pytest"}


def stock_folder() -> Path:
    """Gives the folder of the catalogue: inside the installed package, or beside it in a checkout."""
    package = Path(__file__).parents[1]
    installed = package / "catalogue"
    return installed if installed.is_dir() else package.parent / "scenarios"


def find_project_folders(here: Path) -> tuple[Path, ...]:
    """Gives the folders with the scenarios of the project that *here* is in; none where it has no scenarios."""
    for folder in (here, *here.parents):
        named = _configured_folders(folder)
        if named is not None:
            return tuple(folder / name for name in named)
    usual = here / "scenarios"
    return (usual,) if any(usual.rglob(f"*{SCENARIO_SUFFIX}")) else ()


def find_scenarios(folders: Iterable[Path]) -> dict[str, Path]:
    """Gives the scenario files below *folders* by their ids, in the order of the folders, then of the ids."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob(f"*{SCENARIO_SUFFIX}")):
            found.setdefault(path.relative_to(folder).as_posix().removesuffix(SCENARIO_SUFFIX), path)
    return found


def select_scenarios(words: Sequence[str], here: Path) -> dict[str, Path]:
    """
    Gives the scenarios that *words* name, in the order of their ids; without words, those of the project or else the
    catalogue.

    Arguments:
        words: Files, ids, families, patterns with `*` and `?`, or folders; what names nothing in the project may name
            something in the catalogue.

    Errors:
        UnknownName: A word names nothing.
        UsageError: There are no scenarios at all.
    """
    known = _KnownScenarios(here)
    if not words:
        return known.own or known.stock
    found: dict[str, Path] = {}
    for word in words:
        named = (
            _find_file(word, here)
            or _match_pattern(word, known.own)
            or _match_pattern(word, known.stock)
            or _find_in_folder(word, here)
        )
        if not named:
            raise UnknownName("scenario", word, known.names)
        found |= named
    return dict(sorted(found.items()))


class _KnownScenarios:
    """All that can be named by an id; it is looked for where one is asked for, because that takes its time."""

    def __init__(self, here: Path) -> None:
        self._here = here

    @cached_property
    def own(self) -> dict[str, Path]:
        """
        The scenarios of the project.

        Errors:
            UsageError: There are none, and none in the catalogue.
        """
        own = find_scenarios(find_project_folders(self._here))
        if not own and not self.stock:
            raise UsageError(
                f"there are no scenarios: no *{SCENARIO_SUFFIX} below {self._here}, and none in {stock_folder()}"
            )
        return own

    @cached_property
    def stock(self) -> dict[str, Path]:
        """The scenarios of the catalogue."""
        return find_scenarios([stock_folder()])

    @property
    def names(self) -> set[str]:
        """The ids of all, and their families."""
        return {name for key in (*self.own, *self.stock) for name in (key, key.partition("/")[0])}


def find_root(path: Path, folders: Iterable[Path]) -> Path:
    """
    Gives the folder that the id of a scenario file counts from: the innermost of *folders* or of the catalogue that it
    is in, else a folder called `scenarios` above it, else its own folder.
    """
    above = path.resolve().parents
    places = [place.resolve() for place in (*folders, stock_folder())]
    inside = [folder for folder in above if folder in places or folder.name == "scenarios"]
    return inside[0] if inside else above[0]


def _match_pattern(word: str, known: Mapping[str, Path]) -> dict[str, Path]:
    plain = word.removesuffix("/").removesuffix(SCENARIO_SUFFIX)
    patterns = (plain, f"{plain}/*")
    return {name: path for name, path in known.items() if any(fnmatchcase(name, one) for one in patterns)}


def _find_file(word: str, here: Path) -> dict[str, Path]:
    place = (here / word).resolve()
    if not place.name.endswith(SCENARIO_SUFFIX) or not place.is_file():
        return {}
    return {
        place.relative_to(find_root(place, find_project_folders(here))).as_posix().removesuffix(SCENARIO_SUFFIX): place
    }


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
    except ValueError:
        return None
    for key in (*table, INI_NAME):
        content = content.get(key) if isinstance(content, dict) else None
    return content.split() if isinstance(content, str) else content


def _read_ini(path: Path, section: str) -> list[str] | None:
    text = _read_if_configured(path)
    if text is None:
        return None
    from configparser import ConfigParser, Error

    parser = ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except (ValueError, Error):
        return None
    return parser.get(section, INI_NAME).split() if parser.has_option(section, INI_NAME) else None


def _read_if_configured(path: Path) -> str | None:
    """Gives the text of a file in which the entry's name stands; None for any other, which need not be parsed."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    return text if INI_NAME in text else None
