"""Launch of released agents: the environment of a spec, and the source of its agents.

`NAME==VERSION` and `NAME@PATH` always need an environment, unless the agent simulates its releases; `NAME` alone means
the installed framework, or else an environment with the pinned release.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.agents.adapters import check_installable, get_adapter, is_installed
from pytest_approvals.agents.environments import CachedEnvironment, EnvironmentCache, Recipe, create_recipe
from pytest_approvals.agents.environments.installers import find_node
from pytest_approvals.agents.environments.source_copies import copy_sources
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.agents.pins import get_pinned_release
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AgentUnavailable

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract.agent import Agent
    from pytest_approvals.agents.environments.cache import ReportProgress
    from pytest_approvals.processes.launchers import Launcher
    from pytest_approvals.processes.process_pool import ProcessPool
    from pytest_approvals.processes.remote_agents import SharedProcessSource

_JAVASCRIPT_SUFFIXES = (".mjs",)


def resolve_recipe(spec: AgentSpec, requirements: Iterable[str] = (), python: str = "") -> Recipe | None:
    """Return the recipe of the environment that *spec* needs; None if the agent runs in this one.

    Args:
        spec: The agent.
        requirements: Further requirements of the environment.
        python: The version of Python; empty for the one that runs this.

    Raises:
        UnknownName: There is no such agent.
        AgentUnavailable: It has no framework, so no releases; or the framework is neither installed nor pinned.
        UsageError: A requirement or the checkout is invalid.
    """
    adapter = get_adapter(spec)
    framework = adapter.framework
    if framework is None:
        check_installable(spec, adapter)
        return None
    registry = adapter.registry
    if spec.checkout:
        return create_recipe(
            framework, checkout=spec.checkout, requirements=requirements, python=python, registry=registry
        )
    release = spec.version
    if release is None:
        if is_installed(adapter):
            return None
        release = get_pinned_release(framework, registry)
    if release is None:
        remedy = f"name a release ({spec}==VERSION), or install it here: pip install {framework}"
        raise AgentUnavailable(str(spec), f"{framework} is not installed, and no release is pinned", remedy)
    return create_recipe(framework, release, requirements=requirements, python=python, registry=registry)


def create_environment_source(
    spec: AgentSpec, recipe: Recipe, *, progress: ReportProgress | None = None, pool: ProcessPool | None = None
) -> SharedProcessSource:
    """Return the source of the agents that *spec* names, in an environment.

    The environment is built if it is missing.

    Args:
        spec: The agent.
        recipe: The environment.
        progress: Shows a line before something that takes long.
        pool: Starts its processes; by default the pool of this process.

    Raises:
        AgentUnavailable: The environment cannot be built.
    """
    # Commands that only resolve recipes need no processes.
    from pytest_approvals.processes.process_pool import get_shared_pool
    from pytest_approvals.processes.remote_agents import SharedProcessSource, SubprocessFactory

    environment = get_environment_cache().get(recipe, str(spec), progress)
    adapter = get_adapter(spec)
    processes = SubprocessFactory(
        agent=_remote_name(spec, adapter),
        launcher=_LAUNCHERS[adapter.registry](environment, adapter, str(spec)),
        pool=pool or get_shared_pool(),
    )
    return SharedProcessSource(str(spec), processes)


def get_environment_cache() -> EnvironmentCache:
    """Return the cache of this process, which keeps the environments that it uses from being removed."""
    # One per folder, because the variable that names the folder may change while this process runs.
    cache = EnvironmentCache()
    return _ENVIRONMENT_CACHES.setdefault(cache.folder, cache)


_ENVIRONMENT_CACHES: dict[Path, EnvironmentCache] = {}


def _remote_name(spec: AgentSpec, adapter: type[Agent]) -> str:
    """Return the agent's name on the agent side."""
    return spec.base if _is_packaged(adapter) else f"{adapter.__module__}:{adapter.__qualname__}"


def _create_python_launcher(environment: CachedEnvironment, adapter: type[Agent], agent: str) -> Launcher:
    from pytest_approvals.processes.launchers import AGENT_SIDE_FOLDER, PythonLauncher

    copies = environment.folder.parent.parent / "copies"
    path = () if _is_packaged(adapter) else (str(copy_sources(_find_adapter_sources(adapter), copies).parent),)
    return PythonLauncher(
        python=str(environment.python),
        agent_side=str(copy_sources(Path(AGENT_SIDE_FOLDER), copies)),
        path=path,
        # Modules of the surrounding project must not shadow those of the environment.
        variables=(("PYTHONPATH", ""),),
        environment=str(environment.folder),
    )


def _create_node_launcher(environment: CachedEnvironment, adapter: type[Agent], agent: str) -> Launcher:
    """Return the launcher of the agents in `agents.mjs`, in the folder of *adapter*.

    Raises:
        AgentUnavailable: There is no node that can run them.
    """
    from pytest_approvals.agent_side.contract.metadata import get_facts
    from pytest_approvals.agent_side.rpc.serialization import to_json
    from pytest_approvals.processes.launchers import AGENT_SIDE_FOLDER, CommandLauncher

    node = find_node(agent)
    agent_side = Path(AGENT_SIDE_FOLDER)
    # Inside the environment, because node looks for packages in the folders above the file that imports them.
    copy = copy_sources(agent_side, environment.folder / "copies", _JAVASCRIPT_SUFFIXES)
    adapter_folder = Path(sys.modules[adapter.__module__].__file__ or "").parent.relative_to(agent_side)
    facts = json.dumps(to_json(get_facts(adapter)))
    words = (node, str(copy / "javascript" / "main.mjs"), str(copy / adapter_folder), facts)
    return CommandLauncher(words=words, environment=str(environment.folder))


_LAUNCHERS: dict[str, Callable[[CachedEnvironment, type[Agent], str], Launcher]] = {
    PYPI.name: _create_python_launcher,
    NPM.name: _create_node_launcher,
}
"""Creators of the launchers of an environment's agents, by the registry of the environment."""


def _is_packaged(adapter: type[Agent]) -> bool:
    return adapter.__module__.startswith("pytest_approvals.agent_side.")


def _find_adapter_sources(adapter: type[Agent]) -> Path:
    """Return the module or the package of a user's own adapter."""
    outermost = sys.modules[adapter.__module__.partition(".")[0]]
    file = Path(outermost.__file__ or "")
    return file.parent if file.name == "__init__.py" else file
