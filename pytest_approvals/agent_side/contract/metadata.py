"""Metadata of agent classes, which is known without running anything, and the lookup of such classes."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

from .agent import Agent
from .capabilities import DERIVED, IMPLIED, OPTIONAL


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Metadata of an agent.

    Attributes:
        framework, version, where: The distribution, its version, and the folder that it is imported from.
        capabilities, missing, wire_rules, native, protocols, issues, stores, connects: As in `contract.Agent`.
    """

    framework: str | None = None
    version: str | None = None
    where: str | None = None
    capabilities: frozenset[str] = frozenset()
    missing: Mapping[str, str] = field(default_factory=dict)
    wire_rules: str = "none"
    native: str = ""
    protocols: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    issues: str = ""
    stores: Mapping[str, str] = field(default_factory=dict)
    connects: bool = False

    @property
    def abilities(self) -> frozenset[str]:
        """The capabilities, and what is `IMPLIED` and not missing."""
        return self.capabilities | (frozenset(IMPLIED) - frozenset(self.missing))

    @property
    def stores_requests(self) -> bool:
        """Whether a request that waits is part of the saved state."""
        return "stores_requests" in self.abilities


def get_facts(adapter: type[Agent]) -> Facts:
    """Return the metadata of *adapter* and of its installed framework; it is collected once."""
    if adapter not in _FACTS_CACHE:
        _FACTS_CACHE[adapter] = _collect_facts(adapter)
    return _FACTS_CACHE[adapter]


_FACTS_CACHE: dict[type[Agent], Facts] = {}


def _collect_facts(adapter: type[Agent]) -> Facts:
    return describe_adapter(adapter, version=_installed_version(adapter.framework), where=_find_folder(adapter))


_UNCLAIMED = {
    "crash": "the adapter does not say how its framework goes on after the process died",
    **OPTIONAL,
    **{name: why for name, (_, why) in DERIVED.items()},
}


def describe_adapter(adapter: type[Agent], *, version: str | None = None, where: str | None = None) -> Facts:
    """Return the metadata of an adapter class, with what is known of its framework.

    Args:
        adapter: The class.
        version: The version of its framework; that of an agent which simulates a release is its own.
        where: The folder that its framework is imported from.
    """
    return Facts(
        framework=adapter.framework,
        version=adapter.release or version,
        where=where,
        capabilities=adapter.capabilities,
        missing={
            **{name: why for name, why in _UNCLAIMED.items() if name not in adapter.capabilities},
            **adapter.missing,
        },
        wire_rules=adapter.wire_rules,
        native=adapter.native,
        protocols=adapter.protocols,
        issues=adapter.issues,
        stores=adapter.stores,
        connects=adapter.connects,
    )


def load_agent_class(name: str) -> type[Agent]:
    """Return the class that *name* means: `module:Class`, or a built-in adapter as `NAME` or `NAME.FLAVOUR`.

    Raises:
        LookupError: There is no such class, or it is not an `Agent`.
    """
    if ":" in name:
        agent = import_object(name)
    else:
        adapter, _, flavour = name.partition(".")
        try:
            agent = import_module(f"..adapters.{adapter}", __package__).FLAVOURS[flavour]
        except (ImportError, AttributeError, KeyError) as error:
            raise LookupError(f"Unknown adapter {name!r} ({type(error).__name__}: {error})") from error
    if not (isinstance(agent, type) and issubclass(agent, Agent)):
        raise LookupError(f"Invalid agent {name!r}: expected a subclass of Agent")
    return agent


def import_object(name: str) -> Any:
    """Return the object at `module:attribute` or `FILE.py:attribute`; the attribute may be a path with dots.

    Raises:
        LookupError: It cannot be imported.
    """
    module, _, path = name.rpartition(":")
    try:
        target: Any = _import_file(module) if module.endswith(".py") else import_module(module)
        for step in path.split("."):
            target = getattr(target, step)
    except (ImportError, AttributeError, OSError) as error:
        raise LookupError(f"Cannot import {name!r} ({type(error).__name__}: {error})") from error
    return target


def _import_file(file: str) -> ModuleType:
    name = Path(file).stem
    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(file)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _installed_version(framework: str | None) -> str | None:
    try:
        return version(framework) if framework else None
    except PackageNotFoundError:
        return None


def _find_folder(adapter: type[Agent]) -> str | None:
    for package in adapter.packages or (adapter.__module__,):
        spec = find_spec(package)
        if spec is not None and spec.origin is not None:
            return str(Path(spec.origin).parent)
    return None
