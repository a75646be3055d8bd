"""Environments survive what happens to caches: kills, damage, full disks, and several processes at once."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import pytest_approvals
from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE
from pytest_approvals.agents.environments import EnvironmentCache, Recipe, cache
from pytest_approvals.agents.environments.cache import COMPLETION_MARK, FileLock
from pytest_approvals.errors import AgentUnavailable

RECIPE = Recipe(requirements=("frame==1.0",))
OLD = (1000, 1000)

pytestmark = pytest.mark.timeout(30)


def build(recipe: Recipe, folder: Path, agent: str) -> None:
    """Make a folder with an interpreter in place of an environment."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "python").symlink_to(folder.parent.parent / "interpreter")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder of a complete environment in the cache at *tmp_path*; nobody uses it."""
    (tmp_path / "interpreter").write_text("")
    kept = EnvironmentCache(tmp_path, build)
    made = kept.get(RECIPE, "frame", lambda line: None).folder
    kept.release()
    return made


def refusal(folder: Path, builder: cache.BuildEnvironment = build) -> str:
    """Return why there is no environment."""
    with pytest.raises(AgentUnavailable) as caught:
        EnvironmentCache(folder, builder).get(RECIPE, "frame", lambda line: None)
    return str(caught.value)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait for what another process does, within the time limit of the test."""
    while not condition():
        time.sleep(0.01)


# --- damage -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "damage"),
    [
        (b"", "environment.json is not JSON"),
        (b'{"recipe": "fra', "environment.json is not JSON"),
        (b"\xff\xfe\x00", "environment.json is not JSON"),
        (b"[" * 100_000, "environment.json is not JSON"),
        (b"[]", "environment.json has no text under 'recipe'"),
        (b'{"recipe": 1}', "environment.json has no text under 'recipe'"),
        (
            b'{"recipe": "x", "entry_points": "bin"}',
            "environment.json has no list of entry points under 'entry_points'",
        ),
        (
            b'{"recipe": "x", "entry_points": ["/etc/passwd"]}',
            "environment.json has no list of entry points under 'entry_points'",
        ),
        (b'{"recipe": "x", "entry_points": ["node_modules"]}', "node_modules is missing, or leads nowhere"),
    ],
    ids=["empty", "cut", "binary", "deep", "list", "number", "names", "elsewhere", "missing"],
)
def test_a_damaged_record_is_named_and_the_environment_made_again(
    tmp_path: Path, folder: Path, content: bytes, damage: str
) -> None:
    """It is listed with what is wrong, and other environments with it."""
    (folder / COMPLETION_MARK).write_bytes(content)
    progress: list[str] = []
    [listed] = EnvironmentCache(tmp_path).list_environments()
    again = EnvironmentCache(tmp_path, build).get(RECIPE, "frame", progress.append)

    assert (f"(damaged: {damage})", False) == (listed.recipe, listed.complete)
    assert [
        f"the environment in {folder} is damaged ({damage}) and is made again",
        "making an environment for frame: frame==1.0",
    ] == progress
    assert "frame==1.0" == again.recipe


def test_an_environment_whose_interpreter_is_gone_is_made_again(tmp_path: Path, folder: Path) -> None:
    """Its Python was uninstalled: the link in the environment leads nowhere."""
    (tmp_path / "interpreter").unlink()
    [listed] = EnvironmentCache(tmp_path).list_environments()

    assert "(damaged: bin/python is missing, or leads nowhere)" == listed.recipe


@pytest.mark.parametrize("instead", ["folder", "link", "pipe"])
def test_a_record_that_is_not_a_file_is_damage(tmp_path: Path, folder: Path, instead: str) -> None:
    """It is neither read nor followed; pruning removes the environment."""
    mark = folder / COMPLETION_MARK
    mark.unlink()
    if instead == "folder":
        mark.mkdir()
    elif instead == "link":
        mark.symlink_to("/dev/zero")
    else:
        os.mkfifo(mark)
    os.utime(folder, OLD)
    [listed] = EnvironmentCache(tmp_path).list_environments()

    assert "(damaged: environment.json is not a file)" == listed.recipe
    assert [folder.name] == [one.key for one in EnvironmentCache(tmp_path).prune(unused_for=0)]
    assert not folder.exists()


def test_a_damaged_environment_that_is_used_stays(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that uses it would lose its interpreter."""
    monkeypatch.setattr(cache, "USE_TIMEOUT", 0.1)
    EnvironmentCache(tmp_path, build).get(RECIPE, "frame", lambda line: None)
    (folder / COMPLETION_MARK).write_text("")

    assert (
        f"another process uses its environment in {folder}, which is damaged (environment.json is not JSON), for more "
        "than 0.1 s"
    ) in refusal(tmp_path)
    assert (folder / "bin" / "python").exists()


