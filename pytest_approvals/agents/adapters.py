"""Adapters: which ones exist, and which of their agents can run in this environment.

An adapter called NAME is a module with `FLAVOURS`: one of `agent_side.adapters`, a simulation for `reference` and
`meai`, a third-party one (see `extensions.py`), or, in a user's project, a module `NAME_adapter` in the current folder.
One that simulates releases (`Agent.releases`) has versions without anything that could be installed.
"""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
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
"""Suffix of the name of an adapter module in a user's project."""

_SIMULATIONS = {"reference": "pytest_approvals.simulation", "meai": "pytest_approvals.simulation.meai.agent"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalAgent:
    """An agent as it is in this environment.

    Attributes:
        spec: The spec that names it.
        adapter: The class that drives it.
        version: The version of its framework, or the release that it simulates; None if the framework is not installed.
        where: The folder of its framework, or of the adapter if it has none; None if the framework is not installed.
    """

    spec: AgentSpec
    adapter: type[Agent]
    version: str | None
    where: str | None

    @property
    def framework(self) -> str | None:
        """The distribution whose version is its version."""
        return self.adapter.framework

    @property
    def flavour(self) -> str:
        """The flavour by which waivers know it: empty for the default one, also if that has a name, and was named."""
        flavours = load_flavours(self.spec.name)
        return "" if flavours.get(self.spec.flavour) is flavours[""] else self.spec.flavour

    @property
    def available(self) -> bool:
        """Whether it can run in this environment."""
        return self.where is not None


def list_adapter_names() -> tuple[str, ...]:
    """Return the names of all adapters: `reference`, then those of this package, then all others."""
    own = sorted({*_SIMULATIONS, *_list_packaged_adapters()}, key=lambda name: (name != "reference", name))
    return (*own, *sorted({*available_names("adapters"), *_find_project_adapters()} - set(own)))


def load_flavours(name: str) -> Mapping[str, type[Agent]]:
    """Return the flavours of the adapter called *name*, the default one first under `""`.

    Raises:
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
    flavours = module if isinstance(module, Mapping) else getattr(module, "FLAVOURS", None)
    if not isinstance(flavours, Mapping) or "" not in flavours:
        raise AdapterError(name, "its module needs FLAVOURS, a dictionary of Agent classes, the default one under ''")
    return flavours


def get_adapter(spec: AgentSpec) -> type[Agent]:
    """Return the adapter class that *spec* names, or its class for a simulated release.

    Raises:
        UnknownName: There is no such agent, no such flavour, or no such simulated release.
        AdapterError: The adapter cannot be imported.
    """
    flavours = load_flavours(spec.name)
    if spec.flavour not in flavours:
        raise UnknownName(f"flavour of {spec.name}", spec.flavour, filter(None, flavours))
    adapter = flavours[spec.flavour]
    return _get_release_class(spec, adapter) if spec.version and adapter.releases else adapter


def _get_release_class(spec: AgentSpec, adapter: type[Agent]) -> type[Agent]:
    by_release = {release_class.release: release_class for release_class in adapter.releases}
    if spec.version not in by_release:
        raise UnknownName(f"release of {spec.base}", str(spec.version), [name for name in by_release if name])
    return by_release[spec.version]


def is_release_simulation(agent: str) -> bool:
    """Return whether an agent simulates a release; False for an unknown one."""
    try:
        return bool(get_adapter(AgentSpec.parse(agent)).release)
    except ApprovalsError:
        return False


def get_adapter_folder(name: str) -> Path:
    """Return the folder of the adapter called *name*, which holds its waivers, too."""
    return Path(sys.modules[load_flavours(name)[""].__module__].__file__ or "").parent


def find_local_agent(spec: AgentSpec) -> LocalAgent:
    """Return the agent that *spec* names as it is here, ignoring the version that *spec* asks for."""
    adapter = get_adapter(spec)
    if adapter.framework is None:
        return LocalAgent(spec=spec, adapter=adapter, version=adapter.release, where=str(get_adapter_folder(spec.name)))
    installed = version(adapter.framework) if is_installed(adapter) else None
    if installed is None:
        return LocalAgent(spec=spec, adapter=adapter, version=None, where=None)
    return LocalAgent(spec=spec, adapter=adapter, version=installed, where=_find_framework_folder(adapter))


def is_installed(adapter: type[Agent]) -> bool:
    """Return whether the framework of an adapter is installed here; only Python distributions can be."""
    if adapter.framework is None or adapter.registry != PYPI.name:
        return False
    try:
        version(adapter.framework)
    except PackageNotFoundError:
        return False
    return True


def resolve_local_agent(spec: AgentSpec) -> LocalAgent:
    """Return the agent that *spec* names, if it can run in this environment as *spec* asks.

    Raises:
        AgentUnavailable: Its framework is not installed, or in another version, or from another folder.
    """
    agent = find_local_agent(spec)
    name = str(spec)
    if agent.framework is None:
        check_installable(spec, agent.adapter)
        return agent
    if agent.adapter.registry != PYPI.name:
        why = f"{agent.framework} is written in {get_registry(agent.adapter.registry).language}"
        raise AgentUnavailable(name, f"{why} and does not run in this process", "pytest-approvals run starts it")
    remedy = f"to install it here: pip install {_format_requirement(agent)}"
    if not agent.available:
        # Those of other packages have no extra here.
        if spec.version is None and spec.checkout is None and agent.adapter.__module__.startswith("pytest_approvals."):
            remedy = f"to install it here: pip install 'pytest-approvals[{spec.name.replace('_', '-')}]'"
        raise AgentUnavailable(name, f"{agent.framework} is not installed", remedy)
    if spec.version and spec.version != agent.version:
        raise AgentUnavailable(name, f"{agent.framework} {agent.version} is installed here", remedy)
    if spec.checkout and not _is_within(agent.where, spec.checkout):
        raise AgentUnavailable(name, f"{agent.framework} is imported from {agent.where}", remedy)
    return agent


def check_installable(spec: AgentSpec, adapter: type[Agent]) -> None:
    """Validate the spec of an agent that has no framework.

    Raises:
        AgentUnavailable: It asks for a checkout, or for a release that the agent does not simulate.
    """
    if spec.checkout or (spec.version and spec.version != adapter.release):
        raise AgentUnavailable(str(spec), "it has no framework, so neither releases nor checkouts", f"use {spec.base}")


def list_local_agents() -> tuple[LocalAgent, ...]:
    """Return every flavour of every adapter as it is in this environment."""
    return tuple(
        find_local_agent(AgentSpec(name=name, flavour=flavour))
        for name in list_adapter_names()
        for flavour in load_flavours(name)
    )


def list_default_agents() -> tuple[str, ...]:
    """Return the agents that run if none is named.

    They are the default flavours of the adapters that can run here. An adapter that simulates the releases of a
    framework runs only when named.
    """
    return tuple(
        agent.spec.name
        for agent in list_local_agents()
        if agent.available and not agent.spec.flavour and not agent.adapter.releases
    )


def list_all_agents() -> tuple[str, ...]:
    """Return every flavour of every adapter, wherever it runs.

    That is here, or in an environment with its pinned release. A flavour with two names is listed once, and one that
    the user has to describe first is left out.
    """
    classes: dict[type[Agent], AgentSpec] = {}
    for name in list_adapter_names():
        for flavour, adapter in load_flavours(name).items():
            if adapter.unavailable is None:
                # A class with two names is one agent, under the name that comes first.
                classes.setdefault(adapter, AgentSpec(name=name, flavour=flavour))
    return tuple(spec.base for spec in classes.values())


# Files do not come and go in an installed package, and each look at the folder takes as long as a short run.
@cache
def _list_packaged_adapters() -> tuple[str, ...]:
    import pytest_approvals.agent_side.adapters as folder

    modules = pkgutil.iter_modules(folder.__path__)
    return tuple(module.name for module in modules if not module.name.startswith("_"))


def _find_project_adapters() -> dict[str, Path]:
    paths = sorted(Path.cwd().glob(f"*{PROJECT_SUFFIX}.py"))
    return {path.stem.removesuffix(PROJECT_SUFFIX): path for path in paths if path.stem.isidentifier()}


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
        module = find_spec(package)
        if module is None:
            continue
        # A namespace package has no origin.
        places = [module.origin] if module.origin else list(module.submodule_search_locations or ())
        if places:
            return str(Path(places[0]).parent if places[0].endswith(".py") else Path(places[0]))
    return None


def _format_requirement(agent: LocalAgent) -> str:
    if agent.spec.version:
        return f'"{agent.framework}=={agent.spec.version}"'
    return f"-e {agent.spec.checkout}" if agent.spec.checkout else str(agent.framework)


def _is_within(where: str | None, folder: str) -> bool:
    return where is not None and Path(folder).resolve() in (Path(where).resolve(), *Path(where).resolve().parents)
