"""
The agents that can be named: what a spec says, which adapters there are, and which of them can run here.

An adapter is a module with `FLAVOURS`. Those of this package are the modules of `agent_side.adapters`, and `reference`
of the simulation; other distributions offer theirs as entry points of the group `pytest_approvals.adapters`, each
naming such a module.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.errors import AdapterError, AgentUnavailable, UnknownName, UsageError

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract import Agent

ENTRY_POINTS = "pytest_approvals.adapters"
"""The entry-point group of adapters that other distributions bring."""

_OWN = {"reference": "pytest_approvals.simulation"}
_SPEC = re.compile(r"(?P<name>[A-Za-z_]\w*)(?:\.(?P<flavour>\w+))?(?:==(?P<version>[^\s@=]+)|@(?P<checkout>.+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec:
    """
    What names an agent: `NAME`, `NAME.FLAVOUR`, either with `==VERSION` or `@PATH` of a checkout.

    >>> str(AgentSpec.parse("langgraph.per_call==1.2.0"))
    'langgraph.per_call==1.2.0'
    """

    name: str
    flavour: str = ""
    version: str | None = None
    checkout: str | None = None

    @classmethod
    def parse(cls, text: str) -> AgentSpec:
        """
        Reads a spec; whether such an agent exists is not asked.

        Errors:
            UsageError: The text is no spec.
        """
        match = _SPEC.fullmatch(text.strip())
        if match is None:
            raise UsageError(f"{text!r} names no agent; write NAME, NAME.FLAVOUR, NAME==VERSION or NAME@PATH")
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


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAgent:
    """
    An agent as it stands in this environment.

    Attributes:
        spec: What names it.
        adapter: The class that drives it.
        version: Of its framework; None for an agent of our own, and where the framework is not here.
        where: The folder of its framework, or of the adapter's module for an agent of our own; None where it is not
            here.
    """

    spec: AgentSpec
    adapter: type[Agent]
    version: str | None
    where: str | None

    @property
    def framework(self) -> str | None:
        """The distribution that its version is the version of."""
        return self.adapter.framework

    @property
    def available(self) -> bool:
        """Whether it can run in this environment."""
        return self.where is not None


def adapter_names() -> tuple[str, ...]:
    """Gives the names of all adapters, those of this package first."""
    own = sorted({*_OWN, *_packaged()})
    return (*own, *sorted(set(_offered()) - set(own)))


def flavours(name: str) -> Mapping[str, type[Agent]]:
    """
    Gives the flavours of the adapter called *name*, the default one first under `""`.

    Errors:
        UnknownName: No adapter has that name.
        AdapterError: The adapter cannot be imported, or has no flavours.
    """
    if name not in adapter_names():
        raise UnknownName("agent", name, adapter_names())
    try:
        module = _module(name)
    except ImportError as error:
        raise AdapterError(name, f"importing it fails: {error}") from error
    found = getattr(module, "FLAVOURS", None)
    if not isinstance(found, Mapping) or "" not in found:
        raise AdapterError(
            name, "its module needs FLAVOURS, a dictionary of Agent classes with the default one under ''"
        )
    return found


def adapter_folder(name: str) -> Path:
    """Gives the folder that the adapter called *name* stands in, where its waivers stand, too."""
    return Path(sys.modules[flavours(name)[""].__module__].__file__ or "").parent


def adapter_of(spec: AgentSpec) -> type[Agent]:
    """
    Gives the adapter class that *spec* names.

    Errors:
        UnknownName: There is no such agent or no such flavour.
        AdapterError: The adapter cannot be imported.
    """
    known = flavours(spec.name)
    if spec.flavour not in known:
        raise UnknownName(f"flavour of {spec.name}", spec.flavour, filter(None, known))
    return known[spec.flavour]


def local_agent(spec: AgentSpec) -> LocalAgent:
    """Says how the agent that *spec* names stands in this environment, whatever version *spec* asks for."""
    adapter = adapter_of(spec)
    where, installed = _where(adapter), None
    if adapter.framework is not None:
        try:
            installed = version(adapter.framework)
        except PackageNotFoundError:
            where = None
    return LocalAgent(spec=spec, adapter=adapter, version=installed, where=where)


def runnable(spec: AgentSpec) -> LocalAgent:
    """
    Gives the agent that *spec* names, if it can run in this environment as *spec* asks.

    Errors:
        AgentUnavailable: Its framework is not here, or here in another version or from another folder.
    """
    found = local_agent(spec)
    wanted = f"{found.framework}=={spec.version}" if spec.version else spec.checkout or found.framework
    remedy = f"install it here: pip install {wanted!r}"
    if found.framework is None and (spec.version or spec.checkout):
        raise AgentUnavailable(
            str(spec), "it is part of this package and has no version of its own", f"write {spec.base}"
        )
    if not found.available:
        raise AgentUnavailable(str(spec), f"{found.framework} is not installed", remedy)
    if spec.version and spec.version != found.version:
        raise AgentUnavailable(str(spec), f"{found.framework} {found.version} is installed here", remedy)
    if spec.checkout and not _within(found.where, spec.checkout):
        raise AgentUnavailable(str(spec), f"{found.framework} is imported from {found.where}", remedy)
    return found


def local_agents() -> tuple[LocalAgent, ...]:
    """Gives every flavour of every adapter as it stands in this environment."""
    return tuple(
        local_agent(AgentSpec(name=name, flavour=flavour)) for name in adapter_names() for flavour in flavours(name)
    )


def default_agents() -> tuple[str, ...]:
    """Gives the agents that run where none is named: the default flavour of each adapter that can run here."""
    return tuple(agent.spec.name for agent in local_agents() if agent.available and not agent.spec.flavour)


def _packaged() -> tuple[str, ...]:
    import pytest_approvals.agent_side.adapters as folder

    return tuple(found.name for found in pkgutil.iter_modules(folder.__path__) if not found.name.startswith("_"))


@cache
def _offered() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def _module(name: str) -> object:
    if name in _OWN:
        return import_module(_OWN[name])
    if name in _packaged():
        return import_module(f"pytest_approvals.agent_side.adapters.{name}")
    return _offered()[name].load()


def _where(adapter: type[Agent]) -> str | None:
    for package in adapter.packages or (adapter.__module__,):
        found = find_spec(package)
        if found is not None and found.origin is not None:
            return str(Path(found.origin).parent)
    return None


def _within(where: str | None, folder: str) -> bool:
    return where is not None and Path(folder).resolve() in (Path(where).resolve(), *Path(where).resolve().parents)
