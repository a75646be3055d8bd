"""Agent specs, `NAME[.FLAVOUR][==VERSION|@PATH]`, and the order and ranges of the releases that they name."""

from __future__ import annotations

import re
from dataclasses import dataclass

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from pytest_approvals.errors import UsageError

ALL_AGENTS = "all"
"""Name that selects all agents on the command line."""

_SPEC_PATTERN = re.compile(
    r"(?P<name>[A-Za-z_]\w*)(?:\.(?P<flavour>\w+))?(?:==(?P<version>[^\s@=]+)|@(?P<checkout>.+))?"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """Spec of an agent: `NAME`, `NAME.FLAVOUR`, either with `==VERSION` or `@PATH` of a checkout.

    >>> str(AgentSpec.parse("langgraph.per_call==1.2.0"))
    'langgraph.per_call==1.2.0'
    """

    name: str
    flavour: str = ""
    version: str | None = None
    checkout: str | None = None

    @classmethod
    def parse(cls, text: str) -> AgentSpec:
        """Parse a spec, whether or not such an agent exists.

        Raises:
            UsageError: The text is not a spec.
        """
        match = _SPEC_PATTERN.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"Invalid agent spec {text!r}: expected NAME[.FLAVOUR][==VERSION|@PATH]")
        parts = match.groupdict()
        return cls(
            name=parts["name"],
            flavour=parts["flavour"] or "",
            version=parts["version"],
            checkout=parts["checkout"],
        )

    @property
    def base(self) -> str:
        """Name and flavour, without version and checkout."""
        return f"{self.name}.{self.flavour}" if self.flavour else self.name

    def __str__(self) -> str:
        if self.version is not None:
            return f"{self.base}=={self.version}"
        return f"{self.base}@{self.checkout}" if self.checkout is not None else self.base


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
