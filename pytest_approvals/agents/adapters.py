"""The agents that can be named: what a spec says, which adapters there are, and which of them can run here.

An adapter called NAME is a module with `FLAVOURS`: one of `agent_side.adapters`, a simulation for `reference` and
`meai`, what others bring (see `extensions.py`), or, in somebody's own project, a module `NAME_adapter` in the current
folder. One that plays releases itself (`Agent.releases`) has versions without anything that could be installed.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.agents.package_registries import PYPI, get_registry
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AdapterError, AgentUnavailable, ApprovalsError, UnknownName
from pytest_approvals.extensions import available_names, load

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract.agent import Agent

PROJECT_SUFFIX = "_adapter"
"""What the name of a module in somebody's own project ends with, after the name of the adapter."""

_SIMULATIONS = {"reference": "pytest_approvals.simulation", "meai": "pytest_approvals.simulation.meai.agent"}


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


def list_adapter_names() -> tuple[str, ...]:
    """Gives the names of all adapters, those of this package first, and of those `reference`."""
    own = sorted({*_SIMULATIONS, *_list_packaged_adapters()}, key=lambda name: (name != "reference", name))
    return (*own, *sorted({*available_names("adapters"), *_find_project_adapters()} - set(own)))


def load_flavours(name: str) -> Mapping[str, type[Agent]]:
    """
    Gives the flavours of the adapter called *name*, the default one first under `""`.

    Errors:
        UnknownName: No adapter has that name.
        AdapterError: The adapter cannot be imported, or has no flavours.
    """
    if name not in list_adapter_names():
        raise UnknownName("agent", name, list_adapter_names())
    try:
        module = _import_adapter(name)
    except ApprovalsError:
        raise
    except Exception as error:
        raise AdapterError(name, f"importing it fails: {type(error).__name__}: {error}") from error
    found = module if isinstance(module, Mapping) else getattr(module, "FLAVOURS", None)
    if not isinstance(found, Mapping) or "" not in found:
        raise AdapterError(name, "its module needs FLAVOURS, a dictionary of Agent classes, the default one under ''")
    return found


def get_adapter(spec: AgentSpec) -> type[Agent]:
    """
    Gives the adapter class that *spec* names; of one that plays releases itself, the class for that release.

    Errors:
        UnknownName: There is no such agent, no such flavour, or no such release of one that plays releases.
        AdapterError: The adapter cannot be imported.
    """
    known = load_flavours(spec.name)
    if spec.flavour not in known:
        raise UnknownName(f"flavour of {spec.name}", spec.flavour, filter(None, known))
    adapter = known[spec.flavour]
    return _get_release_class(spec, adapter) if spec.version and adapter.releases else adapter


def _get_release_class(spec: AgentSpec, adapter: type[Agent]) -> type[Agent]:
    played = {each.release: each for each in adapter.releases}
    if spec.version not in played:
        raise UnknownName(f"release of {spec.base}", str(spec.version), [name for name in played if name])
    return played[spec.version]


def is_release_simulation(agent: str) -> bool:
    """Says whether an agent plays its releases itself; False for one that is not known here."""
    try:
        return bool(get_adapter(AgentSpec.parse(agent)).release)
    except ApprovalsError:
        return False


def get_adapter_folder(name: str) -> Path:
    """Gives the folder that the adapter called *name* stands in, where its waivers stand, too."""
    return Path(sys.modules[load_flavours(name)[""].__module__].__file__ or "").parent


def find_local_agent(spec: AgentSpec) -> LocalAgent:
    """Says how the agent that *spec* names stands in this environment, whatever version *spec* asks for."""
    adapter = get_adapter(spec)
    if adapter.framework is None:
        return LocalAgent(spec=spec, adapter=adapter, version=adapter.release, where=str(get_adapter_folder(spec.name)))
    installed = version(adapter.framework) if is_installed(adapter) else None
    if installed is None:
        return LocalAgent(spec=spec, adapter=adapter, version=None, where=None)
    return LocalAgent(spec=spec, adapter=adapter, version=installed, where=_find_framework_folder(adapter))


def is_installed(adapter: type[Agent]) -> bool:
    """Says whether the framework of an adapter is installed in this environment, which only Python's can be."""
    if adapter.framework is None or adapter.registry != PYPI.name:
        return False
    try:
        version(adapter.framework)
    except PackageNotFoundError:
        return False
    return True


