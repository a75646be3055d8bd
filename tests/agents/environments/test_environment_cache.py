"""The cache of environments: made once, whole or not at all, kept while used, pruned afterwards."""

import os
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from pytest_approvals.agents.cache_folder import CACHE_FOLDER_VARIABLE, create_private_folder, get_cache_folder
from pytest_approvals.agents.environments import EnvironmentCache, Recipe
from pytest_approvals.agents.environments.cache import (
    COMPLETION_MARK,
    FileLock,
)
from pytest_approvals.errors import AgentUnavailable

RECIPE = Recipe(requirements=("frame==1.0",))
OTHER = Recipe(requirements=("frame==2.0",))


class Builds:
    """Makes folders in place of environments, and counts."""

    def __init__(self) -> None:
        self.made: list[str] = []

    def __call__(self, recipe: Recipe, folder: Path, agent: str) -> None:
        self.made.append(str(recipe))
        folder.mkdir()
        (folder / "module.py").write_text("x = 1\n")


def make_old(folder: Path) -> None:
    """Let an environment be one that was used long ago."""
    for path in (folder, folder / COMPLETION_MARK):
        if path.exists():
            os.utime(path, (1000, 1000))


def quiet(line: str) -> None:
    """Take progress that a test is not about."""


def test_an_environment_is_made_once(tmp_path: Path) -> None:
    """Whoever asks again, in this process or another one, gets the same."""
    builds, progress = Builds(), list[str]()
    first = EnvironmentCache(tmp_path, builds).get(RECIPE, "frame==1.0", progress.append)
    second = EnvironmentCache(tmp_path, builds).get(RECIPE, "frame==1.0", progress.append)

    assert ["frame==1.0"] == builds.made
    assert first.folder == second.folder
    assert ["making an environment for frame==1.0: frame==1.0"] == progress


