"""Scenarios that were read before are taken up again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pytest_approvals.errors import ScenarioError
from pytest_approvals.scenario.kept import kept_scenario
from pytest_approvals.scenario.load import load_scenario

TEXT = """
title: Pays.
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
"""

TAKES_UP = """
import sys
from pathlib import Path
from pytest_approvals.scenario.kept import kept_scenario
root, folder = map(Path, sys.argv[1:])
print(kept_scenario(root / "own/pay.approval.yaml", root=root, folder=folder).title, "pydantic" in sys.modules)
"""


class Place:
    """A file with a scenario, and the folder that scenarios are kept in."""

    def __init__(self, path: Path) -> None:
        self.root = path / "scenarios"
        self.folder = path / "kept"
        self.file = self.root / "own" / "pay.approval.yaml"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(TEXT)

    def take_up(self):
        return kept_scenario(self.file, root=self.root, folder=self.folder)

    @property
    def kept(self) -> list[Path]:
        return sorted(self.folder.iterdir())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_it_is_what_was_read(place: Place) -> None:
    """The first time and the second time, with its lines and its path."""
    read = load_scenario(place.file, root=place.root)
    assert [read, read] == [place.take_up(), place.take_up()]
    assert (read.lines, read.path) == (place.take_up().lines, place.take_up().path)
    assert 1 == len(place.kept)


def test_another_process_does_not_read_it_again(place: Place) -> None:
    """Nothing that validates is imported where it was kept."""
    words = [sys.executable, "-c", TAKES_UP, str(place.root), str(place.folder)]
    said = [subprocess.check_output(words, text=True) for _ in range(2)]
    assert ["Pays. True\n", "Pays. False\n"] == said


def test_another_text_is_read(place: Place) -> None:
    """What was kept belongs to one text; the next one takes its place."""
    place.take_up()
    place.file.write_text(TEXT.replace("Pays.", "Pays twice."))
    assert "Pays twice." == place.take_up().title
    assert 1 == len(place.kept)


def test_same_text_elsewhere_is_taken_up(place: Place, tmp_path: Path) -> None:
    """A checkout in another folder has the same scenarios; each knows where it was found."""
    place.take_up()
    root = tmp_path / "elsewhere"
    file = root / "own" / "pay.approval.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    assert str(file) == kept_scenario(file, root=root, folder=place.folder).path
    assert 1 == len(place.kept)


@pytest.mark.parametrize("damage", [b"", b"\x80", b"\x80\x04N."], ids=["empty", "cut", "nothing"])
def test_damaged_file_is_made_anew(place: Place, damage: bytes) -> None:
    """A file that holds no scenario is as good as none."""
    place.take_up()
    place.kept[0].write_bytes(damage)
    assert "Pays." == place.take_up().title
    assert damage != place.kept[0].read_bytes()


def test_folder_that_cannot_be_written(place: Place) -> None:
    """Where nothing can be kept, the scenario is read each time."""
    place.folder.write_text("a file, and no folder")
    assert "Pays." == place.take_up().title


def test_mistake_is_told_each_time(place: Place) -> None:
    """A file with a mistake is not kept."""
    place.file.write_text(TEXT.replace("title", "titel"))
    for _ in range(2):
        with pytest.raises(ScenarioError, match="no key 'titel'"):
            place.take_up()


def test_file_that_is_not_there(place: Place) -> None:
    """A missing file is a mistake, as it is for whoever reads it."""
    place.file.unlink()
    with pytest.raises(ScenarioError, match=r"pay\.approval\.yaml: "):
        place.take_up()
