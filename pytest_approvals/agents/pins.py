"""Pins: the pinned release of each framework, and what its releases need in addition.

The pinned releases are those that this package is developed with: its stored transcripts are theirs. All pins are in
`agent_side/adapters/pins.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_approvals.agents.package_registries import PYPI, get_registry
from pytest_approvals.agents.versions import is_in_range

PINS_FILE = Path(__file__).parents[1] / "agent_side" / "adapters" / "pins.yaml"
"""The file of all pins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinConstraint:
    """What some releases of a distribution need in addition.

    Attributes:
        versions: Version specifiers of the releases.
        extras: Extras to install them with.
        requirements: What else to install.
    """

    versions: str = ""
    extras: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()

    def applies_to(self, version: str) -> bool:
        """Return whether a release is one of those."""
        return is_in_range(version, self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """Pin of a distribution; *release* is the pinned one, None if there is none."""

    distribution: str
    release: str | None = None
    constraints: tuple[PinConstraint, ...] = ()
    registry: str = PYPI.name

    def requirements(self, version: str) -> tuple[str, ...]:
        """Return what an environment with a release needs, that release first.

        >>> some = PinConstraint(versions="<2", extras=("mcp",), requirements=("core=={version}",))
        >>> Pin(distribution="frame", constraints=(some,)).requirements("1.4")
        ('frame[mcp]==1.4', 'core==1.4')
        """
        names = ",".join(self.extras(version))
        first = get_registry(self.registry).release.format(
            distribution=self.distribution, extras=f"[{names}]" if names else "", version=version
        )
        others = [
            text.format(version=version)
            for constraint in self._constraints_of(version)
            for text in constraint.requirements
        ]
        return (first, *others)

    def extras(self, version: str) -> tuple[str, ...]:
        """Return the extras that a release is installed with."""
        return tuple(extra for constraint in self._constraints_of(version) for extra in constraint.extras)

    def checkout_requirements(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Return the extras and the requirements of a checkout.

        They are those of the pinned release, except for what has to be of the same version.

        >>> some = PinConstraint(versions=">=0", extras=("mcp",), requirements=("core=={version}", "store"))
        >>> Pin(distribution="frame", release="1.4", constraints=(some,)).checkout_requirements()
        (('mcp',), ('store',))
        """
        if self.release is None:
            return (), ()
        texts = (text for constraint in self._constraints_of(self.release) for text in constraint.requirements)
        # The version of a checkout is unknown, so nothing can be pinned to the same one.
        return self.extras(self.release), tuple(text for text in texts if "{version}" not in text)

    def _constraints_of(self, version: str) -> list[PinConstraint]:
        return [constraint for constraint in self.constraints if constraint.applies_to(version)]


@cache
def load_pins() -> Mapping[str, Pin]:
    """Return all pins, by distribution."""
    import yaml

    return {
        name: _parse_pin(name, entry) for name, entry in yaml.safe_load(PINS_FILE.read_text(encoding="utf-8")).items()
    }


def get_pin(distribution: str, registry: str = PYPI.name) -> Pin:
    """Return the pin of a distribution of a registry, which may be empty."""
    pin = load_pins().get(distribution)
    return pin if pin and pin.registry == registry else Pin(distribution=distribution, registry=registry)


def get_pinned_release(distribution: str, registry: str = PYPI.name) -> str | None:
    """Return the pinned release of a distribution; None if it has none."""
    return get_pin(distribution, registry).release


def _parse_pin(distribution: str, entry: Mapping[str, Any]) -> Pin:
    constraints = tuple(
        PinConstraint(
            versions=constraint["versions"],
            extras=tuple(constraint.get("extras", ())),
            requirements=tuple(constraint.get("with", ())),
        )
        for constraint in entry.get("beside", ())
    )
    registry = entry.get("registry", PYPI.name)
    return Pin(distribution=distribution, release=entry["pin"], constraints=constraints, registry=registry)