def resolve_local_agent(spec: AgentSpec) -> LocalAgent:
    """
    Gives the agent that *spec* names, if it can run in this environment as *spec* asks.

    Errors:
        AgentUnavailable: Its framework is not here, or here in another version or from another folder.
    """
    found = find_local_agent(spec)
    name = str(spec)
    if found.framework is None:
        check_installable(spec, found.adapter)
        return found
    if found.adapter.registry != PYPI.name:
        why = f"{found.framework} is written in {get_registry(found.adapter.registry).language}"
        raise AgentUnavailable(name, f"{why} and does not run in this process", "pytest-approvals run starts it")
    remedy = f"to install it here: pip install {_format_requirement(found)}"
    if not found.available:
        raise AgentUnavailable(name, f"{found.framework} is not installed", remedy)
    if spec.version and spec.version != found.version:
        raise AgentUnavailable(name, f"{found.framework} {found.version} is installed here", remedy)
    if spec.checkout and not _is_within(found.where, spec.checkout):
        raise AgentUnavailable(name, f"{found.framework} is imported from {found.where}", remedy)
    return found


def check_installable(spec: AgentSpec, adapter: type[Agent]) -> None:
    """
    Accepts a spec of an agent that has no framework.

    Errors:
        AgentUnavailable: It asks for a checkout, or for a release that the agent does not play itself.
    """
    if spec.checkout or (spec.version and spec.version != adapter.release):
        raise AgentUnavailable(str(spec), "it has no framework, and so no version of its own", f"write {spec.base}")


def list_local_agents() -> tuple[LocalAgent, ...]:
    """Gives every flavour of every adapter as it stands in this environment."""
    return tuple(
        find_local_agent(AgentSpec(name=name, flavour=flavour))
        for name in list_adapter_names()
        for flavour in load_flavours(name)
    )


def list_default_agents() -> tuple[str, ...]:
    """
    Gives the agents that run where none is named: the default flavour of each adapter that can run here. One that plays
    the releases of some framework is no framework that is here; it runs where it is named.
    """
    return tuple(
        agent.spec.name
        for agent in list_local_agents()
        if agent.available and not agent.spec.flavour and not agent.adapter.releases
    )


def list_all_agents() -> tuple[str, ...]:
    """
    Gives every flavour of every adapter, wherever it runs: here, or in an environment with its pinned release. A
    flavour with two names is there once.
    """
    classes: dict[type[Agent], AgentSpec] = {}
    for name in list_adapter_names():
        for flavour, adapter in load_flavours(name).items():
            classes.setdefault(adapter, AgentSpec(name=name, flavour=flavour))
    return tuple(spec.base for spec in classes.values())


def _list_packaged_adapters() -> tuple[str, ...]:
    import pytest_approvals.agent_side.adapters as folder

    return tuple(found.name for found in pkgutil.iter_modules(folder.__path__) if not found.name.startswith("_"))


def _find_project_adapters() -> dict[str, Path]:
    found = sorted(Path.cwd().glob(f"*{PROJECT_SUFFIX}.py"))
    return {path.stem.removesuffix(PROJECT_SUFFIX): path for path in found if path.stem.isidentifier()}


def _import_adapter(name: str) -> object:
    if name in _SIMULATIONS:
        return import_module(_SIMULATIONS[name])
    if name in _list_packaged_adapters():
        return import_module(f"pytest_approvals.agent_side.adapters.{name}")
    if name in available_names("adapters"):
        return load("adapters", name)
    folder = str(_find_project_adapters()[name].parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    return import_module(f"{name}{PROJECT_SUFFIX}")


def _find_framework_folder(adapter: type[Agent]) -> str | None:
    for package in adapter.packages:
        found = find_spec(package)
        places = (
            [found.origin] if found and found.origin else list(found.submodule_search_locations or ()) if found else []
        )
        if places:
            return str(Path(places[0]).parent if places[0].endswith(".py") else Path(places[0]))
    return None


def _format_requirement(found: LocalAgent) -> str:
    if found.spec.version:
        return f'"{found.framework}=={found.spec.version}"'
    return f"-e {found.spec.checkout}" if found.spec.checkout else str(found.framework)


def _is_within(where: str | None, folder: str) -> bool:
    return where is not None and Path(folder).resolve() in (Path(where).resolve(), *Path(where).resolve().parents)