def test_an_environment_that_is_damaged_as_soon_as_it_is_built_is_given_up(tmp_path: Path) -> None:
    """It is not built forever."""
    built: list[str] = []

    def breaks(recipe: Recipe, folder: Path, agent: str) -> None:
        built.append(agent)
        folder.mkdir()
        (folder / f"{COMPLETION_MARK}.unfinished").symlink_to(tmp_path / "elsewhere")

    assert "is damaged as soon as it is built" in refusal(tmp_path, breaks)
    assert ["frame"] * 3 == built


# --- builds that fail or are killed -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "failure",
    [AgentUnavailable("frame", "no", "none"), OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()],
)
def test_a_build_that_fails_leaves_nothing(tmp_path: Path, failure: BaseException) -> None:
    """Its files would fill the disk."""

    def fails(recipe: Recipe, folder: Path, agent: str) -> None:
        folder.mkdir()
        (folder / "half").write_text("")
        raise failure

    with pytest.raises((AgentUnavailable, KeyboardInterrupt)):
        EnvironmentCache(tmp_path, fails).get(RECIPE, "frame", lambda line: None)

    assert [] == list((tmp_path / "environments").iterdir())


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_named_with_what_to_do(tmp_path: Path) -> None:
    """The folder, the reason, and the variable."""

    def fills(recipe: Recipe, folder: Path, agent: str) -> None:
        folder.mkdir()
        with open("/dev/full", "w", encoding="utf-8") as disk:
            disk.write("x" * 100_000)

    said = refusal(tmp_path, fills)

    assert f"its environment cannot be kept in {tmp_path} ([Errno 28] No space left on device); make room there" in said
    assert said.endswith(f"or name another folder in {CACHE_FOLDER_VARIABLE}")


UV = """#!/bin/sh
cd "$HERE"
if [ -f first ]; then
    case $(ps -o stat= -p $(cat first)) in '' | Z*) ;; *) echo beside >> log ;; esac
fi
[ "$1" = venv ] || exit 0
for folder; do :; done
mkdir -p "$folder"
echo half > "$folder/half"
[ -f hangs ] || exit 0
rm hangs
echo $$ > first.new
mv first.new first
exec sleep 1000
"""

BUILDER = """
import threading
from pathlib import Path
from pytest_approvals.agents.environments import EnvironmentCache, Recipe
from pytest_approvals.processes.process_groups import orphan_killer
def tell():
    while not orphan_killer._groups:
        pass
    print(orphan_killer._child.pid, flush=True)
threading.Thread(target=tell, daemon=True).start()
EnvironmentCache(Path("cache").absolute()).get(Recipe(requirements=("frame==1.0",)), "frame")
"""


