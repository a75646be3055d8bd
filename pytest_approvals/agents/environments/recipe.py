"""What an environment consists of, and the name that follows from it."""

from __future__ import annotations

import hashlib
import json
import platform
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pytest_approvals.agents.package_registries import PYPI, PackageRegistry, Requirement, get_registry
from pytest_approvals.agents.pins import get_pin
from pytest_approvals.errors import UsageError

RECIPE_FORMAT = 1
"""Changes when environments made before would not do any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """
    What an environment consists of.

    Attributes:
        requirements: What is to be installed, as the registry's installer is told.
        python: The version of Python that was asked for; empty: the one that runs this.
        checkout: A folder with sources that are installed as they stand there.
        extras: The extras that the checkout is installed with.
        registry: Where it is installed from.
    """

    requirements: tuple[str, ...]
    python: str = ""
    checkout: str | None = None
    extras: tuple[str, ...] = ()
    registry: str = PYPI.name

    @property
    def key(self) -> str:
        """The name of the environment: equal recipes on equal platforms have equal ones."""
        content = {
            "format": RECIPE_FORMAT,
            "platform": sysconfig.get_platform(),
            **self._interpreter,
            "requirements": sorted(self.requirements),
            "checkout": self.checkout and [self.checkout, *self.extras, _hash_metadata(Path(self.checkout))],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    @property
    def _interpreter(self) -> dict[str, str]:
        """What the environment holds for, besides what is in it."""
        if self.registry != PYPI.name:
            return {"registry": self.registry}
        return {"python": self.python or f"{platform.python_implementation()} {platform.python_version()}"}

    @property
    def words(self) -> tuple[str, ...]:
        """What uv is told to install."""
        extras = f"[{','.join(self.extras)}]" if self.extras else ""
        return (*(("--editable", f"{self.checkout}{extras}") if self.checkout else ()), *self.requirements)

    def __str__(self) -> str:
        python = (f"Python {self.python}",) if self.python else ()
        return ", ".join((*((self.checkout,) if self.checkout else ()), *self.requirements, *python))


def create_recipe(
    distribution: str,
    version: str | None = None,
    *,
    checkout: str | None = None,
    requirements: Iterable[str] = (),
    python: str = "",
    registry: str = PYPI.name,
) -> Recipe:
    """
    Gives the recipe for a release of a distribution, or for a checkout of it.

    A person's requirements take the place of those that the pins have for the same distributions.

    Errors:
        UsageError: A requirement is none, or the checkout is no folder with a project.
    """
    source = get_registry(registry)
    pin = get_pin(distribution, registry)
    wished = [source.read(text) for text in requirements]
    texts = [one.text for one in wished]
    if checkout is not None:
        extras, others = pin.beside_checkout()
        every = (*_drop_overridden(wished, others, source), *texts)
        folder = _find_project(checkout, source)
        return Recipe(requirements=every, python=python, checkout=folder, extras=extras, registry=registry)
    assert version is not None
    first, *beside = pin.requirements(version)
    return Recipe(
        requirements=(first, *_drop_overridden(wished, beside, source), *texts), python=python, registry=registry
    )


def _drop_overridden(wished: Iterable[Requirement], others: Iterable[str], source: PackageRegistry) -> tuple[str, ...]:
    """Those of *others* that are about distributions that are not among the *wished*."""
    names = {one.name for one in wished}
    return tuple(text for text in others if source.read(text).name not in names)


def _find_project(checkout: str, source: PackageRegistry) -> str:
    folder = Path(checkout).expanduser().absolute()
    if not any((folder / name).is_file() for name in source.checkout):
        raise UsageError(f"{checkout} is no checkout of a distribution: there is no {source.checkout[0]}")
    return str(folder)


def _hash_metadata(folder: Path) -> str:
    """Gives a digest of what the checkout says of itself; its sources may change without a new environment."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "setup.py", "setup.cfg", "package.json"):
        path = folder / name
        digest.update(path.read_bytes() if path.is_file() else b"-")
    return digest.hexdigest()
