"""
The agents that can be named: what a spec says, which adapters there are, and which of them can run here.

An adapter called NAME is a module with `FLAVOURS`: one of `agent_side.adapters`, a simulation for `reference` and
`meai`, what others bring (see `extensions.py`), or, in somebody's own project, a module `NAME_adapter` in the current
folder. One that plays releases itself (`Agent.releases`) has versions without anything that could be installed.
"""

from __future__ import annotations

import pkgutil
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.errors import AdapterError, AgentUnavailable, ApprovalsError, UnknownName, UsageError
from pytest_approvals.extensions import brought, names_of
from pytest_approvals.registries import PYPI, registry_named

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract import Agent

ALL = "all"
"""What stands for all agents where agents are named."""

PROJECT_ENDING = "_adapter"
"""What the name of a module in somebody's own project ends with, after the name of the adapter."""

_OWN = {"reference": "pytest_approvals.simulation", "meai": "pytest_approvals.simulation.meai.agent"}
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
        where: The folder of its framework, or of the adapter for an agent of our own; None where it is not here.
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
    """Gives the names of all adapters, those of this package first, and of those `reference`."""
    own = sorted({*_OWN, *_packaged()}, key=lambda name: (name != "reference", name))
    return (*own, *sorted({*names_of("adapters"), *_in_project()} - set(own)))


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
    except ApprovalsError:
        raise
    except Exception as error:
        raise AdapterError(name, f"importing it fails: {type(error).__name__}: {error}") from error
    found = module if isinstance(module, Mapping) else getattr(module, "FLAVOURS", None)
    if not isinstance(found, Mapping) or "" not in found:
        raise AdapterError(name, "its module needs FLAVOURS, a dictionary of Agent classes, the default one under ''")
    return found


def adapter_of(spec: AgentSpec) -> type[Agent]:
    """
    Gives the adapter class that *spec* names; of one that plays releases itself, the class for that release.

    Errors:
        UnknownName: There is no such agent, no such flavour, or no such release of one that plays releases.
        AdapterError: The adapter cannot be imported.
    """
    known = flavours(spec.name)
    if spec.flavour not in known:
        raise UnknownName(f"flavour of {spec.name}", spec.flavour, filter(None, known))
    adapter = known[spec.flavour]
    return _playing(spec, adapter) if spec.version and adapter.releases else adapter


def _playing(spec: AgentSpec, adapter: type[Agent]) -> type[Agent]:
    played = {each.release: each for each in adapter.releases}
    if spec.version not in played:
        raise UnknownName(f"release of {spec.base}", str(spec.version), [name for name in played if name])
    return played[spec.version]


def plays_its_releases(agent: str) -> bool:
    """Says whether an agent plays its releases itself; False for one that is not known here."""
    try:
        return bool(adapter_of(AgentSpec.parse(agent)).release)
    except ApprovalsError:
        return False


def adapter_folder(name: str) -> Path:
    """Gives the folder that the adapter called *name* stands in, where its waivers stand, too."""
    return Path(sys.modules[flavours(name)[""].__module__].__file__ or "").parent


def local_agent(spec: AgentSpec) -> LocalAgent:
    """Says how the agent that *spec* names stands in this environment, whatever version *spec* asks for."""
    adapter = adapter_of(spec)
    if adapter.framework is None:
        return LocalAgent(spec=spec, adapter=adapter, version=adapter.release, where=str(adapter_folder(spec.name)))
    installed = version(adapter.framework) if is_here(adapter) else None
    if installed is None:
        return LocalAgent(spec=spec, adapter=adapter, version=None, where=None)
    return LocalAgent(spec=spec, adapter=adapter, version=installed, where=_where(adapter))


def is_here(adapter: type[Agent]) -> bool:
    """Says whether the framework of an adapter is installed in this environment, which only Python's can be."""
    if adapter.framework is None or adapter.registry != PYPI.name:
        return False
    try:
        version(adapter.framework)
    except PackageNotFoundError:
        return False
    return True


