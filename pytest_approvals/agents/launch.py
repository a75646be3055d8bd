"""Launch of released agents: the environment of a spec, and the source of its agents.

`NAME==VERSION` and `NAME@PATH` always need an environment, unless the agent simulates its releases; `NAME` alone means
the installed framework, or else an environment with the pinned release. Beside the framework stands a copy of our code,
one for each digest of its content; a copy is verified before it is used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from pytest_approvals.agents.adapters import check_installable, get_adapter, is_installed
from pytest_approvals.agents.cache_folder import create_private_folder, find_foreign_access
from pytest_approvals.agents.environments import CachedEnvironment, EnvironmentCache, Recipe, create_recipe
from pytest_approvals.agents.environments.installers import find_node
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

_JAVASCRIPT_SUFFIXES = (".mjs", ".cjs")


def resolve_recipe(spec: AgentSpec, requirements: Iterable[str] = (), python: str = "") -> Recipe | None:
    """Return the recipe of the environment that *spec* needs; None if the agent runs in this one.

    Args:
        spec: The agent.
        requirements: Further requirements of the environment.
        python: The version of Python; empty for the one that runs this.

    Raises:
        UnknownName: There is no such agent.
        AgentUnavailable: It has no framework, so no releases; the framework is neither installed nor pinned; or the
            user has to describe the agent first.
        UsageError: A requirement or the checkout is invalid.
    """
    adapter = get_adapter(spec)
    if adapter.unavailable is not None:
        raise AgentUnavailable(str(spec), *adapter.unavailable)
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


PYTHON_SUFFIXES = (".py", ".json")
"""Suffixes of the files that are copied of a Python package."""


def copy_sources(source: Path, folder: Path, suffixes: Iterable[str] = PYTHON_SUFFIXES) -> Path:
    """Copy a module or a package below *folder*, unless an undamaged copy exists, and return the copy.

    Several processes may do so at a time.

    Args:
        source: The module or the folder of the package.
        folder: The folder of all copies.
        suffixes: Suffixes of the files that are copied of a package.
    """
    files = [path.relative_to(source.parent) for path in sorted(_list_files(source, suffixes))]
    digest = _digest_files(source.parent, files)
    target = folder / digest
    if not _is_intact(target, files, digest):
        create_private_folder(folder)
        _copy_files(files, source.parent, target)
    return target / source.name


def _digest_files(root: Path, files: Iterable[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file}\0".encode() + (root / file).read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def _is_intact(copy: Path, files: Iterable[Path], digest: str) -> bool:
    try:
        return find_foreign_access(copy, trusts_group=True) is None and _digest_files(copy, files) == digest
    except OSError:
        return False


def _list_files(source: Path, suffixes: Iterable[str]) -> Iterator[Path]:
    if source.is_file():
        yield source
        return
    yield from (path for suffix in suffixes for path in source.rglob(f"*{suffix}"))


def _copy_files(files: list[Path], root: Path, target: Path) -> None:
    """Copy into a folder with another name first, so that a copy that is visible is complete; replace a damaged one."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix="unfinished-") as unfinished:
        whole = Path(unfinished) / "whole"
        for file in files:
            copy = whole / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / file, copy)
        whole.chmod(0o700)
        # Another process may have replaced it in the meantime, and use it.
        if not _is_intact(target, files, target.name):
            with suppress(FileNotFoundError):
                os.rename(target, Path(unfinished) / "damaged")
        try:
            os.rename(whole, target)
        except OSError:
            # Another process was faster.
            if not target.is_dir():
                raise
