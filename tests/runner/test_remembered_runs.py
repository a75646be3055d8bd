"""The store of remembered runs: what is kept comes back, and what cannot be believed does not."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from pytest_approvals.runner.remembered_runs import FORMAT, RememberedRuns, get_runs_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in a folder that does not exist."""
    return tmp_path / "cache" / "runs"


@pytest.fixture
def store(folder: Path) -> Iterator[RememberedRuns]:
    """An empty store."""
    opened = RememberedRuns(folder)
    yield opened
    opened.close()


def reopen(store: RememberedRuns, folder: Path) -> RememberedRuns:
    store.close()
    return RememberedRuns(folder)


def change_rows(folder: Path, statement: str, *values: object) -> None:
    connection = sqlite3.connect(folder / "runs.sqlite3")
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def test_what_is_kept_comes_back(store: RememberedRuns, folder: Path) -> None:
    """In a later session, too."""
    store.keep("a", {"events": [1, "ü"]})

    assert {"events": [1, "ü"]} == store.find("a")
    assert {"events": [1, "ü"]} == reopen(store, folder).find("a")


def test_what_was_never_kept_is_not_there(store: RememberedRuns) -> None:
    """None stands for it."""
    assert store.find("a") is None


def test_what_is_forgotten_does_not_come_back(store: RememberedRuns, folder: Path) -> None:
    """Whether it was written already or not."""
    store.keep("written", 1)
    store.flush()
    store.keep("waiting", 1)
    store.forget(["written", "waiting"])

    assert [None, None] == [store.find("written"), store.find("waiting")]
    assert [None, None] == list(map(reopen(store, folder).find, ("written", "waiting")))


def test_the_file_is_private(store: RememberedRuns, folder: Path) -> None:
    """Nobody else can read or write it, or look into its folder."""
    assert (0o600, 0o700) == ((folder / "runs.sqlite3").stat().st_mode & 0o777, folder.stat().st_mode & 0o777)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE runs SET body = x'00' || substr(body, 2)",
        "UPDATE runs SET body = 'text'",
        "UPDATE runs SET key = 'b' WHERE key = 'a'",
    ],
    ids=["damaged", "text", "of another run"],
)
def test_a_row_that_was_changed_is_worth_nothing(store: RememberedRuns, folder: Path, statement: str) -> None:
    """Its checksum covers its key and its content."""
    store.keep("a", {"verdict": "pass"})
    store.close()
    change_rows(folder, statement)
    again = RememberedRuns(folder)

    assert [None, None] == [again.find("a"), again.find("b")]
    again.close()


def test_a_file_that_is_no_store_is_replaced(store: RememberedRuns, folder: Path) -> None:
    """It holds nothing that anybody could need."""
    store.close()
    for path in folder.iterdir():
        path.unlink()
    (folder / "runs.sqlite3").write_bytes(b"anything but a database" * 100)
    (folder / "runs.sqlite3").chmod(0o600)
    again = RememberedRuns(folder)
    again.keep("a", 1)

    assert 1 == reopen(again, folder).find("a")


def test_rows_of_another_format_are_removed(store: RememberedRuns, folder: Path) -> None:
    """An older or a newer release of this package wrote them."""
    store.keep("a", 1)
    store.close()
    change_rows(folder, f"PRAGMA user_version = {FORMAT + 1}")

    assert RememberedRuns(folder).find("a") is None


@pytest.mark.parametrize("name", ["", "runs.sqlite3"], ids=["folder", "file"])
def test_what_others_can_write_is_not_read(store: RememberedRuns, folder: Path, name: str) -> None:
    """It says so, and nothing is kept there either."""
    store.keep("a", 1)
    store.close()
    (folder / name).chmod(0o777)
    again = RememberedRuns(folder)

    assert again.find("a") is None
    assert f"{folder / 'runs.sqlite3'}: not used, because other users may have written it" == again.problem


def test_a_folder_that_cannot_be_made_is_a_problem_and_no_error(tmp_path: Path) -> None:
    """Then every run is played."""
    (tmp_path / "file").touch()
    store = RememberedRuns(tmp_path / "file" / "runs")
    store.keep("a", 1)
    store.forget(["a"])
    store.close()

    assert store.find("a") is None
    assert store.problem is not None


