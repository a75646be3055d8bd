"""The catalogue of an installed package is one file, which is unpacked when it is first needed."""

from __future__ import annotations

from pathlib import Path
from zipfile import ZipFile

import pytest

from pytest_approvals.errors import UsageError
from pytest_approvals.scenario.catalogue import unpack_catalogue


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "catalogue.zip"
    with ZipFile(path, "w") as file:
        file.writestr("basics/one.approval.yaml", "story")
    return path


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PYTEST_APPROVALS_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    return tmp_path / "cache"


def test_it_is_unpacked_into_the_cache(archive: Path, cache: Path) -> None:
    """In a folder that only the user can access."""
    folder = unpack_catalogue(archive)

    assert "story" == (folder / "basics" / "one.approval.yaml").read_text()
    assert cache / "catalogues" == folder.parent
    assert 0o700 == folder.stat().st_mode & 0o777
    assert [folder] == list(folder.parent.iterdir())


def test_it_is_unpacked_once(archive: Path, cache: Path) -> None:
    """A second process finds it there, and another release has a folder of its own."""
    first = unpack_catalogue(archive)
    (first / "kept").touch()

    assert first == unpack_catalogue(archive)
    assert (first / "kept").exists()
    with ZipFile(archive, "a") as file:
        file.writestr("basics/two.approval.yaml", "story")
    assert first != unpack_catalogue(archive)


def test_two_processes_may_unpack_it_at_once(archive: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The slower one takes what the faster one has put there."""
    rename = Path.rename

    def come_second(path: Path, target: Path) -> Path:
        (target / "by-the-other").mkdir(parents=True)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", come_second)
    folder = unpack_catalogue(archive)

    assert ["by-the-other"] == [path.name for path in folder.iterdir()]
    assert [folder] == list(folder.parent.iterdir())


def test_a_cache_that_cannot_be_written_is_replaced(archive: Path, cache: Path, tmp_path: Path) -> None:
    """By a folder for temporary files."""
    (tmp_path / "temporary").mkdir()
    cache.touch()

    assert unpack_catalogue(archive).is_relative_to(tmp_path / "temporary")


def test_it_says_where_it_cannot_be_unpacked(archive: Path, cache: Path, tmp_path: Path) -> None:
    """And which variable names another folder."""
    cache.touch()
    (tmp_path / "temporary").touch()

    with pytest.raises(UsageError, match=r"The scenarios of the package cannot be unpacked \(.*PYTEST_APPROVALS_CACHE"):
        unpack_catalogue(archive)
