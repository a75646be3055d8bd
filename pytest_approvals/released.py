"""
Agents in releases that are asked for: which spec means an environment, and the source of its agents there.

`NAME==VERSION` and `NAME@PATH` always mean one, but for an agent that plays its releases itself; `NAME` alone means the
framework that can be imported here, and where there is none, an environment with the pinned release.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_approvals.agents import AgentSpec, adapter_of, is_here, refuse_what_cannot_be_installed
from pytest_approvals.errors import AgentUnavailable
from pytest_approvals.harness.environments import Built, EnvironmentCache, Recipe, recipe_for
from pytest_approvals.harness.environments.copies import copied
from pytest_approvals.pins import pinned
from pytest_approvals.registries import NPM, PYPI

if TYPE_CHECKING:
    from pytest_approvals.agent_side.contract import Agent
    from pytest_approvals.harness.environments.cache import Progress
    from pytest_approvals.harness.host import HostPool
    from pytest_approvals.harness.residents import InEnvironment
    from pytest_approvals.harness.runtimes import Runtime


def recipe_of(spec: AgentSpec, requirements: Iterable[str] = (), python: str = "") -> Recipe | None:
    """
    Gives the recipe of the environment that *spec* means; None where the agent runs in this one.

    Errors:
        UnknownName: There is no such agent.
        AgentUnavailable: It has no framework, and so no releases; or none is here, and none is pinned.
        UsageError: A requirement or the checkout cannot be used.
    """
    adapter = adapter_of(spec)
    framework = adapter.framework
    if framework is None:
        refuse_what_cannot_be_installed(spec, adapter)
        return None
    besides: dict[str, Any] = {"requirements": requirements, "python": python}
    if spec.checkout:
        return recipe_for(framework, checkout=spec.checkout, registry=adapter.registry, **besides)
    release = spec.version
    if release is None:
        if is_here(adapter):
            return None
        release = pinned(framework, adapter.registry)
    if release is None:
        remedy = f"name a release ({spec}==VERSION), or install it here: pip install {framework}"
        raise AgentUnavailable(str(spec), f"{framework} is not installed, and no release is pinned", remedy)
    return recipe_for(framework, release, registry=adapter.registry, **besides)


def released(
    spec: AgentSpec, recipe: Recipe, *, progress: Progress | None = None, pool: HostPool | None = None
) -> InEnvironment:
    """
    Gives the source of the agents that *spec* names, in the environment of *recipe*, which is made if it is not there.

    Errors:
        AgentUnavailable: The environment cannot be made.
    """
    from pytest_approvals.harness.elsewhere import OtherProcesses
    from pytest_approvals.harness.host import session_pool
    from pytest_approvals.harness.residents import InEnvironment

    built = environments().get(recipe, str(spec), progress)
    adapter = adapter_of(spec)
    runtime = _RUNTIMES[adapter.registry]
    processes = OtherProcesses(
        agent=_called(spec, adapter), environment=runtime(built, adapter, str(spec)), pool=pool or session_pool()
    )
    return InEnvironment(str(spec), processes)


def environments() -> EnvironmentCache:
    """Gives the environments that this process uses; it keeps them from being removed."""
    cache = EnvironmentCache()
    return _CACHES.setdefault(cache.folder, cache)


_CACHES: dict[Path, EnvironmentCache] = {}


def _called(spec: AgentSpec, adapter: type[Agent]) -> str:
    """Gives what the agent's side calls the agent."""
    return spec.base if _is_ours(adapter) else f"{adapter.__module__}:{adapter.__qualname__}"


def _on_node(built: Built, adapter: type[Agent], agent: str) -> Runtime:
    from pytest_approvals.harness.node import node_runtime

    return node_runtime(built.folder, adapter, agent)


def _on_python(built: Built, adapter: type[Agent], agent: str) -> Runtime:
    from pytest_approvals.harness.runtimes import AGENT_SIDE, Environment

    copies = built.folder.parent.parent / "copies"
    own = () if _is_ours(adapter) else (str(copied(_code_of(adapter), copies).parent),)
    return Environment(
        python=str(built.python),
        agent_side=str(copied(Path(AGENT_SIDE), copies)),
        path=own,
        variables=(("PYTHONPATH", ""),),
    )


_RUNTIMES: dict[str, Callable[[Built, type[Agent], str], Runtime]] = {PYPI.name: _on_python, NPM.name: _on_node}
"""What starts the agents of an environment, by the registry that it was made from."""


def _is_ours(adapter: type[Agent]) -> bool:
    return adapter.__module__.startswith("pytest_approvals.agent_side.")


def _code_of(adapter: type[Agent]) -> Path:
    """Gives the module or the package that somebody's own adapter stands in."""
    outermost = sys.modules[adapter.__module__.partition(".")[0]]
    file = Path(outermost.__file__ or "")
    return file.parent if file.name == "__init__.py" else file