def test_the_oldest_rows_go_when_there_are_too_many(folder: Path) -> None:
    """What was used in this session stays."""
    small = RememberedRuns(folder, max_bytes=100)
    for number in range(20):
        small.keep(str(number), number)
    small.flush()
    change_rows(folder, "UPDATE runs SET used = 1")
    assert 3 == small.find("3")
    small.close()
    again = RememberedRuns(folder)

    assert 3 == again.find("3")
    assert [] != [number for number in range(20) if again.find(str(number)) is None]
    again.close()


def keep_many(folder: Path, first: int) -> None:
    """Keep a hundred rows; runs in a process of its own."""
    store = RememberedRuns(folder)
    for number in range(first, first + 100):
        store.keep(str(number), number)
    store.close()


def test_processes_that_write_at_once_lose_nothing(folder: Path) -> None:
    """All rows of all of them are there."""
    start = multiprocessing.get_context("spawn").Process
    processes = [start(target=keep_many, args=(folder, first)) for first in (0, 100, 200)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    store = RememberedRuns(folder)

    assert list(range(300)) == [store.find(str(number)) for number in range(300)]
    store.close()


def test_the_folder_is_in_the_cache_unless_it_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`off` stands for none."""
    monkeypatch.setenv("PYTEST_APPROVALS_CACHE", str(tmp_path))
    found = []
    for value in ("", "/elsewhere", "off"):
        monkeypatch.setenv("PYTEST_APPROVALS_RUNS", value)
        found.append(get_runs_folder())

    assert [tmp_path / "runs", Path("/elsewhere"), None] == found


def test_all_that_can_be_believed_is_listed(store: RememberedRuns, folder: Path) -> None:
    """In the order of the keys; a damaged row is left out."""
    for key in "cab":
        store.keep(key, key)
    store.close()
    change_rows(folder, "UPDATE runs SET body = x'00' WHERE key = 'b'")
    again = RememberedRuns(folder)

    assert ["a", "c"] == list(again.values())
    again.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file to another user")
@pytest.mark.parametrize("name", ["", "runs.sqlite3"], ids=["folder", "file"])
def test_what_belongs_to_another_user_is_not_read(store: RememberedRuns, folder: Path, name: str) -> None:
    """It says so, and leaves the file as it is."""
    store.keep("a", 1)
    store.close()
    os.chown(folder / name, 65534, -1)
    before = (folder / "runs.sqlite3").read_bytes()
    again = RememberedRuns(folder)
    again.keep("a", 2)
    again.close()

    assert again.find("a") is None
    assert f"{folder / 'runs.sqlite3'}: not used, because other users may have written it" == again.problem
    assert before == (folder / "runs.sqlite3").read_bytes()


@pytest.mark.parametrize(
    ("setting", "problem"),
    [
        ("query_only = 1", "attempt to write a readonly database"),
        ("max_page_count = 1", "database or disk is full"),
    ],
    ids=["read-only", "full disk"],
)
def test_what_cannot_be_written_is_a_problem_and_no_error(
    store: RememberedRuns, folder: Path, setting: str, problem: str
) -> None:
    """It is not kept; what was there before stays, for a session that can write again."""
    store.keep("a", 1)
    store.flush()
    assert store._connection is not None
    store._connection.execute(f"PRAGMA {setting}")
    store.keep("b", os.urandom(50_000).hex())
    store.close()
    again = RememberedRuns(folder)

    assert f"{folder / 'runs.sqlite3'}: {problem}" == store.problem
    assert [1, None] == [again.find("a"), again.find("b")]
    again.close()


def test_a_new_file_can_be_opened_by_many_at_once(tmp_path: Path) -> None:
    """Who finds it locked while another one prepares it waits."""
    many = 8
    together = Barrier(many)

    def open_and_close(folder: Path) -> str | None:
        together.wait(60)
        store = RememberedRuns(folder)
        problem = store.problem
        store.close()
        return problem

    with ThreadPoolExecutor(many) as pool:
        folders = [tmp_path / str(number) for number in range(60) for _ in range(many)]
        problems = list(pool.map(open_and_close, folders))

    assert {None} == set(problems)
