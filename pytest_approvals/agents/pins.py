"""Pins: the pinned release of each framework, and what its releases need in addition.

The pinned releases are those that this package is developed with: its stored transcripts are theirs. All pins are in
`agent_side/adapters/pins.yaml`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pytest_approvals.agents.package_registries import PYPI, get_registry
from pytest_approvals.agents.spec import is_in_range, parse_specifier
from pytest_approvals.errors import FileError, UnknownName, UsageError

if TYPE_CHECKING:
    from pytest_approvals.yaml_files import Diagnostic, KeyPath

T = TypeVar("T")

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
    return parse_pins(PINS_FILE)


def parse_pins(path: Path) -> Mapping[str, Pin]:
    """Parse a file of pins.

    Raises:
        FileError: The file cannot be read, or has a mistake; file and line are named.
    """
    from pytest_approvals.yaml_files import Diagnostic, find_line
    from pytest_approvals.yaml_files.document import parse_yaml

    try:
        document = parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(str(path), None, f"cannot read file: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileError(str(path), None, f"invalid UTF-8: {error.reason} at byte {error.start}") from None
    except Diagnostic as diagnostic:
        raise FileError(str(path), diagnostic.line, diagnostic.message) from None
    pins = {}
    try:
        for name, entry in _require(document.value, dict, (), "a mapping of distributions").items():
            pins[name] = _parse_pin(name, entry)
    except Diagnostic as diagnostic:
        raise FileError(str(path), find_line(diagnostic.path, document.lines), diagnostic.message) from None
    return pins


def move_pin(path: Path, distribution: str, release: str) -> None:
    """Pin another release of a distribution in a file of pins, of which all else stays as it is written.

    Raises:
        UsageError: The file has no pin of the distribution, or cannot be written.
    """
    # YAML takes a release of one or two parts for a number.
    written = f'"{release}"' if re.fullmatch(r"\d+(\.\d+)?", release) else release
    head = rf"^(?:\"{re.escape(distribution)}\"|{re.escape(distribution)}):\n(?:[ ].*\n)*?  pin: "
    text = path.read_text(encoding="utf-8")
    moved, count = re.subn(rf"({head})\S+", rf"\g<1>{written}", text, count=1, flags=re.MULTILINE)
    if not count:
        raise UsageError(f"{path} has no pin of {distribution}")
    try:
        path.write_text(moved, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; pins are moved in a checkout") from None


def get_pin(distribution: str, registry: str = PYPI.name) -> Pin:
    """Return the pin of a distribution of a registry, which may be empty."""
    pin = load_pins().get(distribution)
    return pin if pin and pin.registry == registry else Pin(distribution=distribution, registry=registry)


def get_pinned_release(distribution: str, registry: str = PYPI.name) -> str | None:
    """Return the pinned release of a distribution; None if it has none."""
    return get_pin(distribution, registry).release


_KEYS = ("pin", "registry", "beside")
_CONSTRAINT_KEYS = ("versions", "extras", "with")


def _parse_pin(distribution: str, entry: Any) -> Pin:
    place = (distribution,)
    keys = _require_keys(entry, _KEYS, place, "a mapping with `pin`")
    try:
        registry = get_registry(_require(keys.get("registry", PYPI.name), str, (*place, "registry"), "text")).name
    except UnknownName as error:
        raise _diagnostic((*place, "registry"), str(error)) from None
    constraints = tuple(
        _parse_constraint(constraint, (*place, "beside", at))
        for at, constraint in enumerate(_require(keys.get("beside", []), list, (*place, "beside"), "a list"))
    )
    release = _require(keys.get("pin"), str, (*place, "pin"), "a release in quotes")
    return Pin(distribution=distribution, release=release, constraints=constraints, registry=registry)


def _parse_constraint(entry: Any, place: KeyPath) -> PinConstraint:
    keys = _require_keys(entry, _CONSTRAINT_KEYS, place, "a mapping with `versions`")
    versions = _require(keys.get("versions"), str, (*place, "versions"), "version specifiers in quotes")
    extras, requirements = (
        tuple(
            _require(text, str, (*place, key, at), "text")
            for at, text in enumerate(_require(keys.get(key, []), list, (*place, key), "a list"))
        )
        for key in ("extras", "with")
    )
    try:
        parse_specifier(versions)
    except UsageError as error:
        raise _diagnostic((*place, "versions"), str(error)) from None
    for at, text in enumerate(requirements):
        if re.search("[{}]", text.replace("{version}", "")):
            raise _diagnostic(
                (*place, "with", at), f"Invalid requirement {text!r}: the only placeholder is {{version}}"
            )
    return PinConstraint(versions=versions, extras=extras, requirements=requirements)


def _require_keys(value: Any, keys: Collection[str], place: KeyPath, expected: str) -> dict[str, Any]:
    mapping = _require(value, dict, place, expected)
    for key in mapping:
        if key not in keys:
            raise _diagnostic((*place, key), str(UnknownName("key", key, keys)))
    return mapping


def _require(value: Any, kind: type[T], place: KeyPath, expected: str) -> T:
    if isinstance(value, kind):
        return value
    from pytest_approvals.yaml_files import format_key_path

    raise _diagnostic(place, f"Invalid {format_key_path(place) or 'file'}: expected {expected}")


def _diagnostic(place: KeyPath, message: str) -> Diagnostic:
    from pytest_approvals.yaml_files import Diagnostic

    return Diagnostic(place, message)
