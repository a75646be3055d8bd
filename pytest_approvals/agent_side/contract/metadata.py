"""What an agent is: which class drives it, and what is known of it without running anything."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """
    What an agent says of itself.

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


def get_facts(adapter: type[Agent]) -> Facts:
    """Gives what *adapter* says of itself, with what is installed of its framework; looked up once."""
    if adapter not in _FACTS_CACHE:
        _FACTS_CACHE[adapter] = _collect_facts(adapter)
    return _FACTS_CACHE[adapter]


_FACTS_CACHE: dict[type[Agent], Facts] = {}


def _collect_facts(adapter: type[Agent]) -> Facts:
    return Facts(
        framework=adapter.framework,
        version=adapter.release or _installed_version(adapter.framework),
        where=_find_folder(adapter),
        capabilities=adapter.capabilities,
        missing=adapter.missing,
        wire_rules=adapter.wire_rules,
        native=adapter.native,
        protocols=adapter.protocols,
        issues=adapter.issues,
        stores=adapter.stores,
        connects=adapter.connects,
    )


def load_agent_class(name: str) -> type[Agent]:
    """
    Gives the class that *name* means: `module:Class`, or an adapter of this package as `NAME` or `NAME.FLAVOUR`.

    Errors:
        LookupError: There is none, or it is not an `Agent`.
    """
    if ":" in name:
        found = import_object(name)
    else:
        adapter, _, flavour = name.partition(".")
        try:
            found = import_module(f"..adapters.{adapter}", __package__).FLAVOURS[flavour]
        except (ImportError, AttributeError, KeyError) as error:
            raise LookupError(f"there is no adapter {name!r} ({type(error).__name__}: {error})") from error
    if not (isinstance(found, type) and issubclass(found, Agent)):
        raise LookupError(f"{name!r} is not an Agent class")
    return found


def import_object(name: str) -> Any:
    """
    Gives what `module:attribute` or `FILE.py:attribute` names; the attribute may be a path with dots.

    Errors:
        LookupError: It cannot be imported.
    """
    module, _, path = name.rpartition(":")
    try:
        found: Any = _import_file(module) if module.endswith(".py") else import_module(module)
        for step in path.split("."):
            found = getattr(found, step)
    except (ImportError, AttributeError, OSError) as error:
        raise LookupError(f"{name!r} cannot be imported here ({type(error).__name__}: {error})") from error
    return found


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
        found = find_spec(package)
        if found is not None and found.origin is not None:
            return str(Path(found.origin).parent)
    return None
