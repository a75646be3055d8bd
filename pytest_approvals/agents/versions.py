"""
Versions of releases: their order, and the ranges that they are in. A release may have a name that is no version.
"""

from __future__ import annotations

from packaging.specifiers import SpecifierSet
from packaging.version import InvalidVersion, Version


def release_sort_key(release: str) -> tuple[bool, Version, str]:
    """
    Gives what releases are sorted by: versions, and after them what is none.

    >>> sorted(["robust", "10.9", "9.9"], key=release_order)
    ['9.9', '10.9', 'robust']
    """
    try:
        return False, Version(release), ""
    except InvalidVersion:
        return True, Version("0"), release


def is_in_range(release: str, specifier: str) -> bool:
    """
    Says whether a release is in a range of versions; what is no version is in none.

    >>> [fits(release, ">=10") for release in ("10.4", "robust")]
    [True, False]
    """
    try:
        return SpecifierSet(specifier).contains(Version(release), prereleases=True)
    except InvalidVersion:
        return False