@pytest.fixture
def killed_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], int]:
    """Kill a process while its uv is at work, and return the number of that uv.

    With True, what would kill uv is killed, too.
    """
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "uv").write_text(UV)
    (tmp_path / "bin" / "uv").chmod(0o755)
    (tmp_path / "hangs").write_text("")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    monkeypatch.setenv("HERE", str(tmp_path))
    path = {"PYTHONPATH": str(Path(pytest_approvals.__file__).parents[1])}

    def kill(with_killer: bool) -> int:
        builder = subprocess.Popen(
            [sys.executable, "-c", BUILDER],
            cwd=tmp_path,
            env=os.environ | path,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        with builder:
            assert builder.stdout is not None
            killer = int(builder.stdout.readline())
            wait_until((tmp_path / "first").exists)
            if with_killer:
                os.kill(killer, signal.SIGKILL)
            builder.kill()
        return int((tmp_path / "first").read_text())

    return kill


def test_after_a_killed_build_the_next_one_is_alone(tmp_path: Path, killed_build: Callable[[bool], int]) -> None:
    """The first uv is killed with its process; the second one finds neither it nor its files."""
    killed_build(False)
    made = EnvironmentCache(tmp_path / "cache").get(RECIPE, "frame", lambda line: None)

    assert not (tmp_path / "log").exists()
    assert {"half", COMPLETION_MARK} == {path.name for path in made.folder.iterdir()}


def test_an_installer_holds_the_lock_for_as_long_as_it_runs(
    tmp_path: Path, killed_build: Callable[[bool], int]
) -> None:
    """If nothing is left that could end it, others wait for it."""
    uv = killed_build(True)
    lock = FileLock(tmp_path / "cache" / "locks" / f"{RECIPE.key}.make")
    held = lock.acquire()
    os.killpg(uv, signal.SIGKILL)

    assert not held
    assert lock.acquire(20)
    lock.release()


def test_a_build_that_takes_forever_is_not_waited_for_forever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is waited for is told, and which file shows who it is."""
    monkeypatch.setattr(cache, "BUILD_TIMEOUT", 0.1)
    monkeypatch.setattr(cache, "PATIENCE", 0.0)
    lock = FileLock(tmp_path / "locks" / f"{RECIPE.key}.make")
    lock.acquire()
    progress: list[str] = []
    with pytest.raises(AgentUnavailable) as caught:
        EnvironmentCache(tmp_path, build).get(RECIPE, "frame", progress.append)
    lock.release()

    assert ["waiting for a process that builds its environment"] == progress
    assert (
        "agent 'frame' cannot be started: another process builds its environment, for more than 0.1 s; "
        f"end that process; it holds {lock.path}"
    ) == str(caught.value)


# --- pruning ----------------------------------------------------------------------------------------------------------


def test_pruning_in_parallel_removes_each_environment_once(tmp_path: Path) -> None:
    """And nobody stumbles over what another process has just removed."""
    keys = [f"key-{number}" for number in range(20)]
    for key in keys:
        mark = tmp_path / "environments" / key / COMPLETION_MARK
        mark.parent.mkdir(parents=True)
        mark.write_text('{"recipe": "frame"}')
        (mark.parent / "lib").mkdir()
        os.utime(mark, OLD)
    removed: list[str] = []
    failed: list[BaseException] = []
    all_there = threading.Barrier(4)

    def prune() -> None:
        all_there.wait()
        try:
            found = EnvironmentCache(tmp_path)
            sum(one.measure().total for one in found.list_environments())
            removed.extend(one.key for one in found.prune(unused_for=0))
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=prune) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert [] == failed
    assert keys == sorted(removed, key=keys.index)


@pytest.mark.parametrize("state", ["complete", "incomplete", "damaged"])
def test_pruning_leaves_what_is_younger_than_an_hour(tmp_path: Path, folder: Path, state: str) -> None:
    """Whatever its state, and whatever age was asked for: a process may be about to use it."""
    mark = folder / COMPLETION_MARK
    if state == "incomplete":
        mark.unlink()
    elif state == "damaged":
        mark.write_text("")

    assert [] == list(EnvironmentCache(tmp_path).prune(unused_for=0))
    for path in (folder, mark):
        if path.exists():
            os.utime(path, OLD)
    assert [folder.name] == [one.key for one in EnvironmentCache(tmp_path).prune(unused_for=0)]


def test_pruning_leaves_what_was_used_since_it_was_listed(tmp_path: Path, folder: Path) -> None:
    """A person may take long to answer the question."""
    os.utime(folder / COMPLETION_MARK, OLD)
    [listed] = EnvironmentCache(tmp_path).find_removable(0)
    user = EnvironmentCache(tmp_path, build)
    user.get(RECIPE, "frame", lambda line: None)
    while_used = EnvironmentCache(tmp_path).remove(listed)
    user.release()

    assert (False, False) == (while_used, EnvironmentCache(tmp_path).remove(listed))
    assert folder.exists()


# --- other users ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "environments", "copies"])
def test_a_cache_that_other_users_can_write_to_is_refused(tmp_path: Path, folder: Path, name: str) -> None:
    """Code in it is run."""
    opened = tmp_path / name
    opened.mkdir(exist_ok=True)
    opened.chmod(0o777)

    assert f"its environment cannot be taken from {opened}: other users can write to it (mode 0777)" in refusal(
        tmp_path
    )


def test_a_cache_of_another_user_is_refused(tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever made it may have put anything there; a link to a folder of one's own counts as well."""
    if os.geteuid() == 0:
        os.chown(folder.parent, 4321, -1)
    else:
        monkeypatch.setattr(os, "geteuid", lambda: 4321)

    assert f"its environment cannot be taken from {tmp_path}" in refusal(tmp_path)
    assert ": it belongs to another user (uid " in refusal(tmp_path)


def test_an_environment_that_others_can_write_to_is_made_again(tmp_path: Path, folder: Path) -> None:
    """Nobody knows what it holds by now; the new one has mode 0700."""
    folder.chmod(0o777)
    [listed] = EnvironmentCache(tmp_path).list_environments()
    again = EnvironmentCache(tmp_path, build).get(RECIPE, "frame", lambda line: None)

    assert "(damaged: other users can write to it (mode 0777))" == listed.recipe
    assert 0o700 == again.folder.stat().st_mode & 0o777


@pytest.mark.parametrize("umask", [0o000, 0o002, 0o077])
def test_an_environment_is_private_under_every_umask(tmp_path: Path, umask: int) -> None:
    """Its folder, its record, and the folders above it in the cache."""
    before = os.umask(umask)
    try:
        made = EnvironmentCache(tmp_path / "cache", build).get(RECIPE, "frame", lambda line: None).folder
    finally:
        os.umask(before)

    modes = [path.stat().st_mode & 0o777 for path in (made, made.parent, made.parent.parent, made / COMPLETION_MARK)]
    assert [0o700, 0o700, 0o700, 0o600] == modes
    shutil.rmtree(tmp_path / "cache")