def test_workers_wait_for_the_one_that_builds(tmp_path: Path) -> None:
    """Of several that need an environment at the same time, one makes it."""
    builds, all_there = Builds(), threading.Barrier(4)

    def ask() -> None:
        all_there.wait()
        EnvironmentCache(tmp_path, builds).get(RECIPE, "frame", quiet)

    workers = [threading.Thread(target=ask) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert ["frame==1.0"] == builds.made


def test_an_environment_that_was_cut_off_is_made_again(tmp_path: Path) -> None:
    """It is complete only with its mark, which is written last; what the first attempt left is gone."""
    half = tmp_path / "environments" / RECIPE.key / "half"
    half.parent.mkdir(parents=True)
    half.write_text("")
    [cut_off] = EnvironmentCache(tmp_path).list_environments()
    built = EnvironmentCache(tmp_path, Builds()).get(RECIPE, "frame", quiet)

    assert not cut_off.complete
    assert {"module.py", COMPLETION_MARK} == {path.name for path in built.folder.iterdir()}


def test_what_failed_once_is_not_tried_again(tmp_path: Path) -> None:
    """Every scenario asks for its agents; uv is asked once."""
    asked = []

    def fails(recipe: Recipe, folder: Path, agent: str) -> None:
        asked.append(agent)
        raise AgentUnavailable(agent, "it is unknown", "name another one")

    cache = EnvironmentCache(tmp_path, fails)
    for _ in range(2):
        with pytest.raises(AgentUnavailable):
            cache.get(RECIPE, "frame", quiet)

    assert ["frame"] == asked


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """The error says which folder, and how another one is named."""
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(AgentUnavailable) as caught:
        EnvironmentCache(file, Builds()).get(RECIPE, "frame", quiet)

    assert f"its environment cannot be kept in {file}" in str(caught.value)
    assert f"name another folder in {CACHE_FOLDER_VARIABLE}" in str(caught.value)


def test_pruning_removes_what_nobody_used_for_long(tmp_path: Path) -> None:
    """The time of the latest use counts."""
    cache = EnvironmentCache(tmp_path, Builds())
    for recipe in (RECIPE, OTHER):
        cache.get(recipe, "frame", quiet)
    cache.release()
    os.utime(tmp_path / "environments" / RECIPE.key / COMPLETION_MARK, (1000, 1000))

    gone = [one.recipe for one in cache.prune(unused_for=3600)]

    assert ["frame==1.0"] == gone
    assert ["frame==2.0"] == [one.recipe for one in cache.list_environments()]


def test_pruning_leaves_what_is_used(tmp_path: Path) -> None:
    """An environment that this process or another one has asked for stays, however old."""
    mine = EnvironmentCache(tmp_path, Builds())
    make_old(mine.get(RECIPE, "frame", quiet).folder)

    assert [] == list(mine.prune(unused_for=0))
    assert [] == list(EnvironmentCache(tmp_path).prune(unused_for=0))


def test_an_environment_is_free_once_its_user_has_ended(tmp_path: Path) -> None:
    """The lock goes with the process."""
    code = f"""
        from pathlib import Path
        from pytest_approvals.agents.environments import EnvironmentCache, Recipe
        def build(recipe, folder, agent): folder.mkdir()
        EnvironmentCache(Path({str(tmp_path)!r}), build).get(Recipe(requirements=("frame==1.0",)), "frame")
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, capture_output=True)
    make_old(tmp_path / "environments" / RECIPE.key)

    assert ["frame==1.0"] == [one.recipe for one in EnvironmentCache(tmp_path).prune(unused_for=0)]


def test_pruning_removes_what_was_cut_off(tmp_path: Path) -> None:
    """It can never be used."""
    (tmp_path / "environments" / "half").mkdir(parents=True)
    make_old(tmp_path / "environments" / "half")

    assert ["half"] == [one.key for one in EnvironmentCache(tmp_path).prune(unused_for=3600)]
    assert [] == EnvironmentCache(tmp_path).list_environments()


def test_a_lock_is_shared_or_alone(tmp_path: Path) -> None:
    """Users share it; a builder needs it alone."""
    users = [FileLock(tmp_path / "lock") for _ in range(2)]
    builder = FileLock(tmp_path / "lock")
    for user in users:
        user.acquire(shared=True)

    refused = builder.acquire()
    for user in users:
        user.release()
    taken = builder.acquire()
    builder.release()

    assert (False, True) == (refused, taken)


def test_the_folder_is_named_by_a_variable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it, it is among the person's caches."""
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, str(tmp_path / "mine"))
    named = get_cache_folder()
    monkeypatch.delenv(CACHE_FOLDER_VARIABLE)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))

    assert tmp_path / "mine" == named
    assert tmp_path / "caches" / "pytest-approvals" == get_cache_folder()


def test_a_relative_folder_is_announced_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Code is run from it, and a checkout may have brought it along; an absolute one was chosen with care."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, ".cache")
    named = [get_cache_folder() for _ in range(2)]
    said = capsys.readouterr().err
    monkeypatch.setenv(CACHE_FOLDER_VARIABLE, str(tmp_path / ".cache"))
    get_cache_folder()

    assert [tmp_path / ".cache"] * 2 == named
    assert (
        f"pytest-approvals: PYTEST_APPROVALS_CACHE is relative (.cache): code is run from {tmp_path / '.cache'}; use "
        "an absolute path unless you trust that folder\n"
    ) == said
    assert "" == capsys.readouterr().err


def test_a_relative_folder_of_xdg_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its specification says."""
    monkeypatch.delenv(CACHE_FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "caches")
    monkeypatch.setenv("HOME", str(tmp_path))

    assert tmp_path / ".cache" / "pytest-approvals" == get_cache_folder()


def test_only_its_user_can_open_the_cache(tmp_path: Path) -> None:
    """Code in it is run: the folder and all that are made on the way to it have mode 0700."""
    create_private_folder(tmp_path / "new" / "cache" / "environments")

    folders = [path for path in tmp_path.rglob("*") if path.is_dir()]
    assert 3 == len(folders)
    assert {0o700} == {stat.S_IMODE(path.stat().st_mode) for path in folders}
