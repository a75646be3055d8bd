"""Cache of environments, in one folder that only its user can access.

The folder holds:

environments/KEY/           an environment; complete once environment.json is in it
locks/KEY.make              locked by the process that builds or removes it
locks/KEY.use               shared by the processes that use it, while they run; locked by the one that removes it
copies/DIGEST/NAME          our code that runs in environments
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE, create_private_folder, get_cache_folder
from pytest_approvals.agents.environments.installers import (
    build_npm_environment,
    build_python_environment,
    get_interpreter,
)
from pytest_approvals.agents.environments.recipe import Recipe
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.errors import AgentUnavailable
from pytest_approvals.errors.printable import escape_value


class FileLock:
    """A lock on a file, held until it is released or this process ends.

    Args:
        path: The file; created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        create_private_folder(path.parent)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire_shared(self) -> None:
        """Wait until no other process has it exclusively."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def acquire(self) -> None:
        """Wait until no other process has it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_acquire(self) -> bool:
        """Acquire it unless another process has it; return whether it was acquired."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def release(self) -> None:
        """Release it; it cannot be acquired again."""
        os.close(self._descriptor)


COMPLETION_MARK = "environment.json"
"""File that marks a complete environment and names its contents; its modification time is that of the latest use."""

ReportProgress = Callable[[str], None]
"""Shows a line of progress."""

BuildEnvironment = Callable[[Recipe, Path, str], None]
"""Builds an environment in a folder that does not exist, for an agent."""

_BUILDERS: dict[str, BuildEnvironment] = {
    PYPI.name: build_python_environment,
    NPM.name: build_npm_environment,
}


def build_environment(recipe: Recipe, folder: Path, agent: str) -> None:
    """Build an environment in *folder*, which must not exist.

    Raises:
        AgentUnavailable: The installer is missing, or fails; the message holds its reason.
    """
    _BUILDERS[recipe.registry](recipe, folder, agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedEnvironment:
    """An environment in the cache.

    Attributes:
        recipe: Its recipe in words.
        used: The time of the latest use, in seconds.
        complete: Whether its build was completed.
    """

    folder: Path
    recipe: str
    used: float
    complete: bool = True

    @property
    def key(self) -> str:
        """The name of its folder."""
        return self.folder.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return get_interpreter(self.folder)

    def size(self) -> int:
        """Return the size of its files, in bytes."""
        return sum(path.lstat().st_size for path in self.folder.rglob("*") if not path.is_dir())


class EnvironmentCache:
    """Cache of environments; several processes may use one folder at a time.

    Args:
        folder: The folder of the cache; by default that of `get_cache_folder`.
        build: Builds an environment.
    """

    def __init__(self, folder: Path | None = None, build: BuildEnvironment = build_environment) -> None:
        self.folder = folder or get_cache_folder()
        self._build = build
        self._used: dict[str, FileLock] = {}
        self._failed: dict[str, AgentUnavailable] = {}

    def get(self, recipe: Recipe, agent: str, progress: ReportProgress | None = None) -> CachedEnvironment:
        """Return the environment of a recipe, built if it is missing; it is kept while this process runs.

        Args:
            recipe: Its contents.
            agent: The agent that needs it, for messages.
            progress: Shows a line before something that takes long.

        Raises:
            AgentUnavailable: It cannot be built; a build that failed is not tried again.
        """
        if recipe.key in self._failed:
            raise self._failed[recipe.key]
        try:
            while (environment := self._find(recipe.key)) is None:
                self._create(recipe, agent, progress or print_progress)
        except AgentUnavailable as failure:
            self._failed[recipe.key] = failure
            raise
        except OSError as error:
            remedy = f"make room there, or name another folder in {CACHE_FOLDER_VARIABLE}"
            raise AgentUnavailable(
                agent, f"its environment cannot be kept in {self.folder} ({error})", remedy
            ) from None
        return environment

    def list_environments(self) -> list[CachedEnvironment]:
        """Return all environments, the latest used first; those that were never completed, too."""
        folders = sorted((self.folder / "environments").glob("*"))
        return sorted(map(self._read, folders), key=lambda environment: (-environment.used, environment.key))

    def prune(self, unused_for: float) -> Iterator[CachedEnvironment]:
        """Remove, and yield, incomplete environments and those not used for that many seconds."""
        limit = time.time() - unused_for
        for environment in self.list_environments():
            if (environment.used > limit and environment.complete) or not self._remove(environment):
                continue
            yield environment

    def release(self) -> None:
        """Stop using all environments: they may be removed from now on."""
        for lock in self._used.values():
            lock.release()
        self._used.clear()

    def _find(self, key: str) -> CachedEnvironment | None:
        """Return the environment if it is complete, and keep it from being removed."""
        if key not in self._used:
            # Locked before the mark is read: `_remove` needs this lock, so an environment that is found stays.
            lock = self._lock(f"{key}.use")
            lock.acquire_shared()
            if not self._mark(key).is_file():
                lock.release()
                return None
            self._used[key] = lock
        os.utime(self._mark(key))
        return self._read(self._mark(key).parent)

    def _create(self, recipe: Recipe, agent: str, progress: ReportProgress) -> None:
        lock = self._lock(f"{recipe.key}.make")
        lock.acquire()
        try:
            mark = self._mark(recipe.key)
            # Another process may have built it while this one waited for the lock.
            if mark.is_file():
                return
            progress(f"making an environment for {agent}: {recipe}")
            shutil.rmtree(mark.parent, ignore_errors=True)
            create_private_folder(mark.parent.parent)
            self._build(recipe, mark.parent, agent)
            # Renamed at last: a mark that exists is complete.
            unfinished = mark.with_suffix(".unfinished")
            unfinished.write_text(json.dumps({"recipe": str(recipe)}), encoding="utf-8")
            unfinished.replace(mark)
        finally:
            lock.release()

    def _remove(self, environment: CachedEnvironment) -> bool:
        locks = [self._lock(f"{environment.key}.{why}") for why in ("make", "use")]
        try:
            if not all(lock.try_acquire() for lock in locks):
                return False
            # The mark first: if this is cut off, the rest counts as incomplete and is built again.
            self._mark(environment.key).unlink(missing_ok=True)
            shutil.rmtree(environment.folder, ignore_errors=True)
            return True
        finally:
            for lock in locks:
                lock.release()

    def _read(self, folder: Path) -> CachedEnvironment:
        mark = folder / COMPLETION_MARK
        if not mark.is_file():
            return CachedEnvironment(
                folder=folder, recipe="(not completed)", used=folder.stat().st_mtime, complete=False
            )
        recipe = json.loads(mark.read_text(encoding="utf-8"))["recipe"]
        return CachedEnvironment(folder=folder, recipe=recipe, used=mark.stat().st_mtime)

    def _mark(self, key: str) -> Path:
        return self.folder / "environments" / key / COMPLETION_MARK

    def _lock(self, name: str) -> FileLock:
        return FileLock(self.folder / "locks" / name)


def print_progress(line: str) -> None:
    """Print a line of progress to standard error, where it is not mistaken for a result."""
    sys.stderr.write(f"pytest-approvals: {escape_value(line)}\n")
    sys.stderr.flush()
