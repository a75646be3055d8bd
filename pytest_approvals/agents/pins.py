"""
What is known of the frameworks' distributions: the pinned release, and what must stand beside which release.

The pinned releases are those that this package is developed with: its stored transcripts are theirs. All of it stands
in `agent_side/adapters/pins.yaml`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_approvals.agents.package_registries import PYPI, get_registry

PINS_FILE = Path(__file__).parents[1] / "agent_side" / "adapters" / "pins.yaml"
"""Where the pins stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinConstraint:
    """
    What some releases of a distribution need.

    Attributes:
        versions: Version specifiers.
        extras: Extras to install it with.
        requirements: What to install besides.
    """

    versions: str = ""
    extras: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()

    def concerns(self, version: str) -> bool:
        """Says whether a release is one of those."""
        from pytest_approvals.agents.versions import is_in_range

        return is_in_range(version, self.versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """What is known of a distribution; *release* is the pinned one, None where there is none."""

    distribution: str
    release: str | None = None
    beside: tuple[PinConstraint, ...] = ()
    registry: str = PYPI.name

    def requirements(self, version: str) -> tuple[str, ...]:
        """
        Gives what an environment with a release needs, that release first.

        >>> some = Beside(versions="<2", extras=("mcp",), requirements=("core=={version}",))
        >>> Pin(distribution="frame", beside=(some,)).requirements("1.4")
        ('frame[mcp]==1.4', 'core==1.4')
        """
        names = ",".join(self.extras(version))
        first = get_registry(self.registry).release.format(
            distribution=self.distribution, extras=f"[{names}]" if names else "", version=version
        )
        others = [text.format(version=version) for one in self._concerned(version) for text in one.requirements]
        return (first, *others)

    def extras(self, version: str) -> tuple[str, ...]:
        """Gives the extras that a release is installed with."""
        return tuple(extra for one in self._concerned(version) for extra in one.extras)

    def beside_checkout(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """
        Gives what a checkout is installed with, extras and requirements: as the pinned release, but for what has to be
        of the same version.

        >>> some = Beside(versions=">=0", extras=("mcp",), requirements=("core=={version}", "store"))
        >>> Pin(distribution="frame", release="1.4", beside=(some,)).beside_checkout()
        (('mcp',), ('store',))
        """
        if self.release is None:
            return (), ()
        texts = (text for one in self._concerned(self.release) for text in one.requirements)
        return self.extras(self.release), tuple(text for text in texts if "{version}" not in text)

    def _concerned(self, version: str) -> list[PinConstraint]:
        return [one for one in self.beside if one.concerns(version)]


@cache
def load_pins() -> Mapping[str, Pin]:
    """Gives what is known, by distribution."""
    import yaml

    return {
        name: _parse_pin(name, entry) for name, entry in yaml.safe_load(PINS_FILE.read_text(encoding="utf-8")).items()
    }


def get_pin(distribution: str, registry: str = PYPI.name) -> Pin:
    """Gives what is known of a distribution of a registry, which may be nothing."""
    known = load_pins().get(distribution)
    return known if known and known.registry == registry else Pin(distribution=distribution, registry=registry)


def get_pinned_release(distribution: str, registry: str = PYPI.name) -> str | None:
    """Gives the pinned release of a distribution; None where it has none."""
    return get_pin(distribution, registry).release


def _parse_pin(distribution: str, entry: Mapping[str, Any]) -> Pin:
    beside = tuple(
        PinConstraint(
            versions=one["versions"], extras=tuple(one.get("extras", ())), requirements=tuple(one.get("with", ()))
        )
        for one in entry.get("beside", ())
    )
    registry = entry.get("registry", PYPI.name)
    return Pin(distribution=distribution, release=entry["pin"], beside=beside, registry=registry)
