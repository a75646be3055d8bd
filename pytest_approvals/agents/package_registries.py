"""Package registries: how releases and requirements are written in PyPI and npm.

`environments/installers.py` installs from them; where a registry is, is configured on the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pytest_approvals.errors import UnknownName, UsageError

_NPM_REQUIREMENT = re.compile(r"(?P<name>(?:@[a-z0-9~-][\w.~-]*/)?[a-z0-9~-][\w.~-]*)(?:@(?P<range>[^\s@]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """Requirement of an environment.

    Attributes:
        name: The normalized name of the distribution.
        text: The requirement as the installer takes it.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRegistry:
    """One kind of registry.

    Attributes:
        name: Its name in adapters.
        language: The language of its distributions.
        release: Format of a release as the installer takes it, with `{distribution}`, `{extras}` and `{version}`.
        checkout: Files of which the folder of a project has one.
        install: The command with which users install a distribution.
        parse: Parses a requirement; raises `UsageError`.
    """

    name: str
    language: str
    release: str
    checkout: tuple[str, ...]
    install: str
    parse: Callable[[str], Requirement]


def get_registry(name: str) -> PackageRegistry:
    """Return the registry that adapters call *name*.

    Raises:
        UnknownName: There is no such registry.
    """
    if name not in _REGISTRIES:
        raise UnknownName("registry", name, _REGISTRIES)
    return _REGISTRIES[name]


def _parse_python_requirement(text: str) -> Requirement:
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as ParsedRequirement
    from packaging.utils import canonicalize_name

    try:
        parsed = ParsedRequirement(text)
    except InvalidRequirement:
        raise UsageError(f"Invalid requirement {text!r}: use NAME, NAME==VERSION or NAME>=VERSION,<VERSION") from None
    return Requirement(name=canonicalize_name(parsed.name), text=str(parsed))


def _parse_npm_requirement(text: str) -> Requirement:
    match = _NPM_REQUIREMENT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"Invalid requirement {text!r} of npm: use NAME, NAME@VERSION or NAME@RANGE")
    return Requirement(name=match["name"], text=text.strip())


PYPI = PackageRegistry(
    name="pypi",
    language="Python",
    release="{distribution}{extras}=={version}",
    checkout=("pyproject.toml", "setup.py"),
    install="pip install",
    parse=_parse_python_requirement,
)

NPM = PackageRegistry(
    name="npm",
    language="JavaScript",
    release="{distribution}@{version}",
    checkout=("package.json",),
    install="npm install",
    parse=_parse_npm_requirement,
)

_REGISTRIES = {registry.name: registry for registry in (PYPI, NPM)}
