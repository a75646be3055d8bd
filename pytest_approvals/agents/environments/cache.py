"""Where this package keeps what it can make again: environments, and scenarios that were read.

Locks between processes: whoever builds an environment is alone, whoever uses it keeps it from being removed.

The environments that were made, in one folder:

    environments/KEY/           an environment; complete once environment.json is in it
    locks/KEY.make              taken by whoever makes or removes it
    locks/KEY.use               shared by whoever uses it, for as long as it runs; taken by whoever removes it
    copies/DIGEST/NAME          code of ours that runs in environments
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

from pytest_approvals.agents.environments import installers
from pytest_approvals.agents.environments.recipe import Recipe
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.errors import AgentUnavailable

CACHE_FOLDER_VARIABLE = "PYTEST_APPROVALS_CACHE"
"""The environment variable that names the folder of the cache."""


def get_cache_folder() -> Path:
    """Gives the folder of the cache: the one that the variable names, else one among the person's caches."""
    if named := os.environ.get(CACHE_FOLDER_VARIABLE):
        return Path(named).expanduser().absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(caches).expanduser().absolute() / "pytest-approvals"


class FileLock:
    """
    A lock on a file, held by this process until it is let go or the process ends.

    Arguments:
        path: The file, which is made where it is not there.
    """

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)

    def share(self) -> None:
        """Waits until nobody is alone with it; others may share it then."""
        fcntl.flock(self._descriptor, fcntl.LOCK_SH)

    def take(self) -> None:
        """Waits until nobody else has it."""
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)

    def try_take(self) -> bool:
        """Takes it if nobody else has it; says whether."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def let_go(self) -> None:
        """Lets it go for good."""
        os.close(self._descriptor)


COMPLETION_MARK = "environment.json"
"""The file that says that an environment is complete, and what is in it; its time is that of the latest use."""

ReportProgress = Callable[[str], None]
BuildEnvironment = Callable[[Recipe, Path, str], None]

_BUILDERS: dict[str, BuildEnvironment] = {
    PYPI.name: installers.build_python_environment,
    NPM.name: installers.build_npm_environment,
}


def build_environment(recipe: Recipe, folder: Path, agent: str) -> None:
    """
    Makes an environment in *folder*, which must not be there.

    Errors:
        AgentUnavailable: What makes it is not here, or cannot make it; its reason is told.
    """
    _BUILDERS[recipe.registry](recipe, folder, agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedEnvironment:
    """
    An environment that was made.

    Attributes:
        recipe: Its recipe in words.
        used: When it was used last, in seconds.
        complete: Whether it was made to the end.
    """

    folder: Path
    recipe: str
    used: float
    complete: bool = True

    @property
    def key(self) -> str:
        """Its name."""
        return self.folder.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return installers.get_interpreter(self.folder)

    def size(self) -> int:
        """Adds up its files, in bytes."""
        return sum(path.lstat().st_size for path in self.folder.rglob("*") if not path.is_dir())


class EnvironmentCache:
    """
    Makes environments and keeps them; several processes may use one folder at a time.

    Arguments:
        folder: Where; by default as `get_cache_folder` says.
        build: Makes an environment in a folder that is not there, for an agent.
    """

    def __init__(self, folder: Path | None = None, build: BuildEnvironment = build_environment) -> None:
        self.folder = folder or get_cache_folder()
        self._build = build
        self._used: dict[str, FileLock] = {}
        self._failed: dict[str, AgentUnavailable] = {}

    def get(self, recipe: Recipe, agent: str, progress: ReportProgress | None = None) -> CachedEnvironment:
        """
        Gives the environment of a recipe, made now if it is not there; it stays as long as this process runs.

        Arguments:
            agent: Who it is for, for messages.
            progress: Is told a line before something that takes long.

        Errors:
            AgentUnavailable: It cannot be made; what failed once is not tried again.
        """
        if recipe.key in self._failed:
            raise self._failed[recipe.key]
        try:
            while (built := self._ready(recipe.key)) is None:
                self._make(recipe, agent, progress or print_progress)
        except AgentUnavailable as failure:
            self._failed[recipe.key] = failure
            raise
        except OSError as error:
            remedy = f"make room there, or name another folder in {CACHE_FOLDER_VARIABLE}"
            raise AgentUnavailable(
                agent, f"its environment cannot be kept in {self.folder} ({error})", remedy
            ) from None
        return built

    def built(self) -> list[CachedEnvironment]:
        """Lists the environments that are there, the latest used first; those that were never completed, too."""
        folders = sorted((self.folder / "environments").glob("*"))
        return sorted(map(self._look, folders), key=lambda one: (-one.used, one.key))

    def prune(self, unused_for: float) -> Iterator[CachedEnvironment]:
        """Removes environments that nobody uses and nobody used for that many seconds, and incomplete ones."""
        limit = time.time() - unused_for
        for built in self.built():
            if (built.used > limit and built.complete) or not self._remove(built):
                continue
            yield built

    def let_go(self) -> None:
        """Gives up what was asked for: it may be removed from now on."""
        for lock in self._used.values():
            lock.let_go()
        self._used.clear()

    def _ready(self, key: str) -> CachedEnvironment | None:
        """Gives the environment if it is complete, and keeps it from being removed."""
        if key not in self._used:
            lock = self._lock(f"{key}.use")
            lock.share()
            if not self._mark(key).is_file():
                lock.let_go()
                return None
            self._used[key] = lock
        os.utime(self._mark(key))
        return self._look(self._mark(key).parent)

    def _make(self, recipe: Recipe, agent: str, progress: ReportProgress) -> None:
        lock = self._lock(f"{recipe.key}.make")
        lock.take()
        try:
            mark = self._mark(recipe.key)
            if mark.is_file():
                return
            progress(f"making an environment for {agent}: {recipe}")
            shutil.rmtree(mark.parent, ignore_errors=True)
            mark.parent.parent.mkdir(parents=True, exist_ok=True)
            self._build(recipe, mark.parent, agent)
            unfinished = mark.with_suffix(".unfinished")
            unfinished.write_text(json.dumps({"recipe": str(recipe)}), encoding="utf-8")
            unfinished.replace(mark)
        finally:
            lock.let_go()

    def _remove(self, built: CachedEnvironment) -> bool:
        locks = [self._lock(f"{built.key}.{why}") for why in ("make", "use")]
        try:
            if not all(lock.try_take() for lock in locks):
                return False
            self._mark(built.key).unlink(missing_ok=True)
            shutil.rmtree(built.folder, ignore_errors=True)
            return True
        finally:
            for lock in locks:
                lock.let_go()

    def _look(self, folder: Path) -> CachedEnvironment:
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
    """Tells a line of progress where it is not mistaken for a result."""
    sys.stderr.write(f"pytest-approvals: {line}\n")
    sys.stderr.flush()
