"""Versions of releases: order and ranges. The name of a release need not be a version."""

from __future__ import annotations

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from pytest_approvals.errors import UsageError


def release_sort_key(release: str) -> tuple[bool, Version, str]:
    """Return the key that releases are sorted by: versions first, then all other names.

    >>> sorted(["robust", "10.9", "9.9"], key=release_sort_key)
    ['9.9', '10.9', 'robust']
    """
    try:
        return False, Version(release), ""
    except InvalidVersion:
        return True, Version("0"), release


def is_in_range(release: str, specifier: str) -> bool:
    """Return whether a release is in a range of versions; False for a name that is not a version.

    >>> [is_in_range(release, ">=10") for release in ("10.4", "robust")]
    [True, False]
    """
    try:
        return SpecifierSet(specifier).contains(Version(release), prereleases=True)
    except InvalidVersion:
        return False


def parse_specifier(text: str) -> SpecifierSet:
    """Parse a version specifier.

    Raises:
        UsageError: It is invalid.
    """
    try:
        return SpecifierSet(text)
    except InvalidSpecifier:
        raise UsageError(f"Invalid version range {text!r}: expected '>=0.8', '>=1.0,<2' or '==1.*', say") from None
