"""
What an installed framework has, read from its sources without importing it.

Names are looked for, not version numbers: a checkout has no number that says what is in it.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec
from pathlib import Path


@cache
def find_package_folder(package: str) -> Path | None:
    """Gives the folder of a package, which may stand in a namespace; None where it is not here."""
    top, *below = package.split(".")
    found = find_spec(top)
    places = (Path(place, *below) for place in (found.submodule_search_locations or () if found else ()))
    return next((place for place in places if (place / "__init__.py").is_file()), None)


def has_source(package: str, path: str, text: str = "") -> bool:
    """
    Says whether a package has a file or folder, and in that file a text; yes where the package is not here at all.

    Arguments:
        path: Its path below the package.
        text: What must stand in it.
    """
    here = find_package_folder(package)
    return here is None or (text in _read_source(here / path) if text else (here / path).exists())


@cache
def _read_source(file: Path) -> str:
    return file.read_text(encoding="utf-8") if file.is_file() else ""