def runnable(spec: AgentSpec) -> LocalAgent:
    """
    Gives the agent that *spec* names, if it can run in this environment as *spec* asks.

    Errors:
        AgentUnavailable: Its framework is not here, or here in another version or from another folder.
    """
    found = local_agent(spec)
    name = str(spec)
    if found.framework is None:
        refuse_what_cannot_be_installed(spec, found.adapter)
        return found
    if found.adapter.registry != PYPI.name:
        why = f"{found.framework} is written in {registry_named(found.adapter.registry).language}"
        raise AgentUnavailable(name, f"{why} and does not run in this process", "pytest-approvals run starts it")
    remedy = f"to install it here: pip install {_requirement(found)}"
    if not found.available:
        raise AgentUnavailable(name, f"{found.framework} is not installed", remedy)
    if spec.version and spec.version != found.version:
        raise AgentUnavailable(name, f"{found.framework} {found.version} is installed here", remedy)
    if spec.checkout and not _within(found.where, spec.checkout):
        raise AgentUnavailable(name, f"{found.framework} is imported from {found.where}", remedy)
    return found


def refuse_what_cannot_be_installed(spec: AgentSpec, adapter: type[Agent]) -> None:
    """
    Accepts a spec of an agent that has no framework.

    Errors:
        AgentUnavailable: It asks for a checkout, or for a release that the agent does not play itself.
    """
    if spec.checkout or (spec.version and spec.version != adapter.release):
        raise AgentUnavailable(str(spec), "it has no framework, and so no version of its own", f"write {spec.base}")


def local_agents() -> tuple[LocalAgent, ...]:
    """Gives every flavour of every adapter as it stands in this environment."""
    return tuple(
        local_agent(AgentSpec(name=name, flavour=flavour)) for name in adapter_names() for flavour in flavours(name)
    )


def default_agents() -> tuple[str, ...]:
    """
    Gives the agents that run where none is named: the default flavour of each adapter that can run here. One that plays
    the releases of some framework is no framework that is here; it runs where it is named.
    """
    return tuple(
        agent.spec.name
        for agent in local_agents()
        if agent.available and not agent.spec.flavour and not agent.adapter.releases
    )


def all_agents() -> tuple[str, ...]:
    """
    Gives every flavour of every adapter, wherever it runs: here, or in an environment with its pinned release. A
    flavour with two names is there once.
    """
    classes: dict[type[Agent], AgentSpec] = {}
    for name in adapter_names():
        for flavour, adapter in flavours(name).items():
            classes.setdefault(adapter, AgentSpec(name=name, flavour=flavour))
    return tuple(spec.base for spec in classes.values())


def _packaged() -> tuple[str, ...]:
    import pytest_approvals.agent_side.adapters as folder

    return tuple(found.name for found in pkgutil.iter_modules(folder.__path__) if not found.name.startswith("_"))


def _in_project() -> dict[str, Path]:
    found = sorted(Path.cwd().glob(f"*{PROJECT_ENDING}.py"))
    return {path.stem.removesuffix(PROJECT_ENDING): path for path in found if path.stem.isidentifier()}


def _module(name: str) -> object:
    if name in _OWN:
        return import_module(_OWN[name])
    if name in _packaged():
        return import_module(f"pytest_approvals.agent_side.adapters.{name}")
    if name in names_of("adapters"):
        return brought("adapters", name)
    folder = str(_in_project()[name].parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return import_module(f"{name}{PROJECT_ENDING}")


def _where(adapter: type[Agent]) -> str | None:
    for package in adapter.packages:
        found = find_spec(package)
        places = (
            [found.origin] if found and found.origin else list(found.submodule_search_locations or ()) if found else []
        )
        if places:
            return str(Path(places[0]).parent if places[0].endswith(".py") else Path(places[0]))
    return None


def _requirement(found: LocalAgent) -> str:
    if found.spec.version:
        return f'"{found.framework}=={found.spec.version}"'
    return f"-e {found.spec.checkout}" if found.spec.checkout else str(found.framework)


def _within(where: str | None, folder: str) -> bool:
    return where is not None and Path(folder).resolve() in (Path(where).resolve(), *Path(where).resolve().parents)
