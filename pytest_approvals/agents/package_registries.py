"""
The registries that frameworks are installed from: how a release and a requirement are written there.

What installs them stands in `harness/environments/`; where a registry is, is a matter of the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from pytest_approvals.errors import UnknownName, UsageError

_NPM_REQUIREMENT = re.compile(r"(?P<name>(?:@[a-z0-9~-][\w.~-]*/)?[a-z0-9~-][\w.~-]*)(?:@(?P<range>[^\s@]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirement:
    """
    What an environment has to have.

    Attributes:
        name: The distribution, spelled so that equal ones are equal.
        text: What the installer is told.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PackageRegistry:
    """
    One kind of registry.

    Attributes:
        name: As adapters name it.
        language: What its distributions are written in.
        release: A release, as the installer is told: with `{distribution}`, `{extras}` and `{version}`.
        checkout: The files of which a folder with a project has one.
        install: The command that installs a distribution for a person.
        read: Reads a requirement; raises `UsageError`.
    """

    name: str
    language: str
    release: str
    checkout: tuple[str, ...]
    install: str
    read: Callable[[str], Requirement]


def get_registry(name: str) -> PackageRegistry:
    """
    Gives the registry that adapters call *name*.

    Errors:
        UnknownName: There is none.
    """
    if name not in _REGISTRIES:
        raise UnknownName("registry", name, _REGISTRIES)
    return _REGISTRIES[name]


def _parse_python_requirement(text: str) -> Requirement:
    from packaging.requirements import InvalidRequirement
    from packaging.requirements import Requirement as Read
    from packaging.utils import canonicalize_name

    try:
        read = Read(text)
    except InvalidRequirement:
        raise UsageError(f"{text!r} is no requirement; write NAME, NAME==VERSION or NAME>=VERSION,<VERSION") from None
    return Requirement(name=canonicalize_name(read.name), text=str(read))


def _parse_npm_requirement(text: str) -> Requirement:
    match = _NPM_REQUIREMENT.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is no requirement of npm; write NAME, NAME@VERSION or NAME@RANGE")
    return Requirement(name=match["name"], text=text.strip())


PYPI = PackageRegistry(
    name="pypi",
    language="Python",
    release="{distribution}{extras}=={version}",
    checkout=("pyproject.toml", "setup.py"),
    install="pip install",
    read=_parse_python_requirement,
)

NPM = PackageRegistry(
    name="npm",
    language="JavaScript",
    release="{distribution}@{version}",
    checkout=("package.json",),
    install="npm install",
    read=_parse_npm_requirement,
)

_REGISTRIES = {one.name: one for one in (PYPI, NPM)}
