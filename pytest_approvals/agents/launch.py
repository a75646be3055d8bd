"""Agents in releases that are asked for: which spec means an environment, and the source of its agents there.

`NAME==VERSION` and `NAME@PATH` always mean one, but for an agent that plays its releases itself; `NAME` alone means the
framework that can be imported here, and where there is none, an environment with the pinned release.

What JavaScript agents run on: node, in an environment that npm made.

The JavaScript of the agent's side is copied into the environment, because node looks for packages in the folders above
the file that imports them.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.agent_side.contract.metadata import get_facts
from pytest_approvals.agent_side.rpc.serialization import to_json
from pytest_approvals.agents.adapters import check_installable, get_adapter, is_installed
from pytest_approvals.agents.environments import CachedEnvironment, EnvironmentCache, Recipe, create_recipe
from pytest_approvals.agents.environments.installers import find_node
from pytest_approvals.agents.environments.source_copies import copy_sources
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.agents.pins import get_pinned_release
from pytest_approvals.agents.spec import AgentSpec
from pytest_approvals.errors import AgentUnavailable
from pytest_approvals.processes.launchers import AGENT_SIDE_FOLDER, CommandLauncher

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract.agent import Agent
    from pytest_approvals.agents.environments.cache import ReportProgress
    from pytest_approvals.processes.launchers import Launcher
    from pytest_approvals.processes.process_pool import ProcessPool
    from pytest_approvals.processes.remote_agents import SharedProcessSource


def resolve_recipe(spec: AgentSpec, requirements: Iterable[str] = (), python: str = "") -> Recipe | None:
    """
    Gives the recipe of the environment that *spec* means; None where the agent runs in this one.

    Errors:
        UnknownName: There is no such agent.
        AgentUnavailable: It has no framework, and so no releases; or none is here, and none is pinned.
        UsageError: A requirement or the checkout cannot be used.
    """
    adapter = get_adapter(spec)
    framework = adapter.framework
    if framework is None:
        check_installable(spec, adapter)
        return None
    besides: dict[str, Any] = {"requirements": requirements, "python": python}
    if spec.checkout:
        return create_recipe(framework, checkout=spec.checkout, registry=adapter.registry, **besides)
    release = spec.version
    if release is None:
        if is_installed(adapter):
            return None
        release = get_pinned_release(framework, adapter.registry)
    if release is None:
        remedy = f"name a release ({spec}==VERSION), or install it here: pip install {framework}"
        raise AgentUnavailable(str(spec), f"{framework} is not installed, and no release is pinned", remedy)
    return create_recipe(framework, release, registry=adapter.registry, **besides)


def create_environment_source(
    spec: AgentSpec, recipe: Recipe, *, progress: ReportProgress | None = None, pool: ProcessPool | None = None
) -> SharedProcessSource:
    """
    Gives the source of the agents that *spec* names, in the environment of *recipe*, which is made if it is not there.

    Errors:
        AgentUnavailable: The environment cannot be made.
    """
    from pytest_approvals.processes.process_pool import get_shared_pool
    from pytest_approvals.processes.remote_agents import SharedProcessSource, SubprocessFactory

    built = get_environment_cache().get(recipe, str(spec), progress)
    adapter = get_adapter(spec)
    runtime = _LAUNCHERS[adapter.registry]
    processes = SubprocessFactory(
        agent=_remote_name(spec, adapter),
        launcher=runtime(built, adapter, str(spec)),
        pool=pool or get_shared_pool(),
    )
    return SharedProcessSource(str(spec), processes)


def get_environment_cache() -> EnvironmentCache:
    """Gives the environments that this process uses; it keeps them from being removed."""
    cache = EnvironmentCache()
    return _ENVIRONMENT_CACHES.setdefault(cache.folder, cache)


_ENVIRONMENT_CACHES: dict[Path, EnvironmentCache] = {}


def _remote_name(spec: AgentSpec, adapter: type[Agent]) -> str:
    """Gives what the agent's side calls the agent."""
    return spec.base if _is_packaged(adapter) else f"{adapter.__module__}:{adapter.__qualname__}"


def _node_launcher(built: CachedEnvironment, adapter: type[Agent], agent: str) -> Launcher:

    return create_node_launcher(built.folder, adapter, agent)


def _python_launcher(built: CachedEnvironment, adapter: type[Agent], agent: str) -> Launcher:
    from pytest_approvals.processes.launchers import AGENT_SIDE_FOLDER, PythonLauncher

    copies = built.folder.parent.parent / "copies"
    own = () if _is_packaged(adapter) else (str(copy_sources(_find_adapter_sources(adapter), copies).parent),)
    return PythonLauncher(
        python=str(built.python),
        agent_side=str(copy_sources(Path(AGENT_SIDE_FOLDER), copies)),
        path=own,
        variables=(("PYTHONPATH", ""),),
    )


_LAUNCHERS: dict[str, Callable[[CachedEnvironment, type[Agent], str], Launcher]] = {
    PYPI.name: _python_launcher,
    NPM.name: _node_launcher,
}
"""What starts the agents of an environment, by the registry that it was made from."""


def _is_packaged(adapter: type[Agent]) -> bool:
    return adapter.__module__.startswith("pytest_approvals.agent_side.")


def _find_adapter_sources(adapter: type[Agent]) -> Path:
    """Gives the module or the package that somebody's own adapter stands in."""
    outermost = sys.modules[adapter.__module__.partition(".")[0]]
    file = Path(outermost.__file__ or "")
    return file.parent if file.name == "__init__.py" else file


JAVASCRIPT_SUFFIXES = (".mjs",)


def create_node_launcher(environment: Path, adapter: type[Agent], agent: str) -> CommandLauncher:
    """
    Gives what starts the agents whose facts *adapter* holds, and which stand in `agents.mjs` beside it.

    Errors:
        AgentUnavailable: There is no node that can run them.
    """
    node = find_node(agent)
    home = Path(AGENT_SIDE_FOLDER)
    copy = copy_sources(home, environment / "copies", JAVASCRIPT_SUFFIXES)
    beside = Path(sys.modules[adapter.__module__].__file__ or "").parent.relative_to(home)
    facts = json.dumps(to_json(get_facts(adapter)))
    return CommandLauncher(words=(node, str(copy / "javascript" / "main.mjs"), str(copy / beside), facts))
