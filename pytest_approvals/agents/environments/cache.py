"""Cache of environments, in one folder that only its user can access.

The folder holds:

environments/KEY/           an environment; complete once environment.json is in it
locks/KEY.make              locked by the process that builds or removes it, and by the installer that it has started
locks/KEY.use               shared by the processes that use it, while they run; locked by the one that removes it
copies/DIGEST/NAME          our code that runs in environments
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from pytest_approvals.agents.cache_folder import (
    CACHE_FOLDER_VARIABLE,
    create_private_folder,
    find_foreign_access,
    get_cache_folder,
)
from pytest_approvals.agents.environments.installers import (
    INSTALL_TIMEOUT,
    build_npm_environment,
    build_python_environment,
    get_interpreter,
)
from pytest_approvals.agents.environments.recipe import Recipe
from pytest_approvals.agents.package_registries import NPM, PYPI
from pytest_approvals.errors import AgentUnavailable
from pytest_approvals.errors.printable import escape_value

# --- locks -----------------------------------------------------------------------------------------------------------

POLL_INTERVAL = 0.05
"""Seconds between two attempts; `flock` itself has no time limit."""

PATIENCE = 1.0
"""Seconds until somebody is told that a lock is waited for."""


class FileLock:
    """A lock on a file, held until it is released, or until this process and all that inherited it have ended.

    Args:
        path: The file; created if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        create_private_folder(path.parent)
        self.path = path
        self.descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def acquire(
        self, seconds: float = 0.0, *, shared: bool = False, report_wait: Callable[[], None] | None = None
    ) -> bool:
        """Acquire it, and return whether that was possible within *seconds*.

        Args:
            seconds: The time to wait for other processes.
            shared: Leave it to others who want it shared, too.
            report_wait: Called once if it takes long.
        """
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        began = time.monotonic()
        while True:
            try:
                fcntl.flock(self.descriptor, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                waited = time.monotonic() - began
            else:
                return True
            if waited >= seconds:
                return False
            if report_wait is not None and waited >= PATIENCE:
                report_wait()
                report_wait = None
            time.sleep(POLL_INTERVAL)

    def release(self) -> None:
        """Release it; it cannot be acquired again."""
        os.close(self.descriptor)


# --- records ---------------------------------------------------------------------------------------------------------

COMPLETION_MARK = "environment.json"
"""File that marks a complete environment and names its contents; its modification time is that of the latest use."""

_ENTRY_POINTS = ("bin/python", "node_modules")
"""What environments are entered through, as far as they have it."""


class DamagedEnvironment(Exception):
    """An environment that is not what its record says; the message says why, after "is damaged"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentRecord:
    """The record of a complete environment.

    Attributes:
        recipe: Its recipe in words.
        entry_points: What its build has made, among the files and folders through which environments are entered.
        used: The time of the latest use, in seconds.
    """

    recipe: str
    entry_points: tuple[str, ...] = ()
    used: float = 0.0


def write_record(folder: Path, recipe: str) -> None:
    """Mark an environment as complete, in one step: a mark that exists is whole."""
    content = {"recipe": recipe, "entry_points": [name for name in _ENTRY_POINTS if (folder / name).exists()]}
    unfinished = folder / f"{COMPLETION_MARK}.unfinished"
    with open(unfinished, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
        file.write(json.dumps(content))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(folder / COMPLETION_MARK)


def read_record(folder: Path) -> EnvironmentRecord | None:
    """Return the record of an environment; None if it was never completed.

    Raises:
        DamagedEnvironment: The record is unreadable, something that it names is missing, or other users can change it.
    """
    mark = folder / COMPLETION_MARK
    try:
        about = mark.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if not stat.S_ISREG(about.st_mode):
        raise DamagedEnvironment(f"{mark.name} is not a file")
    try:
        reason = find_foreign_access(folder, trusts_group=True) or find_foreign_access(mark, trusts_group=True)
        if reason:
            raise DamagedEnvironment(reason)
        content = json.loads(mark.read_bytes())
    except OSError as error:
        raise DamagedEnvironment(f"{mark.name}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DamagedEnvironment(f"{mark.name} is not JSON") from None
    record = EnvironmentRecord(
        recipe=_read_text(content, "recipe"), entry_points=_read_names(content, "entry_points"), used=about.st_mtime
    )
    for name in record.entry_points:
        if not (folder / name).exists():
            raise DamagedEnvironment(f"{name} is missing, or leads nowhere")
    return record


def _read_text(content: Any, key: str) -> str:
    value = content.get(key) if isinstance(content, dict) else None
    if not isinstance(value, str):
        raise DamagedEnvironment(f"{COMPLETION_MARK} has no text under {key!r}")
    return value


def _read_names(content: dict[str, Any], key: str) -> tuple[str, ...]:
    # Environments of earlier releases have none.
    value = content.get(key, [])
    if not isinstance(value, list) or not all(name in _ENTRY_POINTS for name in value):
        raise DamagedEnvironment(f"{COMPLETION_MARK} has no list of entry points under {key!r}")
    return tuple(value)


# --- the cache -------------------------------------------------------------------------------------------------------

ReportProgress = Callable[[str], None]
"""Shows a line of progress."""

BuildEnvironment = Callable[[Recipe, Path, str], None]
"""Builds an environment in a folder that does not exist, for an agent."""

BUILD_TIMEOUT = 2 * INSTALL_TIMEOUT + 60.0
"""Seconds that another process may build an environment for: two steps of an installer, and a margin."""

REMOVAL_TIMEOUT = 300.0
"""Seconds that another process may remove an environment for."""

USE_TIMEOUT = 5.0
"""Seconds to wait for those that look at a damaged environment; one that uses it may do so for hours."""

_ATTEMPTS = 3
"""How often an environment is built that cannot be used afterwards."""

MIN_REMOVABLE_AGE = 3600.0
"""Seconds that an environment stays at least: another process may be about to use it."""

_BUILDERS: dict[str, Callable[[Recipe, Path, str, int | None], None]] = {
    PYPI.name: build_python_environment,
    NPM.name: build_npm_environment,
}


def build_environment(recipe: Recipe, folder: Path, agent: str, lock: int | None = None) -> None:
    """Build an environment in *folder*, which must not exist.

    Args:
        recipe: Its contents.
        folder: Where to build it.
        agent: The agent that needs it, for messages.
        lock: Descriptor of a lock that the installer inherits, so that it is held for as long as the installer runs.

    Raises:
        AgentUnavailable: The installer is missing, or fails; the message holds its reason.
    """
    _BUILDERS[recipe.registry](recipe, folder, agent, lock)


class EnvironmentSize(NamedTuple):
    """Size of an environment, in bytes.

    Attributes:
        total: All files.
        shared: Those that also have a name elsewhere, usually in the cache of uv.
    """

    total: int
    shared: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedEnvironment:
    """An environment in the cache.

    Attributes:
        recipe: Its recipe in words, or what is wrong with it.
        used: The time of the latest use, in seconds.
        complete: Whether it can be used: its build was completed, and nothing has damaged it since.
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

    def measure(self) -> EnvironmentSize:
        """Return the size of its files."""
        total = shared = 0
        for folder, _, names in os.walk(self.folder):
            for name in names:
                # Another process may be removing it.
                with suppress(FileNotFoundError):
                    about = Path(folder, name).lstat()
                    total += about.st_size
                    shared += about.st_size if about.st_nlink > 1 else 0
        return EnvironmentSize(total, shared)


class EnvironmentCache:
    """Cache of environments; several processes may use one folder at a time.

    Args:
        folder: The folder of the cache; by default that of `get_cache_folder`.
        build: Builds an environment, in place of uv and npm.
    """

    def __init__(self, folder: Path | None = None, build: BuildEnvironment | None = None) -> None:
        self.folder = folder or get_cache_folder()
        self._build = build
        self._used: dict[str, FileLock] = {}
        self._failed: dict[str, AgentUnavailable] = {}

    def get(self, recipe: Recipe, agent: str, progress: ReportProgress | None = None) -> CachedEnvironment:
        """Return the environment of a recipe, built if it is missing or damaged; it is kept while this process runs.

        Args:
            recipe: Its contents.
            agent: The agent that needs it, for messages.
            progress: Shows a line before something that takes long.

        Raises:
            AgentUnavailable: It cannot be built, or other users can write to the cache; a build that failed is not
                tried again.
        """
        if recipe.key in self._failed:
            raise self._failed[recipe.key]
        try:
            self._check_folders(agent)
            for _ in range(_ATTEMPTS):
                if (environment := self._find(recipe.key, agent)) is not None:
                    return environment
                self._create(recipe, agent, progress or print_progress)
        except AgentUnavailable as failure:
            self._failed[recipe.key] = failure
            raise
        except OSError as error:
            remedy = f"make room there, or name another folder in {CACHE_FOLDER_VARIABLE}"
            raise AgentUnavailable(
                agent, f"its environment cannot be kept in {self.folder} ({error})", remedy
            ) from None
        folder = self._mark(recipe.key).parent
        raise AgentUnavailable(
            agent, f"its environment in {folder} is damaged as soon as it is built", "see who does that"
        )

    def list_environments(self) -> list[CachedEnvironment]:
        """Return all environments, the latest used first; those that cannot be used, too."""
        folders = (folder for folder in sorted((self.folder / "environments").glob("*")) if folder.is_dir())
        found = [environment for folder in folders if (environment := self._read(folder)) is not None]
        return sorted(found, key=lambda environment: (-environment.used, environment.key))

    def find_removable(self, unused_for: float) -> list[CachedEnvironment]:
        """Return the environments not used for that many seconds, and those that cannot be used.

        None of them is younger than `MIN_REMOVABLE_AGE`, and none is in use by a process, nor being built.
        """
        now = time.time()
        return [
            environment
            for environment in self.list_environments()
            if now - environment.used
            > (max(unused_for, MIN_REMOVABLE_AGE) if environment.complete else MIN_REMOVABLE_AGE)
            and not self._is_locked(environment.key)
        ]

    def remove(self, environment: CachedEnvironment) -> bool:
        """Remove an environment unless it was used since it was listed; return whether this process removed it."""
        locks = self._lock_alone(environment.key)
        try:
            if locks is None:
                return False
            now = self._read(environment.folder)
            if now is None or now.used > environment.used:
                return False
            # The mark first: if this is cut off, the rest counts as incomplete and is built again.
            with suppress(OSError):
                self._mark(environment.key).unlink()
            shutil.rmtree(environment.folder, ignore_errors=True)
            return not environment.folder.exists()
        finally:
            for lock in locks or ():
                lock.release()

    def prune(self, unused_for: float) -> Iterator[CachedEnvironment]:
        """Remove, and yield, what `find_removable` returns."""
        yield from filter(self.remove, self.find_removable(unused_for))

    def release(self) -> None:
        """Stop using all environments: they may be removed from now on."""
        for lock in self._used.values():
            lock.release()
        self._used.clear()

    def _check_folders(self, agent: str) -> None:
        """Ensure that what is run from the cache was put there by its user."""
        for folder in (self.folder, self.folder / "environments", self.folder / "copies"):
            if not folder.exists():
                continue
            if reason := find_foreign_access(folder, trusts_group=folder == self.folder):
                remedy = f"remove {folder}, or name another folder in {CACHE_FOLDER_VARIABLE}"
                raise AgentUnavailable(agent, f"its environment cannot be taken from {folder}: {reason}", remedy)

    def _find(self, key: str, agent: str) -> CachedEnvironment | None:
        """Return the environment if it is complete and undamaged, and keep it from being removed."""
        folder = self._mark(key).parent
        try:
            if key not in self._used:
                # Locked before the mark is read: `remove` needs this lock, so an environment that is found stays.
                self._used[key] = self._lock(f"{key}.use")
                self._wait_for(self._used[key], agent, "removes its environment", REMOVAL_TIMEOUT, shared=True)
            record = read_record(folder)
        except BaseException as error:
            self._stop_using(key)
            if isinstance(error, DamagedEnvironment):
                return None
            raise
        if record is None:
            self._stop_using(key)
            return None
        os.utime(self._mark(key))
        return CachedEnvironment(folder=folder, recipe=record.recipe, used=time.time())

    def _stop_using(self, key: str) -> None:
        if (lock := self._used.pop(key, None)) is not None:
            lock.release()

    def _create(self, recipe: Recipe, agent: str, progress: ReportProgress) -> None:
        making, using = self._lock(f"{recipe.key}.make"), self._lock(f"{recipe.key}.use")
        try:
            builds = "builds its environment"
            self._wait_for(
                making, agent, builds, BUILD_TIMEOUT, lambda: progress(f"waiting for a process that {builds}")
            )
            folder = self._mark(recipe.key).parent
            damage = ""
            try:
                # Another process may have built it while this one waited for the lock.
                if read_record(folder) is not None:
                    return
            except DamagedEnvironment as damaged:
                damage = str(damaged)
            if damage:
                self._wait_for(
                    using, agent, f"uses its environment in {folder}, which is damaged ({damage})", USE_TIMEOUT
                )
                progress(f"the environment in {folder} is damaged ({damage}) and is made again")
            progress(f"making an environment for {agent}: {recipe}")
            _remove_tree(folder)
            create_private_folder(folder.parent)
            self._build_whole(recipe, folder, agent, making)
        finally:
            making.release()
            using.release()

    def _build_whole(self, recipe: Recipe, folder: Path, agent: str, lock: FileLock) -> None:
        """Build an environment and mark it as complete, or leave nothing of it."""
        try:
            if self._build is not None:
                self._build(recipe, folder, agent)
            else:
                build_environment(recipe, folder, agent, lock.descriptor)
            folder.chmod(0o700)
            write_record(folder, str(recipe))
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise

    def _wait_for(
        self,
        lock: FileLock,
        agent: str,
        what: str,
        seconds: float,
        report_wait: Callable[[], None] | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """Acquire a lock that another process has while it does *what*.

        Raises:
            AgentUnavailable: It has it for too long.
        """
        if not lock.acquire(seconds, shared=shared, report_wait=report_wait):
            raise AgentUnavailable(
                agent, f"another process {what}, for more than {seconds:g} s", f"end that process; it holds {lock.path}"
            )

    def _is_locked(self, key: str) -> bool:
        locks = self._lock_alone(key)
        for lock in locks or ():
            lock.release()
        return locks is None

    def _lock_alone(self, key: str) -> list[FileLock] | None:
        """Return the locks of an environment that no process uses, builds or removes; None if one does."""
        locks = [self._lock(f"{key}.{why}") for why in ("make", "use")]
        if all(lock.acquire() for lock in locks):
            return locks
        for lock in locks:
            lock.release()
        return None

    def _read(self, folder: Path) -> CachedEnvironment | None:
        """Return the environment in *folder*; None if it is being removed."""
        try:
            changed = folder.stat().st_mtime
            record = read_record(folder)
        except FileNotFoundError:
            return None
        except DamagedEnvironment as damaged:
            return CachedEnvironment(folder=folder, recipe=f"(damaged: {damaged})", used=changed, complete=False)
        if record is None:
            return CachedEnvironment(folder=folder, recipe="(not completed)", used=changed, complete=False)
        return CachedEnvironment(folder=folder, recipe=record.recipe, used=record.used)

    def _mark(self, key: str) -> Path:
        return self.folder / "environments" / key / COMPLETION_MARK

    def _lock(self, name: str) -> FileLock:
        return FileLock(self.folder / "locks" / name)


def _remove_tree(folder: Path) -> None:
    """Remove a folder, or whatever else has its name."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
    elif folder.exists():
        shutil.rmtree(folder)


def print_progress(line: str) -> None:
    """Print a line of progress to standard error, where it is not mistaken for a result."""
    sys.stderr.write(f"pytest-approvals: {escape_value(line)}\n")
    sys.stderr.flush()
