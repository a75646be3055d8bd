"""Recipes of environments, and the names that follow from them."""

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
"""Changed when environments that were built before must not be used any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """Contents of an environment.

    Attributes:
        requirements: What is installed, as the registry's installer takes it.
        python: The version of Python; empty for the one that runs this.
        checkout: A folder with sources that are installed in editable mode.
        extras: The extras that the checkout is installed with.
        registry: The name of the package registry.
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
            # An editable checkout needs a new environment only if its dependencies may have changed.
            "checkout": self.checkout and [self.checkout, *self.extras, _hash_metadata(Path(self.checkout))],
        }
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:20]

    @property
    def _interpreter(self) -> dict[str, str]:
        """The interpreter or the registry that the environment is for."""
        if self.registry != PYPI.name:
            return {"registry": self.registry}
        return {"python": self.python or f"{platform.python_implementation()} {platform.python_version()}"}

    @property
    def install_arguments(self) -> tuple[str, ...]:
        """Arguments of `uv pip install`."""
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
    """Return the recipe for a release of a distribution, or for a checkout of it.

    The user's requirements replace those that the pins have for the same distributions.

    Args:
        distribution: The framework's distribution.
        version: The release; not used for a checkout.
        checkout: A folder with sources.
        requirements: What the user wants in addition.
        python: The version of Python; empty for the one that runs this.
        registry: The name of the package registry.

    Raises:
        UsageError: A requirement is invalid, or the checkout is not the folder of a project.
    """
    source = get_registry(registry)
    pin = get_pin(distribution, registry)
    wanted = [source.parse(text) for text in requirements]
    texts = [requirement.text for requirement in wanted]
    if checkout is not None:
        extras, others = pin.checkout_requirements()
        every = (*_drop_overridden(wanted, others, source), *texts)
        folder = _find_project(checkout, source)
        return Recipe(requirements=every, python=python, checkout=folder, extras=extras, registry=registry)
    assert version is not None
    first, *others_of_pin = pin.requirements(version)
    return Recipe(
        requirements=(first, *_drop_overridden(wanted, others_of_pin, source), *texts), python=python, registry=registry
    )


def _drop_overridden(wanted: Iterable[Requirement], pinned: Iterable[str], source: PackageRegistry) -> tuple[str, ...]:
    """Return those of the *pinned* requirements whose distributions are not *wanted* in another form."""
    names = {requirement.name for requirement in wanted}
    return tuple(text for text in pinned if source.parse(text).name not in names)


def _find_project(checkout: str, source: PackageRegistry) -> str:
    folder = Path(checkout).expanduser().absolute()
    if not any((folder / name).is_file() for name in source.checkout):
        raise UsageError(f"Invalid checkout {checkout!r}: expected a folder with {source.checkout[0]}")
    return str(folder)


def _hash_metadata(folder: Path) -> str:
    """Return a digest of a checkout's metadata; its sources may change without a new environment."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", "setup.py", "setup.cfg", "package.json"):
        path = folder / name
        digest.update(path.read_bytes() if path.is_file() else b"-")
    return digest.hexdigest()
