"""Scenario files that were read before come from the cache, and only if the entry can be trusted."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from pprint import pformat
from zlib import crc32

import pytest

from pytest_approvals.errors import ScenarioError
from pytest_approvals.scenario.load import load_scenario
from pytest_approvals.scenario.model import Scenario
from pytest_approvals.scenario.scenario_cache import load_cached_scenario

CATALOGUE = Path(__file__).parents[2] / "scenarios"
TEXT = """
title: Pays.
tools:
  pay: {approval: always, parameters: {amount: integer}}
model:
  - calls: [{id: c1, tool: pay, arguments: {amount: 5}}]
  - say: Done.
"""
LOADS = """
import sys
from pathlib import Path
from pytest_approvals.scenario.scenario_cache import load_cached_scenario
root, folder = map(Path, sys.argv[1:])
print(load_cached_scenario(root / "own/pay.approval.yaml", root=root, folder=folder).title, "pydantic" in sys.modules)
"""


class ScenarioFolder:
    """A file with a scenario, and the folder of the cache."""

    def __init__(self, path: Path) -> None:
        self.root = path / "scenarios"
        self.cache = path / "cache"
        self.file = self.root / "own" / "pay.approval.yaml"
        self.file.parent.mkdir(parents=True)
        self.file.write_text(TEXT)

    def load(self) -> Scenario:
        return load_cached_scenario(self.file, root=self.root, folder=self.cache)

    @property
    def entry(self) -> Path:
        (entry,) = self.cache.iterdir()
        return entry

    def change_entry(self, old: str, new: str) -> None:
        """Replace text in the entry and give it the checksum of what it then holds."""
        body = self.entry.read_bytes().partition(b"\n")[2].replace(old.encode(), new.encode())
        self.entry.write_bytes(b"%08x\n" % crc32(body) + body)


@pytest.fixture
def folder(tmp_path: Path) -> ScenarioFolder:
    return ScenarioFolder(tmp_path)


def test_cached_scenario_is_the_one_that_was_read(folder: ScenarioFolder) -> None:
    """The first time and the second time, with its lines and its path."""
    scenario = load_scenario(folder.file, root=folder.root)
    assert [scenario, scenario] == [folder.load(), folder.load()]
    assert (scenario.lines, scenario.path) == (folder.load().lines, folder.load().path)


@pytest.mark.parametrize("family", sorted(path.name for path in CATALOGUE.iterdir() if path.is_dir()))
def test_each_scenario_of_the_catalogue_survives(family: str, tmp_path: Path) -> None:
    """Down to the types of its values."""
    paths = sorted((CATALOGUE / family).glob("*.approval.yaml"))
    for path in paths:
        load_cached_scenario(path, root=CATALOGUE, folder=tmp_path)
    # Printed one value a line, because only so are sets printed in order.
    assert [pformat(load_scenario(path, root=CATALOGUE), width=1) for path in paths] == [
        pformat(load_cached_scenario(path, root=CATALOGUE, folder=tmp_path), width=1) for path in paths
    ]


def test_another_process_does_not_validate_again(folder: ScenarioFolder) -> None:
    """Nothing that validates is imported for a cached scenario."""
    command = [sys.executable, "-c", LOADS, str(folder.root), str(folder.cache)]
    printed = [subprocess.check_output(command, text=True) for _ in range(2)]
    assert ["Pays. True\n", "Pays. False\n"] == printed


def test_changed_file_is_read_again(folder: ScenarioFolder) -> None:
    """An entry belongs to one text; that of the next text replaces it."""
    folder.load()
    folder.file.write_text(TEXT.replace("Pays.", "Pays twice."))
    assert "Pays twice." == folder.load().title
    assert folder.entry


def test_same_file_in_another_folder_has_the_same_entry(folder: ScenarioFolder, tmp_path: Path) -> None:
    """A checkout elsewhere has the same scenarios; each knows its path."""
    folder.load()
    root = tmp_path / "elsewhere"
    file = root / "own" / "pay.approval.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(TEXT)
    assert str(file) == load_cached_scenario(file, root=root, folder=folder.cache).path
    assert folder.entry


@pytest.mark.parametrize(
    "damage",
    [b"", b"00000000", b"00000000\n[]", b"\x80\x04N.", b"not a number\n{}"],
    ids=["empty", "cut", "other-checksum", "a-pickle", "no-checksum"],
)
def test_damaged_entry_is_replaced(folder: ScenarioFolder, damage: bytes) -> None:
    """It counts as missing."""
    folder.load()
    folder.entry.write_bytes(damage)
    assert "Pays." == folder.load().title
    assert damage != folder.entry.read_bytes()


def test_every_flipped_byte_is_noticed(folder: ScenarioFolder) -> None:
    """No damaged entry is taken for another scenario."""
    scenario = folder.load()
    entry = folder.entry
    whole = entry.read_bytes()
    for position in range(0, len(whole), 97):
        entry.write_bytes(whole[:position] + bytes([whole[position] ^ 1]) + whole[position + 1 :])
        assert scenario == folder.load()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param('"=Scenario"', '"=Popen"', id="unknown-class"),
        pytest.param('"title"', '"titel"', id="unknown-field"),
        pytest.param('"=Scenario"', '"=Variant"', id="other-class"),
    ],
)
def test_entry_that_does_not_fit_the_model_is_replaced(folder: ScenarioFolder, old: str, new: str) -> None:
    """Only the classes of the model are made."""
    folder.load()
    folder.change_entry(old, new)
    assert "Pays." == folder.load().title
    assert new not in folder.entry.read_text()


@pytest.mark.parametrize("mode", [0o620, 0o602], ids=["group", "others"])
def test_entry_that_others_can_write_is_not_believed(folder: ScenarioFolder, mode: int) -> None:
    """It may hold what somebody else wants to be played."""
    folder.load()
    folder.change_entry('"title": "Pays."', '"title": "Steals."')
    assert "Steals." == folder.load().title
    folder.entry.chmod(mode)
    assert "Pays." == folder.load().title


def test_entry_of_another_user_is_not_believed(folder: ScenarioFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Likewise."""
    folder.load()
    folder.change_entry('"title": "Pays."', '"title": "Steals."')
    monkeypatch.setattr(os, "geteuid", lambda: os.stat(folder.file).st_uid + 1)
    assert "Pays." == folder.load().title


def test_cache_is_private(folder: ScenarioFolder) -> None:
    """Nobody else can read or write it."""
    folder.load()
    assert (0o700, 0o600) == (folder.cache.stat().st_mode & 0o777, folder.entry.stat().st_mode & 0o777)


def test_entry_is_json(folder: ScenarioFolder) -> None:
    """Below the line with the checksum."""
    folder.load()
    origin, scenario = json.loads(folder.entry.read_text().partition("\n")[2])
    assert ("own/pay.approval.yaml", "=Scenario") == (origin[0], scenario[0])


def test_cache_that_cannot_be_written_is_not_needed(folder: ScenarioFolder) -> None:
    """The scenario is then read each time."""
    folder.cache.write_text("a file, and no folder")
    assert "Pays." == folder.load().title


def test_mistake_is_reported_each_time(folder: ScenarioFolder) -> None:
    """An invalid file is not cached."""
    folder.file.write_text(TEXT.replace("title", "titel"))
    for _ in range(2):
        with pytest.raises(ScenarioError, match="titel"):
            folder.load()


def test_missing_file_is_an_error(folder: ScenarioFolder) -> None:
    """As `load_scenario` reports it."""
    folder.file.unlink()
    with pytest.raises(ScenarioError, match=r"pay\.approval\.yaml: "):
        folder.load()
